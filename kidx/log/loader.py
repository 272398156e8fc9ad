"""Loading of a log: decides which files are trusted and which are rebuilt (``LogLoader``; SEG-33 – SEG-37, CL-17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.discovery import DELETED, INDEX_SUFFIXES, LOG, SEGMENT_SUFFIXES, SWAP
from kidx.errors import CorruptIndexError, InvalidOffsetError
from kidx.log.errors import LogError
from kidx.log.producers import rebuild_producers
from kidx.log.segments import (
    CLEANED,
    OverflowedSegmentError,
    Segments,
    overflow_as_split_error,
    split_overflowed,
)
from kidx.segment import Clock, LogSegment
from kidx.segment.files import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.log.config import LogConfig
    from kidx.log.epochs import LeaderEpochCache
    from kidx.producers import ProducerStateManager


class SwapFiles:
    """Temporary files that an interrupted cleaner left in a log directory.

    Args:
        are_trusted: function that returns True if loading accepts swapped segments unchanged (CL-18); only called if
            such files exist.
        open_swapped: function that opens the swapped segment with a base offset.
    """

    def __init__(
        self, directory: Path, are_trusted: Callable[[], bool], open_swapped: Callable[[int], LogSegment]
    ) -> None:
        self._directory = directory
        self._are_trusted = are_trusted
        self._open = open_swapped
        self._logs: list[int] = []

    def resolve(self) -> None:
        """Delete obsolete temporary files, and rename .swap files to their final names if the release trusts them.

        Raises:
            KidxError, OSError: a swapped segment cannot be read, or a file cannot be deleted.
        """
        for file in self._files(DELETED):
            file.unlink()
        cleaned, swapped = self._files(CLEANED), self._files(SWAP)
        smallest = min(map(_offset_of, cleaned), default=None)
        for file in cleaned:
            file.unlink()
        if not swapped:
            return
        valid = [file for file in swapped if smallest is None or _offset_of(file) < smallest]
        self._logs = sorted(_offset_of(file) for file in valid if _is_log(file))
        if self._are_trusted():
            for file in swapped:
                if file not in valid:
                    file.unlink()
            self._rename()
            return
        for file in swapped:
            self._delete(file, INDEX_SUFFIXES, "")
        for file in swapped:
            if _is_log(file) and file not in valid:
                self._delete(file, SEGMENT_SUFFIXES, SWAP)

    def _files(self, suffix: str) -> list[Path]:
        return [file for file in self._directory.iterdir() if file.name.endswith(suffix)]

    def _delete(self, file: Path, kinds: Iterable[str], suffix: str) -> None:
        """Delete files of the same segment, if they exist."""
        for kind in kinds:
            (self._directory / (file_name(_offset_of(file), kind) + suffix)).unlink(missing_ok=True)

    def _rename(self) -> None:
        """Delete the files and snapshots at offsets that the swapped segments cover; rename the swapped files.

        Reading the end offset of a segment creates a missing offset index, which is renamed, too.
        """
        ends = []
        for base in self._logs:
            segment = self._open(base)
            ends.append(segment.read_next_offset())
            segment.release_handles()
        for file in self._directory.iterdir():
            name = file.name.partition(".")[0]
            covered = bool(ends) and name.isdecimal() and self._logs[0] <= int(name) < max(ends)
            if covered and not file.name.endswith(SWAP):
                file.unlink()
        for file in self._files(SWAP):
            file.replace(file.with_name(file.name.removesuffix(SWAP)))

    def recover(self, segments: Segments, recover: Callable[[LogSegment], object]) -> None:
        """Recover each swapped segment if the release does not trust them, and replace the segments that it covers.

        Args:
            recover: function that recovers one segment.

        Raises:
            KidxError, OSError: a segment cannot be recovered, or a file cannot be renamed.
        """
        if not self._logs or self._are_trusted():
            return
        for base in self._logs:
            swapped = self._open(base)
            recover(swapped)
            covered = segments.values_between(base, swapped.read_next_offset())
            old = [segment for segment in covered if segment.read_next_offset() > base]
            segments.add(swapped)
            for segment in old:
                segments.detach_replaced(segment, swapped)
            swapped.change_file_suffixes(SWAP, "")


def _is_log(file: Path) -> bool:
    return file.name.endswith(LOG + SWAP)


def _offset_of(file: Path) -> int:
    return int(file.name.partition(".")[0])


class Loader:
    """Loader of the segments of one directory.

    Args:
        config: settings of the topic.
        dialect: rules of a release.
        clock: the wall clock.
        epochs: cache that gets the leader epochs found by a recovery.
        producers: state of the producers, still empty; it deletes the snapshots of removed segments.
        start_offset: checkpoint of the log start offset.
        recovery_point: checkpoint below which everything is on disk.
        clean: True if the last shutdown was clean.
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
        segment_type: type[LogSegment] = LogSegment,
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
        self.segment_type = segment_type
        self.segments = Segments()

    def load(self) -> int:
        """Load and recover the segments and prepare the active one; ``segments`` and ``recovery_point`` are then final.

        Returns:
            The log end offset.

        Raises:
            KidxError, OSError: an error that loading cannot repair.
        """
        swap_files = SwapFiles(self.directory, lambda: self.dialect.trusts_swap_files, self._open_swapped)
        swap_files.resolve()
        self._with_splits(self._load_files)
        swap_files.recover(self.segments, lambda segment: self._recover(segment, record_epochs=False))
        if not self.clean:
            self._with_splits(lambda: self._recover_from(self.recovery_point))
        end_offset = self._end_offset()
        self.segments.active.resize_indexes(self.config.segment_index_bytes)
        return end_offset

    def open_segment(self, base_offset: int, *, exists: bool = False) -> LogSegment:
        """Return a segment of this log.

        Raises:
            OSError: the log of the segment cannot be opened.
        """
        return self.segment_type.open(
            self.directory,
            base_offset,
            self.config,
            file_already_exists=exists,
            init_file_size=self.config.init_file_size,
            preallocate=self.config.preallocate,
            clock=self.clock,
            dialect=self.dialect,
        )

    def _with_splits(self, step: Callable[[], None]) -> None:
        """Repeat a step of loading after each segment that it finds too long, which is split then.

        Raises:
            LogError: the segment remains, so that Kafka splits it again and again.
        """
        while True:
            try:
                step()
            except OverflowedSegmentError as error:
                segment, was_loaded = error.segment, error.segment.base_offset in self.segments
                pieces = split_overflowed(segment, self.segments, self._open_cleaned)
                if pieces[0].base_offset == segment.base_offset:
                    continue
                if not was_loaded:
                    raise LogError(
                        f"{segment.log.path} is split again and again, so that loading never ends"
                    ) from error
                if self.dialect.snapshot_renamed_with_segment:
                    self.producers.delete_snapshot(segment.base_offset)
            else:
                return

    def _open_cleaned(self, base_offset: int) -> LogSegment:
        for suffix in SEGMENT_SUFFIXES:
            (self.directory / (file_name(base_offset, suffix) + CLEANED)).unlink(missing_ok=True)
        return self.segment_type.open(
            self.directory,
            base_offset,
            self.config,
            init_file_size=self.config.init_file_size,
            preallocate=self.config.preallocate,
            file_suffix=CLEANED,
            clock=self.clock,
            dialect=self.dialect,
        )

    def _open_swapped(self, base_offset: int) -> LogSegment:
        return self.segment_type.open(
            self.directory, base_offset, self.config, file_suffix=SWAP, clock=self.clock, dialect=self.dialect
        )

    def _load_files(self) -> None:
        for segment in self.segments:
            segment.close()
        self.segments.clear()
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
            self._recover(segment, record_epochs=self.dialect.loading_recovers_epochs)
        self.segments.add(segment)

    def _recover(self, segment: LogSegment, *, record_epochs: bool = True) -> int:
        """Recover a segment with the producers before it, and write a snapshot of the producers after it.

        Raises:
            InvalidArgumentError: an offset of the segment is below its base, and the last one is in range (LG-19).
            OverflowedSegmentError: the last offset is out of range; loading splits such a segment.
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
        with overflow_as_split_error(segment):
            truncated = segment.recover(producers, self.epochs if record_epochs else None)
        producers.take_snapshot()
        return truncated

    def _detach(self, segments: Iterable[LogSegment]) -> None:
        removed = list(segments)
        self.segments.detach(removed)
        if removed and self.dialect.snapshot_renamed_with_segment:
            for segment in removed:
                self.producers.delete_snapshot(segment.base_offset)

    def _recover_from(self, recovery_point: int) -> None:
        """Recover the segment of the recovery point and all after it; remove the segments after a corrupt one."""
        unflushed = self.segments.values_from(recovery_point)
        survived = (InvalidOffsetError, OSError) if self.dialect.recovery_empties_at_io_errors else InvalidOffsetError
        for number, segment in enumerate(unflushed):
            try:
                truncated = self._recover(segment)
            except survived:
                truncated = segment.truncate_to(segment.base_offset)
            if truncated > 0:
                self._detach(unflushed[number + 1 :])
                return

    def _end_offset(self) -> int:
        """Return the log end offset; create an empty segment if none exists, or if all are below the log start."""
        checked: int | None = None
        if len(self.segments):
            checked = self.segments.active.read_next_offset()
            if checked < self.start_offset:
                self._detach(self.segments)
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
