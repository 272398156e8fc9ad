"""Rules of the log machine about the log's directory: the topic id in it."""

from __future__ import annotations

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.operations import Operation
from conformance.strategies import draws as st
from conformance.strategies.log import Damage, metadata_damages


class DirectoryRules(LogBase):
    """Operations of a broker on a whole directory, which no client requests."""

    @rule(first=st.sampled_from((1, 1, 2)), then=st.sampled_from((1, 2)), damage=metadata_damages())
    def have_a_topic_id(self, first: int, then: int, damage: Damage | None) -> None:
        """Assign a topic id, reopen the log, perhaps with a corrupt file of the id, and assign another id."""
        assign = Operation("assign_topic_id", (first,))
        if not (self.is_open and self.lockstep.can(assign)):
            return
        end, start = self.offset("end"), self.offset("start")
        self.lockstep.perform(assign)
        self.do("close_log", True)
        if damage is not None:
            self.do("damage_log_file", damage.suffix, damage.how, list(damage.arguments))
        self.is_open = False
        self.open(clean=True, recovery_point=end, start=start)
        self.do("topic_id")
        self.do("assign_topic_id", then)
        self.do("topic_id")
