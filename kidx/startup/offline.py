"""Logs that a broker loads from a log directory that is offline already: what it cannot read there ends it.

A checkpoint, a checkpoint of epochs or a topic id that cannot be read marks its log directory immediately, and the
broker loads the remaining logs nevertheless. A log with an open transaction looks up where the transaction begins. In a
marked directory that is an error, without an I/O error as its cause, which loading does not survive.
"""

from __future__ import annotations

import contextlib
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kidx.discovery import EPOCHS, LOG, PARTITION_METADATA, RECOVERY_POINTS, START_OFFSETS, parse_segment_file
from kidx.errors import KidxError
from kidx.files import read_small
from kidx.producers.manager import SNAPSHOT_LIMIT, list_snapshots, snapshot_name
from kidx.producers.snapshot import entries_of, problem_of
from kidx.records import file_batches
from kidx.segment.files import file_name
from kidx.startup.names import is_ignored, is_partition_name
from kidx.startup.simulation import CheckpointedOffsets, regular_files, try_load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from kidx.dialect import Dialect

_FIRST: Final = frozenset({RECOVERY_POINTS, START_OFFSETS})
"""Checkpoints that a broker reads before the logs of their log directory."""
_OF_A_LOG: Final = frozenset({EPOCHS, PARTITION_METADATA})


def unreadable_transaction(log_directory: Path, unreadable: Collection[Path], dialect: Dialect) -> Path | None:
    """Return a log with an open transaction that is loaded after its log directory is marked; None without one.

    A broker loads logs in the order in which the file system lists them.

    Args:
        unreadable: files that take the log directory offline.
    """
    if not dialect.transactions_are_looked_up_offline:
        return None
    logs = list(_loaded(log_directory, dialect))
    marks = [0] if any(path.parent == log_directory and path.name in _FIRST for path in unreadable) else []
    failing = {path.parent for path in unreadable if path.name in _OF_A_LOG}
    marks += [number + 1 for number, path in enumerate(logs) if path in failing]
    offsets = CheckpointedOffsets(log_directory)
    for path in logs[min(marks, default=len(logs)) :]:
        if path not in failing and _may_be_open(path) and try_load(path, dialect, offsets.of(path)).is_open:
            return path
    return None


def _loaded(log_directory: Path, dialect: Dialect) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(log_directory) as entries:
        for entry in entries:
            if entry.is_dir() and is_partition_name(entry.name) and not is_ignored(entry.name, dialect):
                yield log_directory / entry.name


def _may_be_open(path: Path) -> bool:
    """Return False if the newest producer snapshot has no open transaction, and no later batch is transactional."""
    try:
        newest = max(list_snapshots(path), default=-1)
        if newest >= 0:
            data = read_small(path / snapshot_name(newest), limit=SNAPSHOT_LIMIT)
            if problem_of(data) or any(each.current_txn_first_offset >= 0 for each in entries_of(data)):
                return True
        parsed = map(parse_segment_file, regular_files(path))
        bases = sorted(each[0] for each in parsed if each is not None and each[1] == LOG)
        earlier = [base for base, following in pairwise(bases) if following <= newest]
        return any(
            batch.magic >= 2 and batch.is_transactional
            for base in bases[len(earlier) :]
            for batch in file_batches(path / file_name(base, LOG))
        )
    except (KidxError, OSError):
        return True
