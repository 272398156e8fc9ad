"""Rules of the log machine about what a leader refuses or changes of what producers send."""

from __future__ import annotations

from conformance.machines.log_base import LogBase
from conformance.machines.seeded import rule
from conformance.strategies import draws as st
from conformance.strategies.leader import Sent, sent


class LeaderRules(LogBase):
    """Appends as a leader that :mod:`kidx.log.validation` is about."""

    @rule(batches=st.lists(sent(), min_size=1, max_size=2), alone=st.sampled_from((True, True, True, False)))
    def append_what_a_leader_refuses_or_changes(self, batches: list[Sent], alone: bool) -> None:
        """Appends a producer's batch, or two, of old formats, damaged, misnumbered, mistimed, keyless or too large."""
        plans = batches[:1] if alone else batches
        sent = [self.sendable(plan.batch(self.now)) for plan in plans]
        for batch in sent:
            self.timestamps.update(record[1] for record in batch["records"])
        self.do("append_as_leader", sent, self.epoch)
