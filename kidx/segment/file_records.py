"""The ``.log`` file of a segment (``FileRecords.java``): batches that are appended, truncated and searched."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError
from kidx.files import open_regular, unlink
from kidx.java_values import INT_MAX
from kidx.layout import RECORD_BATCH_OVERHEAD
from kidx.producers.append_info import records_of
from kidx.records import Buffer, RecordBatch, RecordStreamError, TruncatedFileError, iter_batches
from kidx.records.file_bytes import FileBytes
from kidx.records.offset_timestamps import CachedIterable, OffsetTimestamp
from kidx.records.record import MAX_RECORD_BODY_SIZE, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WINDOWS_FROM: Final = 1 << 20
"""File size in bytes from which batches are read on demand; a smaller file is read whole, which is faster."""
_MAX_CACHED_FILE: Final = 1 << 14
"""Maximum size in bytes of a file whose content is cached until this object changes it."""
_MAX_CACHED_BATCH: Final = 1 << 12
"""Maximum size in bytes of a batch whose offsets and timestamps are cached for the next search."""
_MAX_CACHED_RECORDS: Final = 256
"""Maximum number of records of such a batch."""
_MAX_RESULTS: Final = 1 << 10
"""Maximum number of cached results of searches by timestamp."""


class LogOffsetPosition(NamedTuple):
    """Batch that contains an offset (SEG-50)."""

    offset: int  # its last offset; from 4.0 on, its base offset
    position: int  # byte position in the log
    size: int  # bytes


class TimestampAndOffset(NamedTuple):
    """Result of a search by timestamp; the epoch is ``None`` if the batch states no epoch (FR-1)."""

    timestamp: int  # milliseconds
    offset: int  # of the record that was found
    leader_epoch: int | None


class FetchDataInfo(NamedTuple):
    """Result of a read: ``size`` bytes of the log from ``position``.

    ``message_offset`` is the requested offset; from 4.0 on, the base offset of the first batch (SEG-50).
    ``first_entry_incomplete`` is True if the first batch is larger than the requested size.
    """

    message_offset: int
    position: int
    size: int
    first_entry_incomplete: bool


class FileRecords:
    """Open ``.log`` file.

    Args:
        path: the file; created if it does not exist and ``writable`` is True.
        file_already_exists: False to reserve ``init_file_size`` bytes of zeros if ``preallocate`` is True; the file
            counts as empty.
        init_file_size: bytes to reserve for a new file.
        preallocate: True to reserve them.
        writable: False to open an existing file without write permission (not in Kafka; :mod:`kidx.rebuild` does).
        dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Attributes:
        size_in_bytes: size of the batches; the file may have a preallocated tail after them.
        writes: number of times that this object has appended to the file or truncated it.

    Raises:
        RecordStreamError: the file is larger than 2**31 - 1 bytes.
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        writable: bool = True,
        dialect: str | Dialect | None = None,
    ) -> None:
        self.path = Path(path)
        self.dialect = dialect_of(dialect)
        self.writable = writable
        reserve = preallocate and not file_already_exists
        self._descriptor: int | None = (
            os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666) if writable else open_regular(self.path)
        )
        if reserve:
            os.ftruncate(self._descriptor, init_file_size)
        length = os.fstat(self._descriptor).st_size
        if length > INT_MAX:
            self.close_handlers()
            raise RecordStreamError(
                f"The size of segment {self.path} ({length}) is larger than the maximum allowed segment size of"
                f" {INT_MAX}"
            )
        self._end = 0 if reserve else INT_MAX
        self.size_in_bytes = min(length, self._end)
        self.writes = 0
        self._position = self.size_in_bytes
        self._read = b""  # cached content of a small file
        self._known: dict[int, RecordBatch] = {}  # parsed batches by position
        # Offsets and timestamps of small batches, by position and maximum record size.
        self._cached: dict[tuple[int, int], CachedIterable[OffsetTimestamp]] = {}
        # Results of search_for_timestamp by its arguments.
        self._found: dict[tuple[int, int, int, int], TimestampAndOffset] = {}

    def __str__(self) -> str:
        return f"FileRecords(size={self.size_in_bytes}, file={self.path}, start=0, end={self._end})"

    @property
    def is_open(self) -> bool:
        """True if the file has not been closed."""
        return self._descriptor is not None

    def _channel(self) -> int:
        if self._descriptor is None:
            raise OSError(errno.EBADF, "the log is closed", str(self.path))
        return self._descriptor

    # -- writing -----------------------------------------------------------------------------------------------

    def append(self, records: bytes) -> int:
        """Write bytes at the end and return their number.

        Raises:
            InvalidArgumentError: the file would exceed 2**31 - 1 bytes.
            OSError: the file is closed, or cannot be written.
        """
        if len(records) > INT_MAX - self.size_in_bytes:
            raise InvalidArgumentError(
                f"Append of size {len(records)} bytes is too large for segment with current file position at"
                f" {self.size_in_bytes}"
            )
        descriptor = self._channel()
        self.writes += 1
        view = memoryview(records)
        while view:
            written = os.pwrite(descriptor, view, self._position)
            self._position += written
            view = view[written:]
        self.size_in_bytes += len(records)
        return len(records)

    def truncate_to(self, target_size: int) -> int:
        """Truncate the file to ``target_size`` bytes; its size does not change if the file is that short already.

        Returns:
            The number of bytes between the former size and the target.

        Raises:
            RecordStreamError: the target is negative or larger than the size.
            OSError: the file is closed, or cannot be truncated.
        """
        original = self.size_in_bytes
        if not 0 <= target_size <= original:
            raise RecordStreamError(
                f"Attempt to truncate log segment {self.path} to {target_size} bytes failed, "
                f" size of this log segment is {original} bytes."
            )
        descriptor = self._channel()
        if target_size < os.fstat(descriptor).st_size:
            self.writes += 1
            os.ftruncate(descriptor, target_size)
            self._read, self._known, self._cached, self._found = b"", {}, {}, {}
            self._position = min(self._position, target_size)
            self.size_in_bytes = target_size
        return original - target_size

    def trim(self) -> None:
        """Truncate the preallocated tail after the last batch. Raises as ``truncate_to``."""
        self.truncate_to(self.size_in_bytes)

    def flush(self) -> None:
        """Sync the file to disk.

        Raises:
            OSError: the file is closed, or cannot be synced.
        """
        os.fsync(self._channel())

    # -- the file ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush, trim and close the file; from 4.4.0 on, only close it (SEG-24).

        Raises:
            OSError: the file is closed already (up to 4.0.0), or cannot be synced.
        """
        if self.dialect.close_finishes_segment:
            if not self.is_open and self.dialect.close_reports_errors:
                return
            self.flush()
            self.trim()
        self.close_handlers()

    def close_handlers(self) -> None:
        """Close the file without changing it."""
        descriptor, self._descriptor = self._descriptor, None
        self._found = {}
        if descriptor is not None:
            os.close(descriptor)

    def delete_if_exists(self) -> bool:
        """Close and delete the file. Return True if it existed."""
        self.close_handlers()
        return unlink(self.path)

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        """Move the file. This object uses ``path`` from then on, even if the move fails.

        Raises:
            OSError: the move failed.
        """
        target = Path(path)
        try:
            self.path.replace(target)
        finally:
            self.path = target

    def update_parent_dir(self, directory: str | os.PathLike[str]) -> None:
        """Record that the file's directory has moved, without touching any file."""
        self.path = Path(directory) / self.path.name

    # -- reading -----------------------------------------------------------------------------------------------

    def _content(self) -> Buffer:
        descriptor = self._channel()
        if self.writable and 0 < len(self._read) == self.size_in_bytes:
            return self._read
        content: Buffer = (
            os.pread(descriptor, self.size_in_bytes, 0)
            if self.size_in_bytes < _WINDOWS_FROM
            else FileBytes(descriptor, str(self.path))
        )
        self._read = content if isinstance(content, bytes) and self.size_in_bytes <= _MAX_CACHED_FILE else b""
        if not self.writable and len(content) < self.size_in_bytes:
            raise TruncatedFileError(
                f"{self.path} became shorter while it was open: it has {len(content)} of {self.size_in_bytes} bytes"
            )
        return content

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[RecordBatch]:
        """Return the batches from byte ``start`` to ``end``, by default the end of the log (RB-4).

        Raises:
            CorruptRecordError: a length is below 14 bytes, or the file is shorter than the log.
            TruncatedFileError: the file became shorter while it was read.
            InvalidArgumentError: ``start`` is negative.
            OSError: the file is closed.
        """
        end = self.size_in_bytes if end is None else end
        if end <= start:
            return iter(())
        # A log that this object may write is changed only by this object.
        known = self._known if self.writable and self.size_in_bytes < _WINDOWS_FROM else None
        decompressor = self.dialect.decompressor
        return iter_batches(self._content(), start, end, source=str(self.path), known=known, decompressor=decompressor)

    def read_bytes(self, position: int, size: int) -> bytes:
        """Return up to ``size`` bytes from a position on.

        Raises:
            OSError: the file is closed, or cannot be read.
        """
        return os.pread(self._channel(), size, position)

    def available_bytes(self, position: int, size: int) -> int:
        """Return the number of existing bytes in a slice of ``size`` bytes from ``position`` (FR-4).

        Raises:
            InvalidArgumentError: the position is not inside the log, or the size is negative.
        """
        if position < 0:
            raise InvalidArgumentError(f"Invalid position: {position} in read from {self}")
        if position > self.size_in_bytes:
            raise InvalidArgumentError(f"Slice from position {position} exceeds end position of {self}")
        if size < 0:
            raise InvalidArgumentError(f"Invalid size: {size} in read from {self}")
        return min(size, self.size_in_bytes - position)

    def search_for_offset(self, target_offset: int, start: int) -> LogOffsetPosition | None:
        """Return the first batch from byte ``start`` whose last offset is ≥ the target, or None (SEG-50, SEG-51).

        Raises:
            KidxError: See :meth:`batches`; or a header cannot be read.
        """
        if start >= self.size_in_bytes:
            return None
        if self.dialect.searches_by_base_offset:
            return self._search_by_base_offset(target_offset, start)
        for batch in self.batches(start):
            last = batch.last_offset
            if last >= target_offset:
                # The header of an old format has the last offset only: the first must be read from the records, which
                # may fail. A batch of one record in the new format has one offset.
                alike = batch.magic >= 2 and batch.base_offset == last
                offset = batch.base_offset if not alike and self.dialect.translates_to_base_offset else last
                return LogOffsetPosition(offset, batch.position, batch.size_in_bytes)
        return None

    def _search_by_base_offset(self, target_offset: int, start: int) -> LogOffsetPosition | None:
        previous: RecordBatch | None = None
        for batch in self.batches(start):
            base = batch.base_offset
            if base == target_offset:
                return LogOffsetPosition(base, batch.position, batch.size_in_bytes)
            if base > target_offset:
                found = batch if previous is None or previous.last_offset < target_offset else previous
                return LogOffsetPosition(found.base_offset, found.position, found.size_in_bytes)
            previous = batch
        if previous is not None and previous.last_offset >= target_offset:
            return LogOffsetPosition(previous.base_offset, previous.position, previous.size_in_bytes)
        return None

    def search_for_timestamp(
        self, target: int, start: int, starting_offset: int, max_record_body_size: int = MAX_RECORD_BODY_SIZE
    ) -> TimestampAndOffset | None:
        """Return the first record with a timestamp ≥ ``target`` and an offset ≥ ``starting_offset``, or None (FR-1).

        The search begins at byte ``start``. Batches whose largest timestamp is below ``target`` are skipped.

        Raises:
            KidxError: See :meth:`batches`; or records cannot be read.
        """
        key = target, start, starting_offset, max_record_body_size
        found = self._found.get(key)
        if found is None:
            found = self._first_from(*key)
            # Appending batches does not change a record that was found, but may add one if none was found.
            if found is not None and self.writable and self.size_in_bytes < _WINDOWS_FROM:
                if len(self._found) == _MAX_RESULTS:
                    self._found.clear()
                self._found[key] = found
        return found

    def _first_from(
        self, target: int, start: int, starting_offset: int, max_record_body_size: int
    ) -> TimestampAndOffset | None:
        for batch in self.batches(start):
            if batch.max_timestamp < target:
                continue
            for record in self._offset_timestamps(batch, max_record_body_size):
                if record.timestamp >= target and record.offset >= starting_offset:
                    return TimestampAndOffset(record.timestamp, record.offset, _epoch(batch.partition_leader_epoch))
        return None

    def _offset_timestamps(self, batch: RecordBatch, max_record_body_size: int) -> Iterable[OffsetTimestamp]:
        """Return offset and timestamp of each record of a batch; the result for a small batch is cached.

        An unreadable record raises the error that the release raises.
        """
        key = batch.position, max_record_body_size
        cached = self._cached.get(key)
        if cached is not None and not cached.failed and self._known.get(batch.position) is batch:
            return cached
        timestamps = offset_timestamps_of(batch, max_record_body_size, self.dialect)
        if self._known.get(batch.position) is not batch or batch.size_in_bytes > _MAX_CACHED_BATCH:
            return timestamps
        if (_count(batch) or INT_MAX) > _MAX_CACHED_RECORDS:
            return timestamps
        cached = self._cached[key] = CachedIterable(timestamps)
        return cached

    def largest_timestamp_after(self, start: int) -> tuple[int, int]:
        """Return the largest timestamp from byte ``start`` on, and the last offset of the first batch with it (FR-3).

        The result is ``(-1, -1)`` if no batch has a timestamp.

        Raises:
            KidxError: See :meth:`batches`; or a header cannot be read.
        """
        largest, offset = NO_TIMESTAMP, -1
        for batch in self.batches(start):
            timestamp = batch.max_timestamp
            if timestamp > largest:
                largest, offset = timestamp, batch.last_offset
        return largest, offset


def offset_timestamps_of(batch: RecordBatch, max_record_body_size: int, dialect: Dialect) -> Iterator[OffsetTimestamp]:
    """Return offset and timestamp of each record of a batch, as a search by timestamp reads them.

    Args:
        max_record_body_size: maximum size in bytes of a record (4.4).

    Raises:
        KidxError: the records cannot be read; the class depends on the release.
    """
    plain = _count(batch) and not batch.is_compressed
    streaming = not plain and dialect.limits_decompressed_size
    return records_of(batch.offset_timestamps(max_record_body_size, streaming=streaming), dialect)


def _count(batch: RecordBatch) -> int | None:
    """Return the number of records; 0 without a whole header, because releases differ in what they read first."""
    return batch.count if batch.magic < 2 or batch.size_in_bytes >= RECORD_BATCH_OVERHEAD else 0


def _epoch(epoch: int) -> int | None:
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
