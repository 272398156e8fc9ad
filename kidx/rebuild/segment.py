"""The index files that a release's recovery writes for a ``.log``, without touching the log (SEG-30).

What a broker would write on recovering the segment, byte for byte: not what it wrote when it appended, because how the
records were grouped into calls, and when it was restarted, is not in the log (SEG-7, SEG-9).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError, KidxError
from kidx.index.lazy import LazyIndex
from kidx.index.transaction import TransactionIndex
from kidx.segment import LogSegment, ProducerState, SegmentConfig, file_name
from kidx.segment.file_records import FileRecords
from kidx.segment.files import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

_INDEXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Rebuilt(NamedTuple):
    """What a rebuild has written.

    Attributes:
        offset_index: the ``.index`` file.
        time_index: the ``.timeindex`` file.
        txn_index: the ``.txnindex`` file; None if no transaction was aborted, as Kafka then has none.
        valid_bytes: bytes of the log that the indexes speak of; a recovery would cut the rest.
        invalid_bytes: that rest.
    """

    offset_index: Path
    time_index: Path
    txn_index: Path | None
    valid_bytes: int
    invalid_bytes: int


class _UntouchedLog(FileRecords):
    """A log that is cut in memory only."""

    def truncate_to(self, target_size: int) -> int:
        """Forgets what is behind ``target_size``; the file stays as it is."""
        cut, self.size_in_bytes = self.size_in_bytes - target_size, target_size
        return cut


def base_offset_of(path: Path) -> int:
    """The base offset that a segment file is named after: the digits before the first dot.

    Raises:
        InvalidArgumentError: it is not named after one.
    """
    digits = path.name.partition(".")[0]
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
    """Writes ``.index``, ``.timeindex`` and ``.txnindex`` of a log into another directory.

    Args:
        segment_log: a ``.log`` file, named after its base offset; opened read-only.
        out: a directory, made if it is missing; index files of that name in it are replaced.
        dialect: a release or a :class:`~kidx.dialect.Dialect`; the newest release by default.
        index_interval_bytes: the topic's ``index.interval.bytes``.
        segment_index_bytes: the topic's ``segment.index.bytes``: how many entries there may be.
        producer_state: transactions that the segments before this one leave open; none if None.

    Raises:
        InvalidArgumentError: the log is not named after a base offset, ``out`` is its own directory, or an index would
            exceed ``segment_index_bytes``, at which a broker fails too.
        SegmentOffsetOverflowError, InvalidOffsetError: offsets too far from the base, or out of order: no release can
            recover such a segment.
        KidxError: a batch that no release can get past.
        OSError: a file cannot be read or written. Whatever is raised, no index file is left.
    """
    source, target = Path(segment_log), Path(out)
    base_offset = base_offset_of(source)
    if target.resolve() == source.resolve().parent:
        raise InvalidArgumentError(f"{target} holds the log itself: its indexes are not to be replaced")
    target.mkdir(parents=True, exist_ok=True)
    rules = dialect_of(dialect)
    paths = tuple(target / file_name(base_offset, suffix) for suffix in _INDEXES)
    _remove(paths)
    config = SegmentConfig(index_interval_bytes=index_interval_bytes, segment_index_bytes=segment_index_bytes)
    try:
        with _abandoned(_segment(source, base_offset, paths, config, rules)) as segment:
            invalid = segment.recover(producer_state)
    except (KidxError, OSError):
        _remove(paths)  # half an index is worse than none
        raise
    offset_index, time_index, transactions = paths
    return Rebuilt(offset_index, time_index, transactions if transactions.exists() else None, segment.size, invalid)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _segment(
    source: Path, base_offset: int, paths: tuple[Path, ...], config: SegmentConfig, dialect: Dialect
) -> LogSegment:
    size = config.segment_index_bytes
    return LogSegment(
        _UntouchedLog(source, writable=False, dialect=dialect),
        LazyIndex.for_offset(paths[0], base_offset, size, dialect=dialect),
        LazyIndex.for_time(paths[1], base_offset, size, dialect=dialect),
        TransactionIndex(base_offset, paths[2], dialect=dialect),
        base_offset,
        index_interval_bytes=config.index_interval_bytes,
        dialect=dialect,
    )


@contextlib.contextmanager
def _abandoned(segment: LogSegment) -> Iterator[LogSegment]:
    """Lets go of a segment's files as they are: recovering has trimmed them."""
    try:
        yield segment
    finally:
        segment.abandon()
