"""Repair of the cache of remote index files: corrupt copies are deleted, and the broker fetches them again (RC-5)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.remote.entry import DIRECTORY
from kidx.remote.loading import CacheFault, faults_of

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def cache_faults(log_directories: Iterable[Path], dialect: Dialect) -> list[CacheFault]:
    """Return the faults that prevent a broker from opening the caches below some log directories."""
    if not dialect.has_remote_index_cache:
        return []
    found: list[CacheFault] = []
    for cache in sorted({each.absolute() / DIRECTORY for each in log_directories}):
        try:
            found += faults_of(cache, dialect) if cache.is_dir() else []
        except OSError as error:
            found.append(CacheFault(cache, "RC-2", f"cannot be read: {error.strerror or error}"))
    return found


def delete_copy(fault: CacheFault, *, dry_run: bool) -> int:
    """Delete a corrupt copy of a remote file, and return its former size in bytes.

    Raises:
        OSError: the path is not a regular file, or cannot be deleted.
    """
    if fault.path.is_symlink() or not fault.path.is_file():
        raise OSError("only a regular file is deleted, not a link or a directory")
    size = fault.path.stat().st_size
    if not dry_run:
        fault.path.unlink()
    return size
