"""Three index files of one remote segment in the cache, and their names (``RemoteIndexCache.Entry``; RC-1, RC-2)."""

from __future__ import annotations

import base64
import contextlib
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import DELETED
from kidx.errors import IllegalStateError, InvalidArgumentError, OutOfBoundsError
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex
from kidx.index.transaction import TransactionIndex
from kidx.java_values import INT_MAX, LONG_MAX, LONG_MIN
from kidx.remote.errors import InvalidNumberError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.index.offset import OffsetPosition

DIRECTORY: Final = "remote-log-index-cache"
"""Name of the cache's directory below a log directory."""
KINDS: Final = (".index", ".timeindex", ".txnindex")
"""Kinds of files of a remote segment, in the order in which they are fetched."""
TEMPORARY: Final = ".tmp"
"""Suffix of a file that is being fetched."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d+")


class RemoteSegment(NamedTuple):
    """Segment in remote storage.

    Attributes:
        start_offset: offset of the first record.
        id: the segment's id, sixteen bytes.
    """

    start_offset: int
    id: bytes

    def file_name(self, kind: str) -> str:
        """Return the name of a cached file; the kind is one of :data:`KINDS`."""
        return f"{self.start_offset}_{text_of_id(self.id)}{kind}"


def text_of_id(segment_id: bytes) -> str:
    """Return an id as Kafka prints it: base64 of the URL alphabet without padding."""
    return base64.urlsafe_b64encode(segment_id).decode().rstrip("=")


def id_from_text(text: str) -> bytes:
    """Return the id that a text encodes; the unused bits of the last character are ignored.

    Raises:
        InvalidArgumentError: the text is not base64 of sixteen bytes.
    """
    if not _ID.fullmatch(text):
        raise InvalidArgumentError(f"{text!r} is not the id of a segment, which has 22 characters of base64", None)
    return base64.urlsafe_b64decode(f"{text[:22]}==")


def prefix_of(name: str) -> str:
    """Return the part of a name before the first full stop: start offset and id."""
    return name.partition(".")[0]


def segment_id_of(name: str) -> bytes:
    """Return the id in the name of a file, whatever follows its first full stop.

    Raises:
        OutOfBoundsError: no full stop follows the first underscore.
        InvalidArgumentError: the part between them is not an id.
    """
    underscore, stop = name.find("_"), name.find(".")
    if underscore + 1 > stop:
        raise OutOfBoundsError(
            f"{name!r} is not the name of a cached file: it has no full stop after an underscore", None
        )
    return id_from_text(name[underscore + 1 : stop])


def start_offset_of(name: str) -> int:
    """Return the start offset in the name of a file.

    Raises:
        OutOfBoundsError: the name has no underscore.
        InvalidNumberError: the part before it is not a 64-bit number.
    """
    underscore = name.find("_")
    if underscore < 0:
        raise OutOfBoundsError(f"{name!r} is not the name of a cached file: it has no underscore", None)
    number = name[:underscore]
    if not _NUMBER.fullmatch(number) or not LONG_MIN <= int(number) <= LONG_MAX:
        raise InvalidNumberError(f"{number!r} in the name {name!r} is not an offset", None)
    return int(number)


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
        kind: one of :data:`kidx.remote.entry.KINDS`.
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
        open_one: function that opens the index of a kind in :data:`kidx.remote.entry.KINDS`.
        dialect: rules of the broker's release.

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
