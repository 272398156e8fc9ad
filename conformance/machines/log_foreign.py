"""Rules for logs behind the line protocol, which go in one step to what is else drawn seldom.

A life ends at its first difference. Where a log shows one at each close or gap, few of its lives come as far as an
index that is lost behind several segments. Runs of Kafka's own logs draw without these rules.
"""

from __future__ import annotations

from typing import Any

from conformance.machines.log_base import LogBase
from conformance.machines.seeded import rule
from conformance.operations.log import VERIFICATION
from conformance.strategies import draws as st
from conformance.strategies import log as strategies
from conformance.strategies.leader import recompressible, recompressible_topic


class ForeignRules(LogBase):
    """Losses and cuts that need a history, with the history."""

    def topic(self, settings: dict[str, Any]) -> dict[str, Any]:
        """See the base class."""
        known = {name: value for name, value in super().topic(settings).items() if name != VERIFICATION}
        return recompressible_topic(known)

    def sendable(self, batch: dict[str, Any]) -> dict[str, Any]:
        """See the base class."""
        return recompressible(batch, self.settings)

    @rule(
        gaps=st.lists(st.sampled_from((10, -5, -15, 0)), min_size=3, max_size=9),
        how=st.sampled_from(("crash", "crash", "close")),
        recovery=st.sampled_from(("zero", "zero", "active", "end")),
        lost=strategies.lost_indexes(),
    )
    def lose_an_index(self, gaps: list[int], how: str, recovery: str, lost: strategies.Damage) -> None:
        """Fills some segments, kills the log or closes it, loses an index of a full segment, and opens the log."""
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
        """Deletes records into a batch, and truncates where the log begins then."""
        first = self.state.end_offset
        for count in (records, 1):
            stamps = [[number, self.timestamp(1)] for number in range(count)]
            self.do("append_as_leader", [{"records": self.keyed(stamps)}], self.epoch)
        self.do("update_high_watermark", first + records)
        self.do("delete_records", first + min(deleted, records))
        self.cut("truncate_log", self.offset("start", delta))
