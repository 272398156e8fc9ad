"""Errors that a starting broker would find in a cache's directory; the directory is not changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kidx.errors import KidxError
from kidx.remote.entry import close_unchanged, open_index
from kidx.remote.loading import is_complete, is_leftover
from kidx.remote.names import KINDS, prefix_of, segment_id_of, start_offset_of

if TYPE_CHECKING:
    from kidx.dialect import Dialect


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
        directory: directory of the cache.
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
