"""Cache of remote index files, loaded from its directory by a starting broker (``RemoteIndexCache``; clauses RC)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import DELETED
from kidx.errors import CorruptIndexError, IllegalStateError, InvalidArgumentError, KidxError
from kidx.remote.entry import (
    DIRECTORY,
    KINDS,
    TEMPORARY,
    CacheEntry,
    Index,
    close_unchanged,
    entry_of,
    open_index,
    prefix_of,
    segment_id_of,
    start_offset_of,
    text_of_id,
)
from kidx.remote.errors import CacheError, RemoteResourceNotFoundError, RemoteStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kidx.index.transaction import TxnIndexSearchResult
    from kidx.remote.entry import RemoteSegment


class RemoteStorage(Protocol):
    """Source of the index files of remote segments."""

    def fetch_index(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Return the content of an index file, in pieces.

        Args:
            kind: one of :data:`kidx.remote.entry.KINDS`.

        Raises:
            RemoteResourceNotFoundError: the file does not exist.
            RemoteStorageError: the file cannot be fetched.
        """


class RemoteIndexCache:
    """Index files of remote segments below a log directory.

    Args:
        storage: remote storage that missing files are fetched from.
        max_size: maximum total size of the entries in bytes; in 3.6, maximum number of entries (RC-12).
        ttl_ms: milliseconds after which an unused entry is removed; not positive for never. Releases before 4.3 ignore
            it.
        clock: function that returns the time in milliseconds.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Raises:
        KidxError: a file in the directory has an invalid name or corrupt content (RC-2, RC-5).
        OSError: the directory, or a file in it, cannot be read.
    """

    entry_type: type[CacheEntry] = CacheEntry

    def __init__(
        self,
        log_directory: str | os.PathLike[str],
        storage: RemoteStorage,
        *,
        max_size: int,
        ttl_ms: int = -1,
        clock: Callable[[], int] = lambda: 0,
        dialect: str | Dialect | None = None,
    ) -> None:
        self.dialect = dialect_of(dialect)
        self.directory = Path(log_directory) / DIRECTORY
        self.storage = storage
        self.max_size = max_size
        self.ttl_ms = ttl_ms
        self.is_closed = False
        self._clock = clock
        self._used: dict[bytes, int] = {}  # time of the last use, by the id of the segment
        self._removed: list[CacheEntry] = []  # entries whose renamed files are still to be deleted
        self.entries: dict[bytes, CacheEntry] = self.load()
        for segment_id in self.entries:
            self._used[segment_id] = clock()
        self.evict()

    def load(self) -> dict[bytes, CacheEntry]:
        """Return the entries in the directory, by the ids of their segments (RC-3 … RC-5).

        Raises:
            KidxError, OSError: as the constructor.
        """
        return load(self.directory, self.dialect, self.entry_type)

    # -- lookup --------------------------------------------------------------------------------------------------

    def entry(self, segment: RemoteSegment) -> CacheEntry:
        """Return the entry of a segment; missing and corrupt files are fetched (RC-6).

        Raises:
            IllegalStateError: the cache is closed.
            CorruptIndexError: remote storage has returned a corrupt file.
            CacheError: a file cannot be fetched or opened.
            UnsupportedVersionError: a transaction has a version that the release does not know.
        """
        entry = self._entry(segment)
        self.evict()
        return entry

    def _entry(self, segment: RemoteSegment) -> CacheEntry:
        """Return the entry as :meth:`entry` does, before superfluous entries are removed."""
        if self.is_closed:
            raise self._closed(segment)
        if self._is_expired(segment.id):
            self._evict(segment.id)
        entry = self.entries.get(segment.id)
        if entry is None:
            entry = self.entries[segment.id] = self.create(segment)
        self._used[segment.id] = self._clock()
        return entry

    def _closed(self, segment: RemoteSegment) -> IllegalStateError:
        text = text_of_id(segment.id)
        message = (
            f"segment-id = {text}. RemoteIndexCache is closed."
            if self.dialect.closed_cache == "cache"
            else f"segment id={text}. Instance is already closed."
        )
        return IllegalStateError(f"the cache {self.directory} is closed", f"Unable to fetch index for {message}")

    def lookup_offset(self, segment: RemoteSegment, offset: int) -> int:
        """Return the position in the segment from which to search for an offset.

        Raises:
            KidxError: See :meth:`entry` and :meth:`CacheEntry.lookup_offset`.
        """
        found = self._entry(segment).lookup_offset(offset)
        self.evict()
        return found.position

    def lookup_timestamp(self, segment: RemoteSegment, timestamp: int, starting_offset: int) -> int:
        """Return the position in the segment from which to search for a timestamp.

        Raises:
            KidxError: See :meth:`entry` and :meth:`CacheEntry.lookup_timestamp`.
        """
        found = self._entry(segment).lookup_timestamp(timestamp, starting_offset)
        self.evict()
        return found.position

    def collect_aborted_txns(self, segment: RemoteSegment, fetch_offset: int, upper_bound: int) -> TxnIndexSearchResult:
        """Return the aborted transactions of a range, as ``TransactionIndex.collectAbortedTxns`` does.

        Raises:
            KidxError: See :meth:`entry`.
        """
        found = self._entry(segment).transactions.collect_aborted_txns(fetch_offset, upper_bound)
        self.evict()
        return found

    # -- fetching ----------------------------------------------------------------------------------------------

    def create(self, segment: RemoteSegment) -> CacheEntry:
        """Return an entry of the present files and of files that are fetched.

        Raises:
            KidxError: See :meth:`entry`; files fetched before the error remain in the directory (RC-7).
        """
        try:
            return entry_of(partial(self.open_or_fetch, segment), self.dialect, self.entry_type)
        except OSError as error:
            raise CacheError(f"cannot cache {segment.file_name('')}: {error}", None) from error

    def open_or_fetch(self, segment: RemoteSegment, kind: str) -> Index:
        """Return one of a segment's indexes: the cached file if it is valid, otherwise a new copy of the remote file.

        Raises:
            KidxError: See :meth:`entry`.
            OSError: a file cannot be opened or written.
        """
        path = self.directory / segment.file_name(kind)
        if path.exists():
            try:
                return open_index(path, kind, segment.start_offset, self.dialect)
            except CorruptIndexError:
                pass
        temporary = path.with_name(path.name + TEMPORARY)
        pieces = self._fetch(segment, kind)
        _replace(temporary, pieces)
        temporary.replace(path)
        return open_index(path, kind, segment.start_offset, self.dialect)

    def _fetch(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Return the content of the remote file; empty if the segment has no transaction index (RC-6)."""
        try:
            return self.storage.fetch_index(segment, kind)
        except RemoteStorageError as error:
            if kind == ".txnindex" and isinstance(error, RemoteResourceNotFoundError):
                return ()
            raise CacheError(f"cannot fetch {segment.file_name(kind)}: {error}", None) from error

    # -- removing ----------------------------------------------------------------------------------------------

    def remove(self, *segment_ids: bytes) -> None:
        """Remove entries, so that their files are deleted (RC-11).

        Raises:
            CacheError: a file cannot be renamed; its entry and all later entries remain.
        """
        for segment_id in segment_ids:
            if self._is_expired(segment_id):
                self._evict(segment_id)
            entry = self.entries.get(segment_id)
            if entry is None:
                continue
            try:
                entry.mark()
            except OSError as error:
                raise CacheError(f"cannot remove {entry.offset_index.path}: {error}", None) from error
            self._forget(segment_id)
            self._delete_later(entry)

    def _forget(self, segment_id: bytes) -> None:
        del self.entries[segment_id]
        del self._used[segment_id]

    def _delete_later(self, entry: CacheEntry) -> None:
        if self.is_closed:
            return
        if self.dialect.removed_files == "wait":
            self._removed.append(entry)
        else:
            entry.clean()

    def delete_removed(self) -> None:
        """Delete the files of removed entries, which Kafka does ten seconds after their removal (RC-10)."""
        removed, self._removed = self._removed, []
        for entry in removed:
            entry.clean()

    def resize(self, max_size: int) -> None:
        """Set the limit, and remove superfluous entries.

        Raises:
            InvalidArgumentError: the limit is negative.
        """
        if max_size < 0:
            raise InvalidArgumentError(f"the size of a cache must not be negative: {max_size}", None)
        self.max_size = max_size
        self.evict()

    def evict(self) -> None:
        """Remove the expired entries, then entries above the limit of the cache.

        Kafka's caching library chooses the entries to remove; this class removes the least recently used entry first.
        An entry of 0 bytes is never removed because of the size (RC-12).
        """
        for segment_id in [each for each in self.entries if self._is_expired(each)]:
            self._evict(segment_id)
        for segment_id in [each for each, entry in self.entries.items() if self._weight(entry) > self.max_size]:
            self._evict(segment_id)
        total = sum(map(self._weight, self.entries.values()))
        for segment_id in sorted(self.entries, key=self._used.__getitem__):
            weight = self._weight(self.entries[segment_id])
            if total > self.max_size and weight:
                self._evict(segment_id)
                total -= weight

    def _weight(self, entry: CacheEntry) -> int:
        return 1 if self.dialect.cache_limit == "entries" else entry.size

    def _is_expired(self, segment_id: bytes) -> bool:
        used = self._used.get(segment_id)
        return (
            used is not None
            and self.ttl_ms > 0
            and self.dialect.unused_entries_expire
            and self._clock() - used >= self.ttl_ms
        )

    def _evict(self, segment_id: bytes) -> None:
        """Remove an entry. If its files cannot be renamed, they remain in the directory (RC-11)."""
        entry = self.entries[segment_id]
        self._forget(segment_id)
        try:
            entry.mark()
        except OSError:
            return
        self._delete_later(entry)

    # -- close ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all files. No file is deleted, not even of a removed entry (RC-13). A second call has no effect."""
        if not self.is_closed:
            self.is_closed = True
            self._removed.clear()
            for entry in self.entries.values():
                entry.close()


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file, which replaces a file of that name. After an error, the pieces written so far remain."""
    delete(path)
    with path.open("xb", buffering=0) as file:
        for piece in pieces:
            remaining = memoryview(piece)
            while remaining:
                remaining = remaining[file.write(remaining) :]


def load(directory: Path, dialect: Dialect, entry_type: type[CacheEntry] = CacheEntry) -> dict[bytes, CacheEntry]:
    """Return the entries of all segments with three files; leftovers and incomplete segments are deleted.

    Args:
        directory: directory of the cache; created if it does not exist.
        dialect: rules of the broker's release.

    Raises:
        KidxError: a file has an invalid name or corrupt content.
        CacheError: the directory cannot be created, or a leftover cannot be deleted.
        OSError: the directory, or a file in it, cannot be read.
    """
    try:
        directory.mkdir()
    except FileExistsError:
        pass
    except OSError as error:
        raise CacheError(f"cannot create {directory}: {error}", None) from error
    _delete_leftovers(directory, dialect)
    entries: dict[bytes, CacheEntry] = {}
    try:
        with os.scandir(directory) as listed:
            for file in listed:
                segment_id = segment_id_of(file.name)
                if segment_id in entries:
                    continue
                if is_complete(directory, prefix_of(file.name)):
                    entries[segment_id] = open_entry(directory, file.name, dialect, entry_type)
                else:
                    delete_files(directory, prefix_of(file.name))
    except BaseException:
        release_handles(entries)
        raise
    return entries


def release_handles(entries: Mapping[bytes, CacheEntry]) -> None:
    """Close all files without changing them."""
    for entry in entries.values():
        for index in entry.indexes:
            close_unchanged(index)


def is_leftover(name: str, dialect: Dialect) -> bool:
    """Return True if a file has the name of an interrupted fetch or deletion, so that loading deletes it (RC-4)."""
    if dialect.cache_leftovers == "suffix":
        return name.endswith((DELETED, TEMPORARY))
    return name in (DELETED, TEMPORARY)  # compared with the whole last part of the path


def _delete_leftovers(directory: Path, dialect: Dialect) -> None:
    with os.scandir(directory) as listed:
        for file in listed:
            if is_leftover(file.name, dialect):
                try:
                    delete(Path(file.path))
                except OSError as error:
                    raise CacheError(f"cannot delete {file.path}: {error}", None) from error


def is_complete(directory: Path, prefix: str) -> bool:
    """Return True if a segment has its three files."""
    return all((directory / (prefix + kind)).exists() for kind in KINDS)


def open_entry(directory: Path, name: str, dialect: Dialect, entry_type: type[CacheEntry] = CacheEntry) -> CacheEntry:
    """Return the entry that a file belongs to.

    Raises:
        KidxError: the name has no offset, or a file is corrupt.
        OSError: a file cannot be read.
    """
    start_offset, prefix = start_offset_of(name), prefix_of(name)

    def open_one(kind: str) -> Index:
        return open_index(directory / (prefix + kind), kind, start_offset, dialect)

    return entry_of(open_one, dialect, entry_type)


def delete_files(directory: Path, prefix: str) -> None:
    """Delete the files of an incomplete segment; after an error, the other files are deleted nevertheless.

    Raises:
        OSError: a file cannot be deleted.
    """
    failed: OSError | None = None
    for kind in KINDS:
        try:
            delete(directory / (prefix + kind))
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def delete(path: Path) -> None:
    """Delete a path like Java's ``Files.deleteIfExists``, which also deletes an empty directory."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


class CacheFault(NamedTuple):
    """File that prevents the cache from opening, and so the broker from starting.

    Attributes:
        clause: RC-2 for an invalid name, RC-5 for a corrupt file.
        reason: description of the problem.
        is_copy: True if the file is a copy of a remote file. It may be deleted, because the broker fetches it again.
    """

    path: Path
    clause: str
    reason: str
    is_copy: bool = False


def faults_of(directory: Path, dialect: Dialect) -> list[CacheFault]:
    """Return the faults of a cache's files in the order of their names; empty if the broker can open it.

    Args:
        dialect: rules of the broker's release.

    Raises:
        OSError: the directory cannot be read.
    """
    faults: list[CacheFault] = []
    prefixes: dict[str, None] = {}
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 -- needs names, not paths
        if is_leftover(name, dialect):
            continue
        try:
            segment_id_of(name)
        except KidxError:
            reason = "is not a file of the cache, and its name prevents the broker from starting: move it out of there"
            faults.append(CacheFault(directory / name, "RC-2", reason))
        else:
            prefixes[prefix_of(name)] = None
    for prefix in prefixes:
        if is_complete(directory, prefix):
            faults += _faults_of_segment(directory, prefix, dialect)
    return faults


def _faults_of_segment(directory: Path, prefix: str, dialect: Dialect) -> Iterator[CacheFault]:
    try:
        start_offset = start_offset_of(prefix)
    except KidxError:
        for kind in KINDS:
            reason = "has a name that does not begin with an offset: move it out of there"
            yield CacheFault(directory / (prefix + kind), "RC-2", reason)
        return
    for kind in KINDS:
        path = directory / (prefix + kind)
        try:
            close_unchanged(open_index(path, kind, start_offset, dialect, must_exist=True))
        except KidxError as error:
            problem = str(error).removeprefix(f"{path} ").removeprefix(f"{path}: ")
            yield CacheFault(path, "RC-5", f"{problem}: delete it, the broker fetches it again", is_copy=True)
        except OSError as error:
            yield CacheFault(path, "RC-5", f"cannot be opened: {error.strerror or error}", is_copy=True)
