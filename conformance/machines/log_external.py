"""Rules for logs that are driven by the line protocol, with sequences that the other rules draw seldom.

An example ends at its first divergence. If a log diverges at every close or gap, few of its examples reach, step by
step, a lost index of one of several segments. So one rule executes all of these steps. Machines of Kafka's own logs do
not have these rules.
"""

from __future__ import annotations

from typing import Any

from conformance.machines.log_base import LogBase
from conformance.machines.seeded_rules import rule
from conformance.operations.log import VERIFICATION
from conformance.strategies import draws as st
from conformance.strategies import log as strategies
from conformance.strategies.leader import recompressible, recompressible_topic


class ExternalLogRules(LogBase):
    """Losses and truncations that need earlier steps, together with these steps."""

    def topic(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return a topic's settings; see the base class."""
        known = {name: value for name, value in super().topic(settings).items() if name != VERIFICATION}
        return recompressible_topic(known)

    def as_producer_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return a producer's batch; see the base class."""
        return recompressible(batch, self.settings)

    @rule(
        gaps=st.lists(st.sampled_from((10, -5, -15, 0)), min_size=3, max_size=9),
        how=st.sampled_from(("crash", "crash", "close")),
        recovery=st.sampled_from(("zero", "zero", "active", "end")),
        lost=strategies.lost_indexes(),
    )
    def lose_an_index(self, gaps: list[int], how: str, recovery: str, lost: strategies.Damage) -> None:
        """Fill some segments, kill or close the log, delete an index of a full segment, and open the log."""
        for gap in gaps:
            self.do("append_as_leader", [{"records": self.keyed([[0, self.timestamp(gap)]])}], self.epoch)
        full = [base for base, _ in self.state.segments][:-1]
        if not (self.is_open and full):
            return
        recovery_point, start = self.offset(recovery), self.offset("start")
        self.do("crash_log") if how == "crash" else self.do("close_log", True)
        name = f"{full[lost.segment % len(full)]:020d}{lost.suffix}"
        self.do("damage_log_file", name, lost.how, list(lost.arguments))
        self.is_open = False
        self.open(clean=how != "crash", recovery_point=recovery_point, start=start)

    @rule(records=st.integers(2, 4), deleted=st.integers(1, 3), delta=strategies.near())
    def cut_where_the_log_begins(self, records: int, deleted: int, delta: int) -> None:
        """Delete records up to the middle of a batch, and truncate at the new log start."""
        first = self.state.end_offset
        for count in (records, 1):
            stamps = [[number, self.timestamp(1)] for number in range(count)]
            self.do("append_as_leader", [{"records": self.keyed(stamps)}], self.epoch)
        self.do("update_high_watermark", first + records)
        self.do("delete_records", first + min(deleted, records))
        self.truncate("truncate_log", self.offset("start", delta))
