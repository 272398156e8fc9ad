"""View of a partition's files in a scratch directory. A log can load and change the view, but not the files.

A ``.log`` is not copied: the view has a small file with the path of the ``.log``, which is read in place, and truncated
and appended to only in memory. The small file can also say that the ``.log`` ends earlier, or has another number at a
position. Index files are copied when they are opened. Snapshots and checkpoints are copied immediately.
"""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from kidx.discovery import EPOCHS
from kidx.files import pieces_with_data, read_small, regular
from kidx.index.lazy import LazyIndex
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.log import UnifiedLog
from kidx.log.retention import delete_by_rule
from kidx.records.file_bytes import FileBytes
from kidx.segment import LogSegment
from kidx.segment.file_records import FileRecords
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kidx.dialect import Dialect
    from kidx.log.retention import Rule
    from kidx.records import Buffer

_MARK: Final = f"kidx {secrets.token_hex(16)} ".encode()
"""Prefix of a file that represents another file; random, so that no file of a broker begins with it."""
_LARGEST_MARKED: Final = 1 << 14
"""Maximum size in bytes of a file that represents another: the prefix, and the path of the other file."""
_LARGEST_COPIED: Final = 256 << 20
"""Maximum size in bytes of a file that is copied or compared as a whole."""
_INDEX_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Shown(NamedTuple):
    """File as a view shows it.

    Attributes:
        source: path of the file.
        size: number of bytes that are shown; None for all.
        position: position of the bytes that are replaced.
        data: bytes that are shown there.
    """

    source: Path
    size: int | None = None
    position: int = 0
    data: bytes = b""

    def write(self, path: Path) -> None:
        """Write the small file that represents this one."""
        size = -1 if self.size is None else self.size
        fields = f"{size} {self.position} {self.data.hex() or '-'} "
        path.write_bytes(_MARK + fields.encode() + os.fsencode(self.source.absolute()))


def shown_by(path: Path) -> Shown | None:
    """Return the file that a file of a view represents; None if it represents no other file."""
    try:
        if path.stat().st_size > _LARGEST_MARKED:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    if not data.startswith(_MARK):
        return None
    size, position, replaced, source = data.removeprefix(_MARK).split(b" ", 3)
    replacement = b"" if replaced == b"-" else bytes.fromhex(replaced.decode())
    return Shown(Path(os.fsdecode(source)), None if size == b"-1" else int(size), int(position), replacement)


def source_of(path: Path) -> Path | None:
    """Return the path of the file that a file of a view represents; None if it represents no other file."""
    shown = shown_by(path)
    return None if shown is None else shown.source


def make_view(files: Mapping[str, Path], scratch: Path) -> None:
    """Fill a scratch directory with the view of a partition's files.

    Args:
        files: paths of regular files, which are only read, by their names in the view; and of directories that are
            named like a snapshot.
        scratch: an empty directory.

    Raises:
        OSError: a small file cannot be read.
    """
    for name, source in files.items():
        kind = name.partition(".")[2].partition(".")[0]
        if kind == "snapshot" and source.is_dir():
            (scratch / name).mkdir()
        elif kind == "snapshot" or name == EPOCHS:
            (scratch / name).write_bytes(read_small(source, limit=_LARGEST_COPIED))
        elif kind in {"log", "index", "timeindex", "txnindex"}:
            (shown_by(source) or Shown(source)).write(scratch / name)


def rewritten_indexes(directory: Path, view: Path) -> frozenset[str]:
    """Return the names of the index files of a view that are new, or have other entries than the directory's files.

    Zeros at the end are no entries: the index of an active segment has a preallocated tail. A new time index without
    entries is not counted if the offset index existed, because then the start has not read the segment for it.
    """
    found = set()
    for path in view.iterdir():
        if path.suffix not in _INDEX_SUFFIXES or source_of(path) is not None:
            continue
        original = directory / path.name
        before = _entries_in(original) if original.is_file() else None
        after = _entries_in(path)
        is_made_empty = before is None and not after and path.suffix == TIME_INDEX_SUFFIX
        if after != before and not (is_made_empty and original.with_suffix(OFFSET_INDEX_SUFFIX).is_file()):
            found.add(path.name)
    return frozenset(found)


def _entries_in(path: Path) -> bytes:
    """Return the bytes of an index file up to the zeros at its end; holes are not read.

    Raises:
        OSError: the file cannot be read, or is too large.
    """
    parts, reached = [], 0
    with regular(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > _LARGEST_COPIED:
            raise OSError(errno.EFBIG, f"Is larger than {_LARGEST_COPIED} bytes", os.fspath(path))
        for position, data in pieces_with_data(descriptor, size):
            parts += [bytes(position - reached), data]
            reached = position + len(data)
    return b"".join(parts).rstrip(b"\0")


def _fetch(path: Path) -> None:
    """Replace a file that represents an index by a copy of the index; holes remain holes."""
    source = source_of(path)
    if source is None:
        return
    with regular(source) as descriptor, path.open("wb") as file:
        size = os.fstat(descriptor).st_size
        for position, data in pieces_with_data(descriptor, size):
            file.seek(position)
            file.write(data)
        file.truncate(size)


class _ViewedBytes(FileBytes):
    """Buffer over the first bytes of a file, of which some are replaced, and over bytes in memory after them."""

    __slots__ = ("_kept", "_more", "_shown")

    def __init__(self, file: int, name: str, kept: int, more: bytes, shown: Shown) -> None:
        super().__init__(file, name)
        self._kept, self._more, self._shown = kept, more, shown

    def __len__(self) -> int:
        return self._kept + len(self._more)

    def __getitem__(self, where: slice) -> bytes:
        start, end, _ = where.indices(len(self))
        own = super().__getitem__(slice(start, min(end, self._kept)))
        first, last = self._shown.position, self._shown.position + len(self._shown.data)
        if start < last and first < end:
            low, high = max(first, start), min(last, end)
            own = own[: low - start] + self._shown.data[low - first : high - first] + own[high - start :]
        return own + self._more[max(start - self._kept, 0) : max(end - self._kept, 0)]


class ViewedRecords(FileRecords):
    """A ``.log`` that is read in place, and truncated and appended to only in memory.

    Attributes:
        source: path of the file that is read; None for a file of the view itself.
        is_changed: True if the log was truncated or appended to.
        is_edited: True if the view shows the file with a change.
    """

    def __init__(self, path: Path, *, dialect: Dialect, **options: Any) -> None:
        self._shown = shown_by(path) or Shown(path)
        self.source = None if self._shown.source == path else self._shown.source
        self.is_changed = False
        self.is_edited = self._shown.size is not None or bool(self._shown.data)
        super().__init__(self.source or path, writable=self.source is None, dialect=dialect, **options)
        self.path = path
        if self._shown.size is not None:
            self.size_in_bytes = min(self.size_in_bytes, self._shown.size)
        self._kept, self._more = self.size_in_bytes, b""

    def truncate_to(self, target_size: int) -> int:
        """Forget the bytes from ``target_size`` on."""
        if self.source is None:
            return super().truncate_to(target_size)
        cut, self.size_in_bytes = self.size_in_bytes - target_size, target_size
        self.is_changed |= cut > 0
        self._more = self._more[: max(target_size - self._kept, 0)]
        self._kept = min(self._kept, target_size)
        return cut

    def append(self, records: bytes) -> int:
        """Add bytes at the end."""
        if self.source is None:
            return super().append(records)
        self.is_changed = True
        self._more += records
        self.size_in_bytes += len(records)
        return len(records)

    def _content(self) -> Buffer:
        if not self._more and not self._shown.data:
            return super()._content()
        return _ViewedBytes(self._channel(), str(self.path), self._kept, self._more, self._shown)

    def flush(self) -> None:
        """Do nothing, because a view is temporary."""


class ViewedSegment(LogSegment):
    """A segment of a view."""

    log: ViewedRecords

    @property
    def last_modified(self) -> int:
        """Time of the last write to the log, which is now if a start or its operator changes it."""
        if self.log.source is None or self.log.is_changed or self.log.is_edited:
            return self.clock()
        return self.log.source.stat().st_mtime_ns // 1_000_000

    @classmethod
    def _open_log(cls, path: Path, dialect: Dialect, **options: Any) -> FileRecords:
        """Open the log, for which a view reserves no bytes."""
        return ViewedRecords(path, dialect=dialect, file_already_exists=options["file_already_exists"])

    @classmethod
    def _open_indexes(
        cls, path: Callable[[str], Path], base_offset: int, size: int, dialect: Dialect
    ) -> tuple[LazyIndex[OffsetIndex], LazyIndex[TimeIndex], TransactionIndex]:
        """Return the indexes, whose files are fetched when they are opened."""

        def offset_index(path: Path) -> OffsetIndex:
            _fetch(path)
            return OffsetIndex(path, base_offset, size, dialect=dialect)

        def time_index(path: Path) -> TimeIndex:
            _fetch(path)
            return TimeIndex(path, base_offset, size, dialect=dialect)

        transactions = path(TRANSACTION_INDEX_SUFFIX)
        _fetch(transactions)
        return (
            LazyIndex(path(OFFSET_INDEX_SUFFIX), offset_index),
            LazyIndex(path(TIME_INDEX_SUFFIX), time_index),
            TransactionIndex(base_offset, transactions, dialect=dialect),
        )


class ViewedLog(UnifiedLog):
    """A log whose directory is a view."""

    segment_type = ViewedSegment

    def __init__(self, *arguments: Any, **options: Any) -> None:
        try:
            super().__init__(*arguments, **options)
        except BaseException:
            for segment in getattr(self, "segments", ()):
                segment.close_handlers()  # else each log that cannot be loaded keeps all its files open
            raise

    def expire(self) -> dict[Rule, list[ViewedSegment]]:
        """Apply retention once, with all records replicated; return the deleted segments by the rule.

        Raises:
            KidxError, OSError: as :meth:`UnifiedLog.delete_old_segments`.
        """
        self.update_high_watermark(self.end_offset)
        with self._operation():
            return cast("dict[Rule, list[ViewedSegment]]", delete_by_rule(self))
