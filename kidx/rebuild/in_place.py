"""Replacement of index files by rebuilt files. At no moment does the segment lack a file or have half a file.

The new files are written in a directory next to the log and synced. Each old file then gets a second name, which is
synced too, and only then the new file replaces it, in one step. The next rebuild removes the files that a crash leaves.
"""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.errors import ToolError
from kidx.files import sync
from kidx.rebuild.lock import broker_locks, log_directories_of
from kidx.rebuild.segment import Rebuilt, rebuild
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.segment import ProducerState

WORK: Final = ".kidx-rebuild"
"""Name of the directory for new files; brokers ignore directories."""

SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Replaced(NamedTuple):
    """Result of a rebuild in place.

    Attributes:
        rebuilt: the new files.
        backups: the replaced files under their new names.
    """

    rebuilt: Rebuilt
    backups: list[Path]


def rebuild_in_place(
    segment_log: Path, dialect: Dialect, index_interval_bytes: int, producer_state: ProducerState | None
) -> Replaced:
    """Rebuild the indexes of a segment and replace the old files, which are kept as ``.old``.

    Args:
        segment_log: the ``.log`` file.
        dialect: rules of a release.
        index_interval_bytes: the topic's ``index.interval.bytes``.
        producer_state: the producers at the start of the segment; None for no producers.

    Raises:
        ToolError: a broker holds the log directory.
        KidxError, OSError: as :func:`kidx.rebuild.rebuild`; the old files are unchanged.
    """
    directory = segment_log.absolute().parent
    with broker_locks(log_directories_of(directory)), work_directory(directory) as work:
        rebuilt = rebuild(
            segment_log,
            work,
            dialect=dialect,
            index_interval_bytes=index_interval_bytes,
            producer_state=producer_state,
        )
        paths = [segment_log.with_suffix(suffix) for suffix in SUFFIXES]
        # The first backup contains the unchanged files, too, so that the set of old files is complete.
        changing = [path for path in paths if not (_same(work, path) and os.path.lexists(_old(path, 1)))]
        backups = list(swap_in(work, changing, segment_log).values())
    offset_index, time_index = (directory / path.name for path in (rebuilt.offset_index, rebuilt.time_index))
    transactions = directory / rebuilt.txn_index.name if rebuilt.txn_index else None
    return Replaced(rebuilt._replace(offset_index=offset_index, time_index=time_index, txn_index=transactions), backups)


@contextlib.contextmanager
def work_directory(directory: Path) -> Iterator[Path]:
    """Provide an empty directory for new files on the file system of the old ones, for one process at a time.

    Raises:
        ToolError: another process uses the directory.
        OSError: the directory cannot be created.
    """
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ToolError(f"{directory} is in use: another kidx is rebuilding indexes there") from error
        work = directory / WORK
        if os.path.lexists(work):
            shutil.rmtree(work)  # left by a rebuild that was killed
        work.mkdir(mode=0o700)
        try:
            yield work
        finally:
            shutil.rmtree(work)
    finally:
        os.close(lock)


def swap_in(work: Path, paths: Iterable[Path], like: Path) -> dict[Path, Path]:
    """Replace files by the files of the same names in ``work``; an old file without a new one is removed.

    Args:
        work: directory from :func:`work_directory`.
        paths: the index files to replace, existing or not.
        like: file whose owner and mode a new file gets if it replaces none.

    Returns:
        The backup names of the old files, by path.

    Raises:
        OSError: A file cannot be written. After any error, each name has its old file or its complete new one, and no
            old file is lost. If the directory has no space for another name, no name has changed.
    """
    new = {path: work / path.name for path in paths}
    for path, new_file in new.items():
        if new_file.exists():
            _copy_owner_and_mode(new_file, path if path.exists() else like)
            sync(new_file)
    directory = work.parent
    added: list[Path] = []
    try:
        backups = {path: _back_up(path, added) for path in new if os.path.lexists(path)}
        for path, new_file in new.items():
            if path not in backups and new_file.exists():
                new_file.replace(path)
                added.append(path)
        sync(directory)  # the second names are on disk before the first ones change
    except OSError:
        for path in added:
            path.unlink()
        raise
    for path in backups:
        new_file = new[path]
        if new_file.exists():
            new_file.replace(path)
        else:
            path.unlink()  # a segment without an aborted transaction has no .txnindex
    sync(directory)
    return backups


def _copy_owner_and_mode(path: Path, like: Path) -> None:
    """Give a file the mode and the owner of another, because the broker's user must be able to write it."""
    expected, actual = like.stat(), path.stat()
    if (expected.st_uid, expected.st_gid) != (actual.st_uid, actual.st_gid):
        os.chown(path, expected.st_uid, expected.st_gid)
    shutil.copymode(like, path)


def _same(work: Path, path: Path) -> bool:
    new_file = work / path.name
    return new_file.exists() and path.exists() and filecmp.cmp(path, new_file, shallow=False)


def _old(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.old{number if number > 1 else ''}")


def _back_up(path: Path, added: list[Path]) -> Path:
    """Return another name of a file: the name of an identical backup, or a new name, which is added to ``added``."""
    for number in itertools.count(1):
        candidate = _old(path, number)
        if not os.path.lexists(candidate):
            os.link(path, candidate)  # both names at the same time: the segment is never without its index
            added.append(candidate)
            return candidate
        if not candidate.is_symlink() and candidate.is_file() and filecmp.cmp(path, candidate, shallow=False):
            return candidate
    raise AssertionError("counting has no end")
