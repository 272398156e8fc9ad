"""The offsets that bound a log: start, last stable offset, high watermark, end, and how they move together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.log.errors import OffsetOutOfRangeError

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.log.epochs import LeaderEpochCache
    from kidx.log.segments import Segments
    from kidx.log.transactions import Transactions


class LogOffsets:
    """What :class:`~kidx.log.UnifiedLog` knows of its offsets; the attributes are described there."""

    directory: Path
    dialect: Dialect
    epochs: LeaderEpochCache
    segments: Segments
    transactions: Transactions
    start_offset: int
    end_offset: int
    high_watermark: int
    recovery_point: int
    search_start: int

    @property
    def last_stable_offset(self) -> int:
        """Below it, everything is replicated and every transaction decided; never above the high watermark.

        Where an open transaction began before the log start, it is the log start; from 4.0 the base offset of the batch
        that the start lies in, which may be smaller (LG-20).

        Raises:
            KidxError, OSError: the batch cannot be read.
        """
        first = self.transactions.first_unstable_offset
        if first is None:
            return self.high_watermark
        if first < self.start_offset:
            first = self._batch_offset(self.start_offset)
        return min(first, self.high_watermark)

    def _batch_offset(self, offset: int) -> int:
        """What a read from ``offset`` says it begins with (SEG-50)."""
        if self.dialect.translates_to_base_offset and offset < self.end_offset:
            for segment in self.segments.values_from(offset):
                found = segment.read(offset, 1)
                if found is not None:
                    return found.message_offset
        return offset

    def update_high_watermark(self, offset: int) -> int:
        """Sets the high watermark, kept between start and end offset, and returns it."""
        self.high_watermark = min(max(offset, self.start_offset), self.end_offset)
        self.transactions.on_high_watermark(self.high_watermark)
        return self.high_watermark

    def _set_end_offset(self, offset: int) -> None:
        self.end_offset = offset
        if self.high_watermark >= offset:
            self.high_watermark = offset
            self.transactions.replicate(offset)
            self._locate_first_unstable_offset()
            self.transactions.settle()
        self.recovery_point = min(self.recovery_point, offset)

    def _locate_first_unstable_offset(self) -> None:
        """Up to 2.7.0 a truncation looks for the first open transaction before it forgets it (LG-11).

        Raises:
            OffsetOutOfRangeError: there is nothing any more where it began, or, if that is before the log start, where
                the log starts; if it began before the log was opened, or before the log start.
        """
        first = self.transactions.first_undecided()
        if not self.dialect.truncation_looks_for_transactions or first is None:
            return
        if first in self.transactions.located and first >= self.start_offset:
            return
        wanted = max(first, self.start_offset)
        if not self.segments.first.base_offset <= wanted <= self.end_offset:
            raise OffsetOutOfRangeError(
                f"the first unstable offset {wanted} is not in {self.segments.first.base_offset}..{self.end_offset}"
            )

    def _set_start_offset(self, offset: int) -> None:
        self.start_offset = offset
        if not self.dialect.start_moves_other_offsets:
            return
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        self.recovery_point = max(self.recovery_point, offset)

    def delete_records(self, offset: int) -> None:
        """Moves the log start offset up to ``offset``; files go with :meth:`delete_old_segments`.

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
            self.transactions.on_log_start(offset)

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Notes that a leader's epoch begins at ``offset``, as a new leader does.

        Raises:
            InvalidArgumentError: one of the numbers is negative.
        """
        self.epochs.assign(epoch, offset)
