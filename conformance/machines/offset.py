"""Offset index machine: a ``.index`` file (clauses AI and OI)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance.machines.index import calls_on_closed, closings, damages_of, openings
from conformance.machines.mapped import MappedIndexMachine
from conformance.operations import Operation
from conformance.strategies import index as strategies
from conformance.strategies.index import Start
from conformance.strategies.index_probe import AnchoredNumber
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, to_int, to_long
from kidx.layout import OFFSET_INDEX

_LAST = AnchoredNumber("last", 0)
"""The last entry: its column 0 is the offset, its column 1 the position."""


class OffsetMachine(MappedIndexMachine):
    """Machine that appends to, looks up in, truncates and corrupts an offset index."""

    kind = "offset"
    suffix = ".index"

    @initialize(
        base_offset=strategies.base_offsets(),
        start=strategies.starts(OFFSET_INDEX.size),
        position_step=st.sampled_from((100, 100, 0, -1)),
    )
    def begin(self, base_offset: int, start: Start, position_step: int) -> None:
        """Create the file, usually with entries; one index in six is larger than the warm section.

        No clause requires increasing positions. With equal or decreasing positions, the bound of a fetch shows which
        slots the search has read (AI-35, AI-36).
        """
        self.create(base_offset, start.max_index_size)
        if self.fits(start):
            self.fill("bulk_append", self.probe.base_offset, 0, start.step, position_step, start.prefill)
            self.bound_around("warm")

    @rule(gap=strategies.gaps(), step=strategies.positions())
    def append_next(self, gap: int, step: int) -> None:
        """Append after the last entry, as a segment does."""
        offset, position = self.probe.column(_LAST, 0), self.probe.column(_LAST, 1)
        self.do("append", to_long(offset + gap), to_int(position + step))

    @rule(number=strategies.anchored_offsets(), position=st.sampled_from((0, 7, -1, INT_MAX, INT_MIN)))
    def append_anywhere(self, number: AnchoredNumber, position: int) -> None:
        """Append an entry that is likely to be rejected."""
        self.do("append", self.probe.column(number, 0), position)

    @rule(count=strategies.bulk_counts(), gap=strategies.gaps(), step=strategies.positions())
    def bulk_append(self, count: int, gap: int, step: int) -> None:
        """Append several entries in one step."""
        offset = self.probe.column(_LAST, 0)
        if offset + (count + 1) * gap > LONG_MAX or count * abs(step) > INT_MAX:
            gap = step = 0
        self.do("bulk_append", offset + gap, 0, gap, step, count)

    @rule(number=strategies.targets(), size=strategies.fetch_sizes())
    def fetch_upper_bound(self, number: AnchoredNumber, size: int) -> None:
        """Query how far a fetch of some size may reach."""
        self.do("fetch_upper_bound", self.probe.column(number, 0), to_int(self.probe.column(number, 1)), size)

    @rule(anchor=st.sampled_from(("last", "first", "warm", "middle")))
    def bound_around(self, anchor: str) -> None:
        """Query the bounds of fetches that end at an entry or next to it."""
        for delta in strategies.NEAR if self.probe.entries else (0,):
            self.do(
                "fetch_upper_bound",
                self.probe.base_offset,
                to_int(self.probe.column(AnchoredNumber(anchor, delta), 1)),
                0,
            )

    @rule(count=st.sampled_from((2, 3, 5)), size=st.sampled_from((0, 100, -1)))
    def fetch_up_to_equal_positions(self, count: int, size: int) -> None:
        """Append entries with equal positions, and query the bound of a fetch that ends there (AI-36).

        Random draws rarely combine equal positions with a fetch that ends at this position.
        """
        offset, position = self.probe.column(_LAST, 0), to_int(self.probe.column(_LAST, 1) + 1)
        if offset + count > LONG_MAX:
            return
        self.do("bulk_append", offset + 1, position, 1, 0, count)
        self.do("fetch_upper_bound", offset, to_int(position - size), size)

    @rule(
        how=closings(),
        calls=calls_on_closed("offset", ".index"),
        damages=damages_of("offset"),
        opening=openings(),
        limit=strategies.limits(OFFSET_INDEX.size),
        then=strategies.first_steps(),
    )
    def reopen(
        self, how: str, calls: list[Operation], damages: list[Operation], opening: str, limit: int | None, then: str
    ) -> None:
        """Close or crash the index, call it, corrupt the file, reopen it with a maximum size, and execute ``then``."""
        self.close_and_damage(how, calls, damages)
        self.open_again(opening, limit, then)
