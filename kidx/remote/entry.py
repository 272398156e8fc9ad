"""The three index files of one remote segment in the cache (``RemoteIndexCache.Entry``)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.errors import IllegalStateError
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.java_numbers import INT_MAX
from kidx.remote.names import DELETED, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kidx.dialect import Dialect
    from kidx.index.entries import OffsetPosition

Index = OffsetIndex | TimeIndex | TransactionIndex


class _ExistingOffsetIndex(OffsetIndex):
    """Offset index that does not create a missing file."""

    creation = os.O_RDONLY


class _ExistingTimeIndex(TimeIndex):
    """Time index that does not create a missing file."""

    creation = os.O_RDONLY


def open_index(path: Path, kind: str, start_offset: int, dialect: Dialect, *, must_exist: bool = False) -> Index:
    """Return a cached file opened as Kafka opens it: read-only, except for transactions.

    Args:
        path: path of the file.
        kind: one of :data:`kidx.remote.names.KINDS`.
        start_offset: start offset of the segment.
        dialect: rules of the broker's release.
        must_exist: True to open the file without write permission, and never to create it.

    Raises:
        CorruptIndexError: the sanity check fails (RC-5).
        UnsupportedVersionError: a transaction has a version that the release does not know.
        OSError: the file cannot be opened.
    """
    index: Index
    if kind == ".txnindex":
        index = TransactionIndex(start_offset, path, writable=not must_exist, dialect=dialect)
    else:
        offsets, times = (_ExistingOffsetIndex, _ExistingTimeIndex) if must_exist else (OffsetIndex, TimeIndex)
        type_ = offsets if kind == ".index" else times
        index = type_(path, start_offset, INT_MAX, writable=False, dialect=dialect)
    try:
        index.sanity_check()
    except BaseException:
        close_unchanged(index)
        raise
    return index


def close_unchanged(index: Index) -> None:
    """Close an index without changing its file."""
    if isinstance(index, TransactionIndex):
        index.close()
    else:
        index.close_handler()


def entry_of(open_one: Callable[[str], Index], dialect: Dialect, entry_type: type[CacheEntry]) -> CacheEntry:
    """Return an entry of three indexes, one of each kind, which a function opens. After an error, all are closed.

    Args:
        open_one: function that opens the index of a kind in :data:`kidx.remote.names.KINDS`.
        dialect: rules of the broker's release.
        entry_type: class of the entry.

    Raises:
        KidxError, OSError: as ``open_one``.
    """
    opened: list[Index] = []
    try:
        for kind in KINDS:
            opened.append(open_one(kind))  # noqa: PERF401 -- opened files are closed after an error
        return entry_type(*opened, dialect)  # type: ignore[arg-type, call-arg]
    except BaseException:
        for index in opened:
            close_unchanged(index)
        raise


class CacheEntry:
    """Open index files of a remote segment.

    Args:
        offset_index: offset index of the segment.
        time_index: time index of the segment.
        transactions: transaction index of the segment.
        dialect: rules of the broker's release.

    Attributes:
        size: total size of entries and transactions in bytes when the entry was created.
        is_marked: True if the renaming of the files for deletion has begun or ended.
        is_cleaned: True if the files have been deleted.
    """

    def __init__(
        self, offset_index: OffsetIndex, time_index: TimeIndex, transactions: TransactionIndex, dialect: Dialect
    ) -> None:
        self.offset_index, self.time_index, self.transactions = offset_index, time_index, transactions
        self.is_marked = False
        self.is_cleaned = False
        self._dialect = dialect
        self.size = offset_index.size_in_bytes + time_index.size_in_bytes + transactions.path.stat().st_size

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The three files, in the order in which they are fetched."""
        return self.offset_index, self.time_index, self.transactions

    def lookup_offset(self, target: int) -> OffsetPosition:
        """Return the entry with the largest offset not above a target, as ``OffsetIndex.lookup`` does.

        Raises:
            IllegalStateError: the entry has been removed (RC-9).
            ClosedError: the cache is closed.
        """
        self._check_present()
        return self.offset_index.lookup(target)

    def lookup_timestamp(self, timestamp: int, starting_offset: int) -> OffsetPosition:
        """Return the entry at the offset that the time index returns for a timestamp (RC-8).

        Args:
            timestamp: milliseconds.
            starting_offset: minimum offset of the search.

        Raises:
            IllegalStateError: See :meth:`lookup_offset`.
            ClosedError: the cache is closed.
        """
        self._check_present()
        return self.offset_index.lookup(max(starting_offset, self.time_index.lookup(timestamp).offset))

    def _check_present(self) -> None:
        if self.is_cleaned or (self.is_marked and self._dialect.marked_entries == "reject"):
            raise IllegalStateError(
                f"{self.offset_index.path} has been removed from the cache", "This entry is marked for cleanup"
            )

    def mark(self) -> None:
        """Rename the files for deletion (RC-11).

        Raises:
            OSError: a file cannot be renamed; the later files are not renamed.
        """
        if not self.is_marked:
            self.is_marked = True
            for index in self.indexes:
                index.rename_to(f"{index.path}{DELETED}")

    def clean(self) -> None:
        """Delete the files under their current names."""
        if self.is_cleaned:
            return
        self.is_cleaned = True
        for index in self.indexes:
            with contextlib.suppress(OSError):
                index.delete_if_exists()

    def close(self) -> None:
        """Close the files without deleting them."""
        for index in self.indexes:
            index.close()
