"""Putting rebuilt index files where the old ones are, so that no moment leaves the segment without or with half of one.

The new files are written in a directory beside the log and synced. Each old file then gets a second name, which is
synced too, and only then the new one takes its place, in one step. What a crash leaves behind,
the next rebuild removes.
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
from kidx.rebuild.lock import broker_locks, log_directories_of
from kidx.rebuild.segment import Rebuilt, rebuild
from kidx.segment.files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.segment import ProducerState

WORK: Final = ".kidx-rebuild"
"""Name of the directory for new files; brokers look at files only."""

SUFFIXES: Final = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class Replaced(NamedTuple):
    """What was done in place.

    Attributes:
        rebuilt: the new files.
        kept: the old ones under their new names, of those that were replaced.
    """

    rebuilt: Rebuilt
    kept: list[Path]


def rebuild_in_place(
    segment_log: Path, dialect: Dialect, index_interval_bytes: int, producer_state: ProducerState | None
) -> Replaced:
    """Rebuilds the indexes of a segment and puts them in the place of the old ones, which are kept as ``.old``.

    Raises:
        ToolError: a broker holds the log directory.
        KidxError, OSError: as :func:`kidx.rebuild.rebuild`; the old files are as they were.
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
        # A first copy is kept of a file that stays the same, too: the set of old files is then whole.
        changing = [path for path in paths if not (_same(work, path) and os.path.lexists(_old(path, 1)))]
        kept = list(put_in_place(work, changing, segment_log).values())
    offset_index, time_index = (directory / path.name for path in (rebuilt.offset_index, rebuilt.time_index))
    transactions = directory / rebuilt.txn_index.name if rebuilt.txn_index else None
    return Replaced(rebuilt._replace(offset_index=offset_index, time_index=time_index, txn_index=transactions), kept)


@contextlib.contextmanager
def work_directory(directory: Path) -> Iterator[Path]:
    """An empty directory for new files on the file system of the old ones, for one process at a time.

    Raises:
        ToolError: another process is at work here.
        OSError: it cannot be made.
    """
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ToolError(f"{directory} is in use: another kidx is rebuilding indexes there") from error
        work = directory / WORK
        if os.path.lexists(work):
            shutil.rmtree(work)  # of a rebuild that was killed
        work.mkdir(mode=0o700)
        try:
            yield work
        finally:
            shutil.rmtree(work)
    finally:
        os.close(held)


def put_in_place(work: Path, paths: Iterable[Path], like: Path) -> dict[Path, Path]:
    """Puts the files of ``work`` in the place of those of the same names; an old file without a new one goes away.

    Args:
        work: from :func:`work_directory`.
        paths: the index files to be replaced, whether they exist or not.
        like: a file whose owner and mode a new file gets that replaces none.

    Returns:
        The names under which the old files are kept, by path.

    Raises:
        OSError: whatever is raised, each name has its old file or its whole new one, and no old file is lost.
    """
    new = {path: work / path.name for path in paths}
    for path, made in new.items():
        if made.exists():
            _adopt(made, path if path.exists() else like)
            _sync(made)
    kept = {path: _keep(path) for path in new if os.path.lexists(path)}
    directory = work.parent
    _sync(directory)  # the second names are on disk before the first ones change
    for path, made in new.items():
        if made.exists():
            made.replace(path)
        else:
            path.unlink(missing_ok=True)  # no transaction was aborted, and Kafka then has no such file
    _sync(directory)
    return kept


def _adopt(path: Path, like: Path) -> None:
    """Gives a file the mode and the owner of another: what root repairs, the broker's user must be able to write."""
    wanted, own = like.stat(), path.stat()
    if (wanted.st_uid, wanted.st_gid) != (own.st_uid, own.st_gid):
        os.chown(path, wanted.st_uid, wanted.st_gid)
    shutil.copymode(like, path)


def _same(work: Path, path: Path) -> bool:
    made = work / path.name
    return made.exists() and path.exists() and filecmp.cmp(path, made, shallow=False)


def _old(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.old{number if number > 1 else ''}")


def _keep(path: Path) -> Path:
    """Another name of a file: of a copy that has been kept before, or a new one."""
    for number in itertools.count(1):
        candidate = _old(path, number)
        if not os.path.lexists(candidate):
            os.link(path, candidate)  # both names for a moment: the segment is never without its index
            return candidate
        if not candidate.is_symlink() and candidate.is_file() and filecmp.cmp(path, candidate, shallow=False):
            return candidate
    raise AssertionError("counting has no end")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
