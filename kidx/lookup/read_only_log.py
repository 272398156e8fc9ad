"""Log of a partition, read in place: the lookups of :class:`kidx.UnifiedLog` without its writes.

Some properties of a segment are known without opening it; its reader is opened on demand. A partition can have
thousands of segments. A search reads the largest timestamp of each, but opens only the segment that it searches.
"""

from __future__ import annotations

import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import discover
from kidx.errors import CorruptIndexError, ToolError, UnsupportedVersionError
from kidx.files import pieces_with_data, regular
from kidx.index.lazy import LazyIndex
from kidx.index.time import TimestampOffset
from kidx.index.transaction import TransactionIndex
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.log.epochs import LeaderEpochs, read_epochs
from kidx.log.errors import UnsupportedTargetError
from kidx.log.lookup import EARLIEST, EARLIEST_LOCAL, LATEST, fetch_offset, supports_target
from kidx.rebuild import rebuild
from kidx.records import CorruptRecordError
from kidx.scan.entries import read_index
from kidx.segment.file_records import FileRecords
from kidx.segment.files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from kidx.segment.segment import SegmentReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kidx.discovery import Partition, Segment
    from kidx.index.offset import OffsetIndex
    from kidx.records import RecordBatch
    from kidx.segment.file_records import TimestampAndOffset

_PREFIX_BYTES: Final = 17
"""Size in bytes of a batch's first fields: if they are zeros at the end of a log, the end was never written."""
_ENTRY_SIZES: Final = {OFFSET_INDEX_SUFFIX: OFFSET_INDEX.size, TIME_INDEX_SUFFIX: TIME_INDEX.size}


class FileSegment:
    """Segment as its broker sees it: after loading it, or, for the last segment, while the broker writes to it.

    Args:
        dialect: rules of a release.
        scratch: directory for copies of files that must not be read or written in place: the used part of an active
            segment's indexes, and indexes that loading would rebuild.

    Attributes:
        base_offset: base offset of the segment.
        tier: ``local`` or ``remote``.
        remark: description of files that a clean shutdown does not leave so, and of the action taken; else empty.
    """

    tier = "local"

    def __init__(self, segment: Segment, dialect: Dialect, scratch: Path) -> None:
        self.files = segment
        self.base_offset = segment.base_offset
        self.dialect = dialect
        self.remark = ""
        self._scratch = scratch
        self._reader: SegmentReader | None = None

    # -- without opening the segment ------------------------------------------------------------------------------

    @cached_property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """Largest timestamp in milliseconds, and its offset; ``(-1, base)`` if the time index is empty (SEG-6).

        Raises:
            KidxError, OSError: the files cannot be read.
        """
        if self.files.is_last or self._must_recover:
            return self.reader.max_timestamp_so_far
        try:
            with regular(self.files.path(TIME_INDEX_SUFFIX)) as descriptor:
                entries = os.fstat(descriptor).st_size // TIME_INDEX.size
                last = os.pread(descriptor, TIME_INDEX.size, max(0, entries - 1) * TIME_INDEX.size)
        except FileNotFoundError:  # loading creates an empty one (SEG-35)
            last = b""
        return TimestampOffset.in_last_slot(last, self.base_offset)

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp, or else the time of the last write to the log (SEG-53), in milliseconds."""
        timestamp = self.max_timestamp_so_far.timestamp
        return timestamp if timestamp >= 0 else self.files.log.stat().st_mtime_ns // 1_000_000

    @property
    def log_size(self) -> int:
        """Size of the log in bytes."""
        return self.files.log.stat().st_size

    @property
    def _must_recover(self) -> bool:
        return not self.files.path(OFFSET_INDEX_SUFFIX).exists()

    # -- with the open segment -----------------------------------------------------------------------------------

    @property
    def reader(self) -> SegmentReader:
        """The open segment.

        Raises:
            KidxError, OSError: the files cannot be read.
        """
        if self._reader is None:
            self._reader = self._open()
        return self._reader

    @property
    def is_open(self) -> bool:
        """True if the files of the segment are open."""
        return self._reader is not None

    def close(self) -> None:
        """Close the open files; they are opened again when needed."""
        if self._reader is not None:
            self._reader.release_handles()
            self._reader = None

    def _open(self) -> SegmentReader:
        if self._must_recover:
            return self._recovered("its .index is missing, and loading rebuilds both indexes")
        reader = self._assemble(self._index(OFFSET_INDEX_SUFFIX), self._index(TIME_INDEX_SUFFIX), self._transactions())
        try:
            reader.txn_index.sanity_check()
        except (CorruptIndexError, UnsupportedVersionError):
            reader.release_handles()
            return self._recovered("its .txnindex is invalid, and loading rebuilds the indexes")
        if self.remark:  # the broker has entries in memory that are not in the time index yet
            indexed = reader.maximum.timestamp, reader.maximum.offset
            position = reader.offset_index.lookup(indexed[1]).position if indexed[0] >= 0 else 0
            unindexed = reader.log.largest_timestamp_after(position)
            if unindexed[0] > indexed[0]:
                reader.maximum.set(TimestampOffset(*unindexed))
        return reader

    def _recovered(self, reason: str) -> SegmentReader:
        self.remark = reason
        rebuilt = rebuild(self.files.log, self._scratch, dialect=self.dialect)
        transactions = rebuilt.txn_index or self._scratch / f"{self.base_offset:020d}{TRANSACTION_INDEX_SUFFIX}"
        return self._assemble(rebuilt.offset_index, rebuilt.time_index, transactions)

    def _index(self, suffix: str) -> Path:
        """Return the index file to read: a copy of the used part if it has padding, an empty one if it is missing."""
        path = self.files.path(suffix)
        if not path.exists():
            copy = self._scratch / path.name
            copy.touch()
            return copy
        if not self.files.is_last or self.files.clean:  # after a clean stop, loading takes zeros for entries (SEG-27)
            return path
        width = _ENTRY_SIZES[suffix]
        with regular(path) as descriptor:
            size = os.fstat(descriptor).st_size
            end = max((position + len(data) for position, data in pieces_with_data(descriptor, size)), default=0)
            used = -(-end // width) * width
            if size < used + width:
                return path
            self.remark = "its indexes have padding after their entries: the broker is running, or was killed"
            copy = self._scratch / path.name
            with copy.open("wb") as file:
                for position, data in pieces_with_data(descriptor, end):
                    file.seek(position)
                    file.write(data)
                file.truncate(used)
        return copy

    def _transactions(self) -> Path:
        path = self.files.path(TRANSACTION_INDEX_SUFFIX)
        return path if path.exists() else self._scratch / path.name

    def _assemble(self, offset_index: Path, time_index: Path, transactions: Path) -> SegmentReader:
        reader = SegmentReader(
            FileRecords(self.files.path(LOG_SUFFIX), writable=False, dialect=self.dialect),
            LazyIndex.for_offset(offset_index, self.base_offset, writable=False, dialect=self.dialect),
            LazyIndex.for_time(time_index, self.base_offset, writable=False, dialect=self.dialect),
            TransactionIndex(self.base_offset, transactions, writable=False, dialect=self.dialect),
            self.base_offset,
            dialect=self.dialect,
        )
        if self.files.is_last:
            reader.log.size_in_bytes = self._end_of_batches(reader)
        return reader

    def _end_of_batches(self, reader: SegmentReader) -> int:
        """Return the size of the log without zeros that the broker has reserved (``preallocate``)."""
        size = reader.log.size_in_bytes
        with regular(self.files.log) as descriptor:
            if os.pread(descriptor, _PREFIX_BYTES, max(0, size - _PREFIX_BYTES)).strip(b"\0"):
                return size
            end = reader.offset_index.lookup(reader.offset_index.last_offset).position
            try:
                for batch in reader.batches(end):
                    end += batch.size_in_bytes
            except CorruptRecordError:
                if os.pread(descriptor, _PREFIX_BYTES, end).strip(b"\0"):
                    return size  # the batch is corrupt: whoever reads it gets the error
        return end

    # -- interface that a search uses -----------------------------------------------------------------------------

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index."""
        return self.reader.offset_index

    @property
    def max_record_body_size(self) -> int:
        """Maximum size in bytes of a record, in 4.4."""
        return self.reader.max_record_body_size

    def batches(self, start: int = 0) -> Iterator[RecordBatch]:
        """Return the batches from byte ``start`` on."""
        return self.reader.batches(start)

    def find_offset_by_timestamp(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """See :meth:`SegmentReader.find_offset_by_timestamp`."""
        return self.reader.find_offset_by_timestamp(timestamp, starting_offset)


_MAX_OPEN: Final = 64
"""Maximum number of segments that remain open between lookups; each has three open files."""


class ReadOnlyLog:
    """Log in a partition directory; a context manager. A broker may be writing to it.

    Args:
        directory: directory of the partition, e.g. ``/data/orders-0``.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Attributes:
        segments: the segments, oldest first.
        all_segments: the segments of all tiers, oldest first.
        start_offset: start offset from the log directory's checkpoint, or the first segment's base offset.
        search_start: the same offset, by the name that :mod:`kidx.log.lookup` uses.
        epochs: the leader epochs in the checkpoint.
        checkpointed_start: start offset from the log directory's checkpoint, or None if it has none.
        begins_before: start of the log if earlier segments are in the remote tier; None if no segment is.

    Raises:
        ToolError: the directory is not a partition, or has no segment.
        OSError: a checkpoint cannot be read.
    """

    def __init__(self, directory: str | os.PathLike[str], dialect: str | Dialect | None = None) -> None:
        self.directory = Path(directory)
        self.dialect = dialect_of(dialect)
        partition = _partition(self.directory)
        self._scratch = tempfile.TemporaryDirectory(prefix="kidx-lookup-")
        self.scratch = Path(self._scratch.name)
        self.segments = [FileSegment(segment, self.dialect, self.scratch) for segment in partition.segments]
        self.all_segments = self.segments
        self._used: set[FileSegment] = set()
        self.checkpointed_start = partition.start_offset
        self.start_offset = max(partition.start_offset or 0, self.segments[0].base_offset)
        self.search_start = self.start_offset
        self.epochs = LeaderEpochs(read_epochs(partition.epochs) if partition.epochs else [])
        first = self.epochs.earliest_entry
        begins = [each for each in (partition.start_offset, first and first.start_offset) if each is not None]
        earlier = min(begins, default=self.start_offset)
        self.begins_before = earlier if earlier < self.segments[0].base_offset else None

    is_tiered = False
    recovered_end: int | None = None
    """End of the log after a start that recovers it; None if it is not recovered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for segment in self.all_segments:
            segment.close()
        self._scratch.cleanup()

    @property
    def end_offset(self) -> int:
        """Offset of the next record.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        if self.recovered_end is not None:
            return self.recovered_end
        return self.segments[-1].reader.read_next_offset()

    @property
    def lacks_end(self) -> bool:
        """True if the index of the last segment points past the end of its log, so that a log with batches has no end.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        last = self.segments[-1]
        return last.log_size > 0 and self.end_offset == last.base_offset

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the result of a broker with these files, if the whole log is on all replicas.

        Args:
            target: milliseconds, or one of :data:`kidx.log.lookup.TARGETS`.

        Raises:
            UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
            KidxError, OSError: an index or a log cannot be read.
        """
        self.check_target(target)
        try:
            result = self._fetch(target)
        finally:
            self._close_oldest()
        # A time index may name a record that the log no longer has; clients do not get its offset (LO-12).
        is_start_or_end = target in (LATEST, EARLIEST, EARLIEST_LOCAL) and supports_target(self.dialect, target)
        return result if result is None or is_start_or_end or result.offset < self.end_offset else None

    def _fetch(self, target: int) -> TimestampAndOffset | None:
        return fetch_offset(self, target)

    def check_target(self, target: int) -> None:
        """Reject a target that a broker of the release rejects.

        Raises:
            UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
        """
        if target < 0 and self.dialect.rejects_unknown_targets and not supports_target(self.dialect, target):
            raise UnsupportedTargetError(f"Kafka {self.dialect.release} does not support target {target}")

    def _close_oldest(self) -> None:
        opened = [segment for segment in self.all_segments if segment.is_open]
        self._used.update(opened)
        for segment in opened[:-_MAX_OPEN]:
            segment.close()

    def indexes_past_log_end(self) -> list[Path]:
        """Return the offset indexes, among the segments read so far, with an entry at or past the log end.

        Raises:
            OSError: an index cannot be read.
        """
        wrong = []
        for segment in self.all_segments:
            path = segment.files.path(".index")
            if (segment in self._used or segment.is_open) and path.exists():
                positions = read_index(path, segment.base_offset).entries["position"]
                if len(positions) and int(positions.max()) >= segment.files.log.stat().st_size:
                    wrong.append(path)
        return wrong

    def segments_from(self, offset: int) -> Iterator[FileSegment]:
        """Yield the segment that contains ``offset``, and all after it."""
        segments = self.all_segments
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if following is None or following.base_offset > offset:
                yield segment


def _partition(directory: Path) -> Partition:
    if not directory.is_dir():
        raise ToolError(f"{directory} is {'not a directory' if directory.exists() else 'missing'}")
    found = discover([directory])
    if found.problems:
        problem = found.problems[0]
        raise ToolError(f"{problem.path}: {problem.message.removeprefix(f'{problem.path}: ')}")
    if len(found.partitions) != 1 or found.partitions[0].directory.resolve() != directory.resolve():
        raise ToolError(f"{directory} is not the directory of one partition, such as /data/orders-0")
    if not found.partitions[0].segments:
        raise ToolError(f"{directory} has no segment: it contains no .log file")
    return found.partitions[0]
