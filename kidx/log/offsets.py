"""Offsets that bound a log: start, last stable offset, high watermark, end, and how they move together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.log.errors import OffsetOutOfRangeError

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.log.epochs import LeaderEpochCache
    from kidx.log.segments import Segments
    from kidx.producers import ProducerStateManager


class LogOffsets:
    """Part of :class:`~kidx.log.UnifiedLog` that maintains the offsets; that class describes the other attributes.

    Attributes:
        watermark_has_metadata: True if the position of the batch at the high watermark is known.
        end_place: base offset of a segment and a position in it, at which the end offset is; a read ends before it. A
            rejected append may have written batches there.
    """

    directory: Path
    dialect: Dialect
    epochs: LeaderEpochCache
    segments: Segments
    producers: ProducerStateManager
    first_unstable_offset: int | None
    start_offset: int
    high_watermark: int
    recovery_point: int
    search_start: int
    watermark_has_metadata: bool = False
    end_place: tuple[int, int]
    _end_offset: int

    @property
    def end_offset(self) -> int:
        """Offset of the next record; to set it is to move :attr:`end_place` to the end of the active segment."""
        return self._end_offset

    @end_offset.setter
    def end_offset(self, offset: int) -> None:
        active = self.segments.active
        self._end_offset, self.end_place = offset, (active.base_offset, active.size)

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: each record below it is replicated and in no open transaction."""
        first = self.first_unstable_offset
        return self.high_watermark if first is None else min(first, self.high_watermark)

    def _update_first_unstable_offset(self) -> None:
        """Determine the first unstable offset again (``maybeIncrementFirstUnstableOffset``).

        If a transaction began before the log start, or before the log was opened, its offset is looked up. The result
        is the log start, or from 4.0 the base offset of the batch that contains it, which may be smaller (LG-20).

        Raises:
            OffsetOutOfRangeError: the log no longer contains that offset, up to 3.7 (LG-11).
            KidxError, OSError: the batch cannot be read.
        """
        first = self.producers.first_unstable
        if first is None:
            self.first_unstable_offset = None
        elif first.has_metadata and first.first_offset >= self.start_offset:
            self.first_unstable_offset = first.first_offset
        else:
            self.first_unstable_offset = self._offset_metadata(max(first.first_offset, self.start_offset))

    def _offset_metadata(self, offset: int) -> int:
        """Return the first offset that a read from ``offset`` reports (SEG-50), or the log end if it reads nothing."""
        if offset > self.end_offset or self.segments.floor(offset) is None:
            if not self.dialect.unstable_offset_must_exist:
                return offset
            raise OffsetOutOfRangeError(
                f"the first unstable offset {offset} is not in {self.segments.first.base_offset}..{self.end_offset}"
            )
        if offset < self.end_offset:
            for segment in self.segments.values_from(offset):
                found = segment.read(offset, 1)
                if found is not None:
                    return found.message_offset
        return self.end_offset

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, limited to the range from start to end offset, and return it.

        Raises:
            KidxError, OSError: the first unstable offset cannot be looked up.
        """
        # After a truncation that stopped half way, the start may be past the end (LG-11).
        self.watermark_has_metadata = (
            self.start_offset <= self.end_offset <= offset and self.dialect.end_has_offset_metadata
        )
        self.high_watermark = self.start_offset if offset < self.start_offset else min(offset, self.end_offset)
        self.producers.on_high_watermark(self.high_watermark)
        self._update_first_unstable_offset()
        return self.high_watermark

    def offset_snapshot(self) -> tuple[int, int, int, int]:
        """Return start, end, high watermark and last stable offset, as a fetch gets them (``fetchOffsetSnapshot``).

        The batch at the high watermark is looked up if its position is unknown. The lookup may change the high
        watermark (LG-67, LG-79).

        Raises:
            OffsetOutOfRangeError: the log has no record at the high watermark, up to 3.7.
            KidxError, OSError: the batch cannot be read.
        """
        if not self.watermark_has_metadata:
            before, first = self.high_watermark, self.first_unstable_offset
            self.high_watermark = self._offset_metadata(before)
            self.watermark_has_metadata = True
            self.producers.on_high_watermark(self.high_watermark)
            self._update_first_unstable_offset()
            if self.dialect.watermark_metadata_resolved_last and (first is None or before <= first):
                return self.start_offset, self.end_offset, self.high_watermark, self.high_watermark
        return self.start_offset, self.end_offset, self.high_watermark, self.last_stable_offset

    def _set_end_offset(self, offset: int) -> None:
        self.end_offset = offset
        if self.high_watermark >= offset:
            self.high_watermark, self.watermark_has_metadata = offset, True
            self.producers.on_high_watermark(offset)
            self._update_first_unstable_offset()
        if self.recovery_point > offset and self.dialect.start_moves_other_offsets:
            self.recovery_point = offset

    def _set_start_offset(self, offset: int) -> None:
        self.start_offset = offset
        if min(self.high_watermark, self.recovery_point) >= offset or not self.dialect.start_moves_other_offsets:
            return
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        self.recovery_point = max(self.recovery_point, offset)

    def delete_records(self, offset: int) -> None:
        """Move the log start offset up to ``offset``; :meth:`delete_old_segments` deletes the files.

        Raises:
            OffsetOutOfRangeError: ``offset`` is larger than the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition {self.directory.name}"
                f" since it is larger than the high watermark {self.high_watermark}"
            )
        if offset > self.start_offset:
            self._set_start_offset(offset)
            self.search_start = offset
            self.epochs.truncate_from_start(offset)
            self.producers.on_log_start(offset)
            self._update_first_unstable_offset()

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Record that a leader epoch begins at ``offset``, as a new leader does.

        Raises:
            InvalidArgumentError: ``epoch`` or ``offset`` is negative.
        """
        self.epochs.assign(epoch, offset)
