"""Opening a log: which files are believed, and which are written anew (``LogLoader``; SEG-33 – SEG-37)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.discovery import INDEX_SUFFIXES
from kidx.errors import CorruptIndexError, InvalidOffsetError
from kidx.log.overflow import splitting
from kidx.log.rebuilding import rebuild_producers
from kidx.log.segments import SWAP, Segments
from kidx.log.swapping import Leftovers
from kidx.segment import Clock, LogSegment

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig
    from kidx.log.epochs import LeaderEpochCache
    from kidx.producers import ProducerStateManager


class Loader:
    """Loads the segments of one directory.

    Args:
        directory: of the log.
        config: of the topic.
        dialect: the rules of a release.
        clock: the wall clock.
        epochs: told of the leader epochs that recovery finds.
        producers: of the log, nothing known yet; its snapshots go with the segments.
        start_offset: the checkpoint of the log start offset.
        recovery_point: the checkpoint below which everything is on disk.
        clean: whether the last shutdown was.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        dialect: Dialect,
        clock: Clock,
        epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        *,
        start_offset: int,
        recovery_point: int,
        clean: bool,
    ) -> None:
        self.directory = directory
        self.config = config
        self.dialect = dialect
        self.clock = clock
        self.epochs = epochs
        self.producers = producers
        self.start_offset = start_offset
        self.recovery_point = recovery_point
        self.clean = clean
        self.segments = Segments()

    def load(self) -> int:
        """Loads, recovers and makes ready the active segment; ``segments`` and ``recovery_point`` are final then.

        Returns:
            The log end offset.

        Raises:
            KidxError, OSError: what loading cannot mend.
        """
        leftovers = Leftovers(self.directory, lambda: self.dialect.swapped_segments_are_believed, self._open_swapped)
        leftovers.sort_out()
        self._load_files()
        leftovers.recover(self.segments, lambda segment: self._recover(segment, note_epochs=False))
        if not self.clean:
            self._recover_from(self.recovery_point)
        end_offset = self._end_offset()
        self.segments.active.resize_indexes(self.config.segment_index_bytes)
        return end_offset

    def open_segment(self, base_offset: int, *, exists: bool = False) -> LogSegment:
        """A segment of this log.

        Raises:
            OSError: its log cannot be opened.
        """
        return LogSegment.open(
            self.directory, base_offset, self.config, file_already_exists=exists, clock=self.clock, dialect=self.dialect
        )

    def _open_swapped(self, base_offset: int) -> LogSegment:
        return LogSegment.open(
            self.directory, base_offset, self.config, file_suffix=SWAP, clock=self.clock, dialect=self.dialect
        )

    def _load_files(self) -> None:
        for file in sorted(self.directory.iterdir()):
            if file.suffix in INDEX_SUFFIXES:
                if not file.with_suffix(".log").exists():
                    file.unlink()
            elif file.suffix == ".log":
                self._load_segment(int(file.stem))

    def _load_segment(self, base_offset: int) -> None:
        no_time_index = not (self.directory / f"{base_offset:020d}.timeindex").exists()
        segment = self.open_segment(base_offset, exists=True)
        try:
            segment.sanity_check(no_time_index)
        except (FileNotFoundError, CorruptIndexError):
            self._recover(segment, note_epochs=self.dialect.loading_recovers_epochs)
        self.segments.add(segment)

    def _recover(self, segment: LogSegment, *, note_epochs: bool = True) -> int:
        """Recovers a segment with the producers before it, and writes down those behind it.

        Raises:
            InvalidArgumentError: it holds an offset before its base, and its last one is in range (LG-19).
            SegmentOffsetOverflowError: its last offset is out of range; Kafka splits such a segment.
            KidxError, OSError: as :meth:`LogSegment.recover`.
        """
        producers = type(self.producers)(
            self.directory, self.dialect, expiration_ms=self.config.producer_id_expiration_ms
        )
        rebuild_producers(
            producers,
            self.segments,
            start_offset=self.start_offset,
            end_offset=segment.base_offset,
            now=self.clock(),
            known=self.producers,
        )
        with splitting(segment):
            truncated = segment.recover(producers, self.epochs if note_epochs else None)
        producers.take_snapshot()
        return truncated

    def _retire(self, segments: Iterable[LogSegment]) -> None:
        chosen = list(segments)
        self.segments.retire(chosen)
        if chosen and self.dialect.snapshots_go_at_once:
            for segment in chosen:
                self.producers.delete_snapshot(segment.base_offset)

    def _recover_from(self, recovery_point: int) -> None:
        """Recovers the segment of the recovery point and all behind it; what follows a damage goes."""
        unflushed = self.segments.values_from(recovery_point)
        for number, segment in enumerate(unflushed):
            try:
                truncated = self._recover(segment)
            except InvalidOffsetError:
                truncated = segment.truncate_to(segment.base_offset)
            if truncated > 0:
                self._retire(unflushed[number + 1 :])
                return

    def _end_offset(self) -> int:
        """The log end offset; makes an empty segment where there is none, or where all lies before the start."""
        checked: int | None = None
        if len(self.segments):
            checked = self.segments.active.read_next_offset()
            if checked < self.start_offset:
                self._retire(self.segments)
                if self.dialect.deleting_all_forgets_epochs:
                    self.epochs.clear()
                    self.producers.truncate_fully_and_start_at(self.start_offset)
                checked = None
        if not len(self.segments):
            self.segments.add(self.open_segment(self.start_offset))
        end_offset = self.segments.active.read_next_offset() if checked is None else checked
        if (
            self.recovery_point >= end_offset
            or (self.clean and checked is not None)
            or self.dialect.recovery_moves_recovery_point
        ):
            self.recovery_point = end_offset
        return end_offset
