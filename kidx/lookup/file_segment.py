"""One segment on disk: properties that are known without opening it, and a reader that is opened on demand.

A partition can have thousands of segments. A search reads the largest timestamp of each segment, but opens only the
segment that it searches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.errors import CorruptIndexError, UnsupportedVersionError
from kidx.files import pieces_with_data, regular
from kidx.index.entries import TimestampOffset
from kidx.index.lazy import LazyIndex
from kidx.index.transaction import TransactionIndex
from kidx.layout import OFFSET_INDEX, TIME_INDEX
from kidx.rebuild import rebuild
from kidx.records import CorruptRecordError
from kidx.segment.file_records import FileRecords
from kidx.segment.files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from kidx.segment.segment import SegmentReader

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.discovery import Segment
    from kidx.index.offset import OffsetIndex
    from kidx.records import RecordBatch
    from kidx.segment.file_records import TimestampAndOffset

_PREFIX_BYTES: Final = 17
"""Size in bytes of a batch's first fields: if they are zeros at the end of a log, the end was never written."""
_ENTRY_SIZES: Final = {OFFSET_INDEX_SUFFIX: OFFSET_INDEX.size, TIME_INDEX_SUFFIX: TIME_INDEX.size}


class FileSegment:
    """Segment as its broker sees it: after loading it, or, for the last segment, while the broker writes to it.

    Args:
        segment: the files of the segment.
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
