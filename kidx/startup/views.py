"""View of a partition's files in a scratch directory, which a log can load and change; the files stay as they are.

A ``.log`` is not copied: a file in the view has its path, and it is read there and truncated in memory only. Index
files are copied when they are opened. Small files, such as snapshots and checkpoints, are copied first.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import EPOCHS, LOG
from kidx.files import pieces_with_data, read_small, regular
from kidx.index.lazy import LazyIndex
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.log import UnifiedLog
from kidx.segment import Clock, LogSegment, SegmentConfig, file_name, system_clock
from kidx.segment.file_records import FileRecords
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

_MARK: Final = f"kidx {secrets.token_hex(16)} ".encode()
"""How a file begins that stands for another one; drawn, so that no file of a broker begins like that."""
_MARKED_SIZE: Final = 1 << 14
_SMALL: Final = 256 << 20
INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def make_view(directory: Path, names: Iterable[str], scratch: Path) -> None:
    """Fill a scratch directory with the view of a partition's files.

    Args:
        directory: directory of the partition; only read.
        names: names of its regular files.
        scratch: an empty directory.

    Raises:
        OSError: a small file cannot be read.
    """
    for name in names:
        source = directory / name
        kind = name.partition(".")[2].partition(".")[0]
        if kind == "snapshot" or name == EPOCHS:
            (scratch / name).write_bytes(read_small(source, limit=_SMALL))
        elif kind in {"log", "index", "timeindex", "txnindex"}:
            (scratch / name).write_bytes(_MARK + os.fsencode(source.absolute()))


def source_of(path: Path) -> Path | None:
    """Return the file that a file of a view represents; None if it represents no other file."""
    try:
        if path.stat().st_size > _MARKED_SIZE:
            return None
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return Path(os.fsdecode(data.removeprefix(_MARK))) if data.startswith(_MARK) else None


def rewritten_indexes(directory: Path, view: Path) -> frozenset[str]:
    """Return the names of the index files of a view with other entries than the files in the directory.

    Zeros at the end are no entries: an active segment's index has room for more.
    """
    found = set()
    for path in view.iterdir():
        if path.suffix not in INDEX_SUFFIXES or source_of(path) is not None:
            continue
        own = directory / path.name
        before = read_small(own, limit=_SMALL) if own.is_file() else b""
        if read_small(path, limit=_SMALL).rstrip(b"\0") != before.rstrip(b"\0"):
            found.add(path.name)
    return frozenset(found)


def _fetch(path: Path) -> None:
    """Replace a file that represents an index by a copy of the index; holes stay holes."""
    source = source_of(path)
    if source is None:
        return
    with regular(source) as descriptor, path.open("wb") as file:
        size = os.fstat(descriptor).st_size
        for position, data in pieces_with_data(descriptor, size):
            file.seek(position)
            file.write(data)
        file.truncate(size)


class _ViewedLog(FileRecords):
    """A ``.log`` that is read where it lies, and cut in memory only."""

    def __init__(self, path: Path, *, dialect: Dialect, **options: Any) -> None:
        source = source_of(path)
        self.is_foreign = source is not None
        super().__init__(source or path, writable=source is None, dialect=dialect, **options)
        self.path = path

    def truncate_to(self, target_size: int) -> int:
        """Forget the bytes from ``target_size`` on."""
        if not self.is_foreign:
            return super().truncate_to(target_size)
        cut, self.size_in_bytes = self.size_in_bytes - target_size, target_size
        return cut

    def flush(self) -> None:
        """Do nothing: a view need not last."""


class _ViewedSegment(LogSegment):
    """A segment of a view."""

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        base_offset: int,
        config: SegmentConfig | None = None,
        *,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        clock: Clock = system_clock,
        dialect: str | Dialect | None = None,
    ) -> Self:
        """Open or create the segment, as :meth:`LogSegment.open`."""
        del init_file_size, preallocate
        config, rules, parent = config or SegmentConfig(), dialect_of(dialect), Path(directory)

        def path(suffix: str) -> Path:
            return parent / (file_name(base_offset, suffix) + file_suffix)

        def offset_index(path: Path) -> OffsetIndex:
            _fetch(path)
            return OffsetIndex(path, base_offset, config.segment_index_bytes, dialect=rules)

        def time_index(path: Path) -> TimeIndex:
            _fetch(path)
            return TimeIndex(path, base_offset, config.segment_index_bytes, dialect=rules)

        transactions = path(TRANSACTION_INDEX_SUFFIX)
        _fetch(transactions)
        return cls(
            _ViewedLog(path(LOG), dialect=rules, file_already_exists=file_already_exists),
            LazyIndex(path(OFFSET_INDEX_SUFFIX), offset_index),
            LazyIndex(path(TIME_INDEX_SUFFIX), time_index),
            TransactionIndex(base_offset, transactions, dialect=rules),
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            roll_jitter_ms=0,
            clock=clock,
            dialect=rules,
        )


class ViewedLog(UnifiedLog):
    """A log whose directory is a view."""

    segment_type = _ViewedSegment
