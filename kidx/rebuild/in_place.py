"""Putting rebuilt index files where the old ones are, so that no moment leaves the segment without or with half of one.

The new files are written beside the log under another name and synced; each old file then gets another name, and the
new one takes its place at once. While this goes on the log directory's lock is held, as a broker holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import ToolError
from kidx.rebuild.segment import Rebuilt, rebuild
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.segment import ProducerState

LOCK_FILE: Final = ".lock"
"""What a broker locks in each of its log directories while it runs (``FileLock``)."""

_SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Replaced(NamedTuple):
    """What was done in place.

    Attributes:
        rebuilt: the new files.
        kept: the old ones under their new names, of those that were replaced.
    """

    rebuilt: Rebuilt
    kept: list[Path]


@contextlib.contextmanager
def broker_lock(log_directory: Path) -> Iterator[None]:
    """Holds the lock of a log directory, if it has one.

    Raises:
        ToolError: a broker holds it, or it cannot be opened.
    """
    path = log_directory / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:  # no broker ever had this directory
        yield
        return
    except OSError as error:
        raise ToolError(f"{path} cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ToolError(f"{log_directory} is in use: a broker holds {path}; stop it first") from error
        yield
    finally:
        os.close(descriptor)


def rebuild_in_place(
    segment_log: Path, dialect: Dialect, index_interval_bytes: int, producer_state: ProducerState | None
) -> Replaced:
    """Rebuilds the indexes of a segment and puts them in the place of the old ones, which are kept as ``.old``.

    Raises:
        ToolError: a broker holds the log directory.
        KidxError, OSError: as :func:`kidx.rebuild.rebuild`; the old files are as they were.
    """
    directory = segment_log.absolute().parent
    with broker_lock(directory.parent):
        # On the same file system, or the new files could not take the old ones' place at once.
        work = Path(tempfile.mkdtemp(prefix="kidx-rebuild-", dir=directory))
        try:
            rebuilt = rebuild(
                segment_log,
                work,
                dialect=dialect,
                index_interval_bytes=index_interval_bytes,
                producer_state=producer_state,
            )
            for path in work.iterdir():
                _sync(path)
            kept = [kept for suffix in _SUFFIXES if (kept := _replace(work, segment_log.with_suffix(suffix)))]
            _sync(directory)
        finally:
            shutil.rmtree(work)
    offset_index, time_index = (directory / path.name for path in (rebuilt.offset_index, rebuilt.time_index))
    transactions = directory / rebuilt.txn_index.name if rebuilt.txn_index else None
    return Replaced(rebuilt._replace(offset_index=offset_index, time_index=time_index, txn_index=transactions), kept)


def _replace(work: Path, path: Path) -> Path | None:
    """Puts ``work``'s file of that name in the place of ``path``, unless both are alike; where the old one is now."""
    new = work / path.name
    if not path.exists():
        if new.exists():
            shutil.copymode(path.with_suffix(".log"), new)
            new.replace(path)
        return None
    same = new.exists() and filecmp.cmp(path, new, shallow=False)
    if same and os.path.lexists(path.with_name(f"{path.name}.old")):
        return None  # what was kept before is what there was to keep
    kept = _kept(path)
    if new.exists():
        shutil.copymode(path, new)
        new.replace(path)
    else:
        path.unlink()  # no transaction was aborted, and Kafka then has no such file
    return kept


def _kept(path: Path) -> Path:
    """Another name of a file: of a copy that has been kept before, or a new one."""
    for number in itertools.count(1):
        candidate = path.with_name(f"{path.name}.old{number if number > 1 else ''}")
        if not os.path.lexists(candidate):
            os.link(path, candidate)  # both names for a moment: the segment is never without its index
            return candidate
        if candidate.is_file() and filecmp.cmp(path, candidate, shallow=False):
            return candidate
    raise AssertionError("counting has no end")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
