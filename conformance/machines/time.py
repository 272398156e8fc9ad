"""Time index machine: a ``.timeindex`` file (clauses AI and TI)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance.machines.index import calls_on_closed, closings, damages_of, openings
from conformance.machines.mapped import MappedIndexMachine
from conformance.operations import Operation
from conformance.strategies import index as strategies
from conformance.strategies.index import Start
from conformance.strategies.index_probe import AnchoredNumber
from kidx.java_values import LONG_MAX, LONG_MIN, to_long
from kidx.layout import TIME_INDEX

_LAST = AnchoredNumber("last", 0)
"""The last entry: its column 0 is the timestamp, its column 1 the offset."""


class TimeMachine(MappedIndexMachine):
    """Machine that appends to, looks up in, truncates and corrupts a time index."""

    kind = "time"
    suffix = ".timeindex"

    @initialize(
        base_offset=strategies.base_offsets(),
        start=strategies.starts(TIME_INDEX.size),
        offset_step=st.sampled_from((1, 1, 0)),
    )
    def begin(self, base_offset: int, start: Start, offset_step: int) -> None:
        """Create the file, usually with entries; one index in six is larger than the warm section.

        With equal offsets, the entries that remain after a truncation show which slots the search has read (AI-36). A
        large index with equal offsets is truncated immediately, because no other operation shows this.
        """
        self.create(base_offset, start.max_index_size)
        if self.fits(start):
            self.fill("bulk_maybe_append", 0, self.probe.base_offset, start.step, offset_step, start.prefill)
            if offset_step == 0 and self.probe.entries > self.probe.warm_entries:
                self.do("truncate_to", self.probe.base_offset)

    @rule(
        gap=strategies.timestamp_gaps(),
        offset_gap=strategies.offset_gaps_of_times(),
        skip_full_check=st.sampled_from((False, False, True)),
    )
    def maybe_append_next(self, gap: int, offset_gap: int, skip_full_check: bool) -> None:
        """Append after the last entry, as a segment does for a batch, or for a roll (``skip_full_check``)."""
        timestamp, offset = self.probe.column(_LAST, 0), self.probe.column(_LAST, 1)
        self.do("maybe_append", to_long(timestamp + gap), to_long(offset + offset_gap), skip_full_check)

    @rule(
        timestamp=strategies.targets(),
        offset=strategies.anchored_offsets(),
        skip_full_check=st.sampled_from((False, True)),
    )
    def maybe_append_anywhere(self, timestamp: AnchoredNumber, offset: AnchoredNumber, skip_full_check: bool) -> None:
        """Append an entry that is likely to be rejected or ignored."""
        self.do("maybe_append", self.probe.column(timestamp, 0), self.probe.column(offset, 1), skip_full_check)

    @rule(timestamp=st.sampled_from((-1, -2, 0, LONG_MIN)), gap=strategies.offset_gaps_of_times())
    def maybe_append_no_timestamp(self, timestamp: int, gap: int) -> None:
        """Append -1, "no timestamp", or a similar value: an empty index remains empty (TI-3)."""
        self.do("maybe_append", timestamp, to_long(self.probe.column(_LAST, 1) + gap), False)

    @rule(count=strategies.bulk_counts(), gap=strategies.timestamp_gaps(), offset_gap=strategies.offset_gaps_of_times())
    def bulk_maybe_append(self, count: int, gap: int, offset_gap: int) -> None:
        """Append several entries in one step."""
        timestamp, offset = self.probe.column(_LAST, 0), self.probe.column(_LAST, 1)
        if timestamp + (count + 1) * abs(gap) > LONG_MAX or offset + (count + 1) * abs(offset_gap) > LONG_MAX:
            return
        if timestamp - (count + 1) < LONG_MIN or offset - (count + 1) < LONG_MIN:
            return
        self.do("bulk_maybe_append", timestamp + gap, offset + offset_gap, gap, offset_gap, count)

    @rule(count=st.sampled_from((2, 3, 5)))
    def truncate_to_equal_offsets(self, count: int) -> None:
        """Append entries with equal offsets and truncate to that offset: the result shows which entry is found (AI-36).

        Random draws rarely combine equal offsets with a truncation to this offset.
        """
        timestamp, offset = self.probe.column(_LAST, 0), to_long(self.probe.column(_LAST, 1) + 1)
        if timestamp + count > LONG_MAX:
            return
        self.do("bulk_maybe_append", timestamp + 1, offset, 1, 0, count)
        self.do("truncate_to", offset)

    @rule(
        how=closings(),
        calls=calls_on_closed("time", ".timeindex"),
        damages=damages_of("time"),
        opening=openings(),
        limit=strategies.limits(TIME_INDEX.size),
        then=strategies.first_steps(),
    )
    def reopen(
        self, how: str, calls: list[Operation], damages: list[Operation], opening: str, limit: int | None, then: str
    ) -> None:
        """Close or crash the index, call it, corrupt the file, reopen it with a maximum size, and execute ``then``."""
        self.close_and_damage(how, calls, damages)
        self.open_again(opening, limit, then)
