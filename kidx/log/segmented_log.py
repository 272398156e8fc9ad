"""Sequence of segments of a log: rolling, truncation and removal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kidx.discovery import SEGMENT_SUFFIXES
from kidx.errors import InvalidArgumentError
from kidx.log.errors import LogError
from kidx.log.offsets import LogOffsets
from kidx.log.producer_rebuild import rebuild_producers
from kidx.log.retention import delete_old_segments, delete_segments_before_start
from kidx.segment.files import file_name

if TYPE_CHECKING:
    from kidx.log.config import LogConfig
    from kidx.segment import Clock, LogSegment


class SegmentedLog(LogOffsets):
    """Part of :class:`~kidx.log.UnifiedLog` that changes the segments; that class describes the attributes.

    ``config`` has the settings of the topic, and ``clock`` is the wall clock in milliseconds.
    """

    config: LogConfig
    clock: Clock
    _open_segment: Callable[[int], LogSegment]

    @property
    def size(self) -> int:
        """Size of all ``.log`` files in bytes."""
        return sum(segment.size for segment in self.segments)

    def _loaded_start(self, log_start_offset: int) -> int:
        """Return the log start after loading, given the checkpoint of it."""
        return max(log_start_offset, self.segments.first.base_offset)

    @contextlib.contextmanager
    def _operation(self) -> Iterator[None]:
        """Delete the files of removed segments when the block ends, also after an error."""
        try:
            yield
        finally:
            self._delete_detached()

    def _delete_detached(self) -> None:
        detached = self.segments.delete_detached()
        if detached and self.dialect.caches_snapshot_list and not self.dialect.snapshot_renamed_with_segment:
            for segment in detached:
                self.producers.delete_snapshot(segment.base_offset)

    def _detach(self, segments: list[LogSegment], *, rolling: bool = False) -> None:
        """Remove segments, and the snapshots at their base offsets."""
        self.segments.detach(segments)
        if not (rolling and self.dialect.rolling_keeps_snapshot):
            self._delete_snapshots(segments)

    def _delete_snapshots(self, segments: list[LogSegment]) -> None:
        if self.dialect.snapshot_renamed_with_segment:
            for segment in segments:
                self.producers.delete_snapshot(segment.base_offset)

    def _rebuild_producers(self, *, clean: bool = False) -> None:
        rebuild_producers(
            self.producers,
            self.segments,
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            now=self.clock(),
            clean=clean,
        )

    # -- rolling and truncation -----------------------------------------------------------------------------------

    def roll(self) -> LogSegment:
        """Start a new segment at the log end (SEG-22, SEG-23).

        Raises:
            LogError: a segment of that name exists already, and it is not empty.
            KidxError, OSError: as :meth:`LogSegment.on_become_inactive_segment`.
        """
        with self._operation():
            return self._roll(0)

    def _roll(self, expected_offset: int) -> LogSegment:
        base = max(expected_offset, self.end_offset)
        active = self.segments.active
        if base in self.segments:
            if active.base_offset != base or active.size > 0:
                existing = self.segments.values_from(base)[0]
                raise LogError(
                    f"Trying to roll a new log segment with start offset {base} while it already exists. Existing "
                    f"segment is {existing.kafka_text()}."
                )
            self._detach([active], rolling=True)
        elif base < active.base_offset:
            raise LogError(  # in old releases the message opens the time index of the segment that it describes (LG-68)
                f"Trying to roll a new log segment with start offset {base} lower than start offset of the active "
                f"segment {active.kafka_text()}"
            )
        else:
            for suffix in SEGMENT_SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.directory}/{file_name(base, suffix)}")  # noqa: PTH108 -- measurable in every roll
            active.on_become_inactive_segment()
        segment = self._open_segment(base)
        self.segments.add(segment)
        self.producers.map_end_offset = base
        self.producers.take_snapshot()
        self._set_end_offset(self.end_offset)
        self.recovery_point = max(self.recovery_point, base)
        return segment

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from ``offset`` on, including the whole batch that contains it.

        Returns:
            True if ``offset`` is below the end of the log.

        Raises:
            InvalidArgumentError: ``offset`` is negative.
            KidxError, OSError: as :meth:`LogSegment.truncate_to`.
        """
        if offset < 0:
            raise InvalidArgumentError(
                f"Cannot truncate partition {self.directory.name} to a negative offset ({offset})."
            )
        with self._operation():
            if offset >= self.end_offset:
                if self.dialect.idle_truncation_truncates_epochs:
                    self.epochs.truncate_from_end(self.end_offset)
                return False
            if self.segments.first.base_offset > offset:
                self._truncate_fully(offset)
                return True
            later = [segment for segment in self.segments if segment.base_offset > offset]
            if self.dialect.truncation_keeps_snapshots_first:
                self.segments.detach(later)
                self.segments.active.truncate_to(offset)
                self._delete_snapshots(later)
            else:
                self._detach(later)
                self.segments.active.truncate_to(offset)
            start = min(offset, self.start_offset)
            if self.dialect.truncation_updates_transactions:
                self._set_end_offset(offset)
                self._set_start_offset(start)
            self.end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
            self.start_offset = start
            self.epochs.truncate_from_end(offset)
            self._rebuild_producers()
            if self.dialect.truncation_updates_transactions:
                self._update_first_unstable_offset()
            elif self.high_watermark >= offset or self.dialect.truncation_applies_any_watermark:
                self.update_high_watermark(self.high_watermark)
            return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and start again at ``offset``, as a follower that lags too far does.

        Raises:
            OSError: a file cannot be renamed or created.
        """
        with self._operation():
            self._truncate_fully(offset)

    def _truncate_fully(self, offset: int) -> None:
        self._detach(list(self.segments))
        self.segments.add(self._open_segment(offset))
        if self.dialect.truncation_updates_transactions:
            self._set_end_offset(offset)
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        self.start_offset = offset
        if self.dialect.full_truncation_moves_recovery_point:
            self.recovery_point = offset
        if self.dialect.full_truncation_keeps_high_watermark:
            self._update_first_unstable_offset()
            self.high_watermark = min(self.high_watermark, offset)
            return
        if not self.dialect.truncation_updates_transactions:
            self._rebuild_producers()
        self.update_high_watermark(offset)

    def delete_old_segments(self) -> int:
        """Apply retention by time, by size and by start offset; return the number of deleted segments.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        with self._operation():
            return delete_old_segments(self)

    def delete_segments_before_start(self) -> int:
        """Delete only the segments below the log start; return their number.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        with self._operation():
            return delete_segments_before_start(self)

    def remove_oldest(self, segments: list[LogSegment]) -> None:
        """Remove these first segments for retention; roll an empty segment first if they are all segments.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        if len(segments) == len(self.segments):
            self._roll(0)
        following = self.segments.higher(segments[-1].base_offset)
        start = self.segments.active.base_offset if following is None else following.base_offset
        if self.dialect.start_moves_before_deletion:
            self.delete_records(start)
            self._detach(segments)
        else:
            self._detach(segments)
            self.delete_records(start)
