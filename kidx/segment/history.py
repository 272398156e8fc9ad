"""Which transactions the segments before one leave open: what its own log does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kidx.discovery import START_OFFSETS, parse_partition, read_offset_checkpoint
from kidx.errors import KidxError
from kidx.files import read_small
from kidx.producers import SNAPSHOT_LIMIT, CorruptSnapshotError, ProducerState, Transaction
from kidx.producers.snapshot import decode
from kidx.records import file_batches

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def producers_before(segment_log: Path, dialect: Dialect) -> ProducerState:
    """The producers as they were when a segment began, read from the logs of smaller base offsets beside it.

    Where the beginning of the log is gone, they are read from the newest snapshot on, as a recovery does; what is
    below the log start offset that the broker has noted does not count.
    A log that cannot be read to its end counts as far as it can be, as it does after its recovery.

    Args:
        segment_log: a ``.log`` file named after its base offset.
        dialect: the rules of a release.

    Raises:
        OSError: an earlier log, or a snapshot, cannot be opened.
    """
    log = segment_log.absolute()
    state = ProducerState(log.parent.name, dialect)
    if not _is_transactional(log):
        return state
    earlier = sorted(path for path in log.parent.glob("*.log") if path.name < log.name)
    state.map_end_offset = start = _log_start(log.parent)
    if int((earlier or [log])[0].stem):
        _load_snapshot(state, log, start)
    for path in earlier:
        try:
            for batch in file_batches(path):
                if batch.magic < 2 or batch.producer_id < 0 or batch.last_offset < state.map_end_offset:
                    continue
                if (completed := state.update(batch)) is not None:
                    state.complete(completed)
        except KidxError:
            continue
    return state


def _log_start(directory: Path) -> int:
    """What the checkpoint of the log directory says; 0 if it says nothing."""
    topic, partition, _ = parse_partition(directory.name) or ("", 0, "")
    try:
        return read_offset_checkpoint(directory.parent / START_OFFSETS).get((topic, partition), 0)
    except OSError:
        return 0


def _load_snapshot(state: ProducerState, log: Path, start: int) -> None:
    """Reads the newest snapshot that can be believed, of those that are not behind the log, nor below its start."""
    noted = {int(path.stem): path for path in log.parent.glob("*.snapshot") if path.stem.isdecimal()}
    for offset in sorted((each for each in noted if start < each <= int(log.stem)), reverse=True):
        try:
            state.producers = decode(read_small(noted[offset], limit=SNAPSHOT_LIMIT), state.dialect)
        except CorruptSnapshotError:
            continue
        for producer, entry in state.producers.items():
            if (began := entry.current_txn_first_offset) is not None:
                state.ongoing[began] = Transaction(producer, began)
        state.map_end_offset = offset
        return


def _is_transactional(log: Path) -> bool:
    try:
        return any(batch.magic >= 2 and batch.is_transactional for batch in file_batches(log))
    except KidxError:
        return True
