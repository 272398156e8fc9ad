"""Loading of the cache's directory by a starting broker (``RemoteIndexCache.init``; RC-3 … RC-5).

The files are processed in the order in which the operating system lists them. The first error ends the start; changes
made before it remain.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.remote.entry import CacheEntry, Index, close_unchanged, entry_of, open_index
from kidx.remote.errors import CacheError
from kidx.remote.names import DELETED, KINDS, TEMPORARY, prefix_of, segment_id_of, start_offset_of

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def load(directory: Path, dialect: Dialect, entry_type: type[CacheEntry] = CacheEntry) -> dict[bytes, CacheEntry]:
    """Return the entries of all segments with three files; leftovers and incomplete segments are deleted.

    Args:
        directory: directory of the cache; created if it does not exist.
        dialect: rules of the broker's release.
        entry_type: class of the entries.

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
