"""Rules of the log machine for batches that a leader rejects or rewrites."""

from __future__ import annotations

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.strategies import draws as st
from conformance.strategies.leader import Sent, sent


class LeaderRules(LogBase):
    """Appends as a leader, which validates the batches (:mod:`kidx.log.validation`)."""

    @rule(batches=st.lists(sent(), min_size=1, max_size=2), alone=st.sampled_from((True, True, True, False)))
    def append_what_a_leader_refuses_or_changes(self, batches: list[Sent], alone: bool) -> None:
        """Append a producer's batch, or two: old format, corrupt, misnumbered, wrong time, no key, or too large."""
        plans = batches[:1] if alone else batches
        sent = [self.as_producer_batch(plan.batch(self.now)) for plan in plans]
        for batch in sent:
            self.timestamps.update(record[1] for record in batch["records"])
        self.do("append_as_leader", sent, self.epoch)
