"""Loading of the cache's directory by a starting broker (``RemoteIndexCache.init``; RC-3 … RC-5)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kidx.errors import KidxError
from kidx.remote.entry import (
    DELETED,
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
)
from kidx.remote.errors import CacheError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kidx.dialect import Dialect


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
        path: path of the file.
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
