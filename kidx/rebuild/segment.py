"""Index files that a release's recovery writes for a ``.log``, built without touching the log (SEG-30).

The files are identical to those that a broker writes when it recovers the segment. They may differ from those that it
wrote when it appended, because the log does not show the append calls and the restarts of the broker (SEG-7, SEG-9).

They are built in memory and written at the end, so that a full disk causes an ordinary error. A broker maps a sparse
file instead. If the disk is full when a process writes to a mapped page, the process is killed.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError
from kidx.index.abstract import AbstractIndex
from kidx.index.lazy import LazyIndex
from kidx.index.mapped_buffer import MappedBuffer
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.java_values import round_down
from kidx.segment import LogSegment, ProducerState, SegmentConfig, file_name
from kidx.segment.file_records import FileRecords
from kidx.segment.files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

_ANONYMOUS = -1
"""File descriptor of anonymous memory."""


class Unwritten(AbstractIndex[Any]):
    """Index that has no file before :meth:`write`."""

    def _create_and_map(self) -> MappedBuffer:
        self.length = self._preallocated_size()
        return MappedBuffer(_ANONYMOUS, self.length, writable=True, name=self._file)

    def resize(self, new_size: int) -> bool:
        """Resize the memory, as :meth:`AbstractIndex.resize` does with a file."""
        size = round_down(new_size, self.entry_size)
        if size == self.length:
            return False
        before = self._mapped()
        buffer = MappedBuffer(_ANONYMOUS, size, writable=True, name=self._file)
        copied = min(before.position, size)
        buffer.data[:copied] = before.data[:copied]
        buffer.seek(before.position)
        before.close()
        self._mmap, self.length, self.max_entries = buffer, size, size // self.entry_size
        return True

    def write(self) -> None:
        """Write the file.

        Raises:
            OSError: the file cannot be created or written; a part of it may exist.
        """
        Path(self._file).write_bytes(memoryview(self._mapped().data)[: self.length])


class UnwrittenOffsetIndex(Unwritten, OffsetIndex):
    """The ``.index`` of a log that is rebuilt."""


class UnwrittenTimeIndex(Unwritten, TimeIndex):
    """The ``.timeindex`` of a log that is rebuilt."""


_INDEXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Rebuilt(NamedTuple):
    """Files that a rebuild has written.

    Attributes:
        offset_index: the ``.index`` file.
        time_index: the ``.timeindex`` file.
        txn_index: the ``.txnindex`` file; None if no transaction was aborted, because Kafka then has no such file.
        valid_bytes: bytes of the log that the indexes cover; a recovery would truncate the rest.
        invalid_bytes: number of bytes that a recovery would truncate.
    """

    offset_index: Path
    time_index: Path
    txn_index: Path | None
    valid_bytes: int
    invalid_bytes: int


_ID: Final = re.compile("(?<=[0-9]{20})-[A-Za-z0-9_-]{22}$")
"""Id of a remote segment in the names of its files."""


class _UntouchedLog(FileRecords):
    """Log that is truncated only in memory."""

    def truncate_to(self, target_size: int) -> int:
        """Forget the bytes after ``target_size`` without changing the file."""
        truncated, self.size_in_bytes = self.size_in_bytes - target_size, target_size
        return truncated


def base_offset_of(path: Path) -> int:
    """Return the base offset that a segment file is named after: the digits before the first dot.

    In the names of remote segments, the id of the segment follows the digits.

    Raises:
        InvalidArgumentError: the file is not named after an offset.
    """
    digits = _ID.sub("", path.name.partition(".")[0])
    if not (digits.isascii() and digits.isdecimal()):
        raise InvalidArgumentError(f"{path} is not named after a base offset, such as {file_name(0, LOG_SUFFIX)}")
    return int(digits)


def rebuild(
    segment_log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dialect: str | Dialect | None = None,
    index_interval_bytes: int = 4096,
    segment_index_bytes: int = 10 << 20,
    producer_state: ProducerState | None = None,
) -> Rebuilt:
    """Write ``.index``, ``.timeindex`` and ``.txnindex`` of a log into another directory.

    Args:
        segment_log: a ``.log`` file, named after its base offset; opened read-only.
        out: a directory, created if it is missing; index files of that name in it are replaced.
        dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.
        index_interval_bytes: the topic's ``index.interval.bytes``.
        segment_index_bytes: the topic's ``segment.index.bytes``, which limits the number of entries.
        producer_state: the producers and open transactions at the start of this segment; empty by default.

    Raises:
        InvalidArgumentError: the log is not named after a base offset, ``out`` is its own directory, or an index would
            exceed ``segment_index_bytes``, at which a broker fails too.
        SegmentOffsetOverflowError, InvalidOffsetError: offsets too far from the base, or out of order: no release can
            recover such a segment.
        KidxError: a batch that no release can process.
        OSError: a file cannot be read or written. After any error, no index file remains.
    """
    source, target = Path(segment_log), Path(out)
    base_offset = base_offset_of(source)
    if target.resolve() == source.resolve().parent:
        raise InvalidArgumentError(f"{target} holds the log itself; choose another directory for its indexes")
    rules = dialect_of(dialect)
    paths = tuple(target / file_name(base_offset, suffix) for suffix in _INDEXES)
    config = SegmentConfig(index_interval_bytes=index_interval_bytes, segment_index_bytes=segment_index_bytes)
    missing = [directory for directory in (target, *target.parents) if not directory.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        _remove(paths)
        with _released(_segment(source, base_offset, paths, config, rules)) as segment:
            invalid = segment.recover(producer_state)
            for index in (segment.offset_index, segment.time_index):
                assert isinstance(index, Unwritten)
                index.write()
    except BaseException:
        _clean_up(paths, missing)  # half an index is worse than no index
        raise
    offset_index, time_index, transactions = paths
    return Rebuilt(offset_index, time_index, transactions if transactions.exists() else None, segment.size, invalid)


def _clean_up(paths: Iterable[Path], directories: Iterable[Path]) -> None:
    with contextlib.suppress(OSError):
        _remove(paths)
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.rmdir()


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _segment(
    source: Path, base_offset: int, paths: tuple[Path, ...], config: SegmentConfig, dialect: Dialect
) -> LogSegment:
    size = config.segment_index_bytes
    return LogSegment(
        _UntouchedLog(source, writable=False, dialect=dialect),
        LazyIndex(paths[0], lambda path: UnwrittenOffsetIndex(path, base_offset, size, dialect=dialect)),
        LazyIndex(paths[1], lambda path: UnwrittenTimeIndex(path, base_offset, size, dialect=dialect)),
        TransactionIndex(base_offset, paths[2], dialect=dialect),
        base_offset,
        index_interval_bytes=config.index_interval_bytes,
        dialect=dialect,
    )


@contextlib.contextmanager
def _released(segment: LogSegment) -> Iterator[LogSegment]:
    """Close a segment's files without changing them: recovery has trimmed them."""
    try:
        yield segment
    finally:
        segment.release_handles()
