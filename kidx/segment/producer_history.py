"""State of the producers at the start of a segment, which the segment's own log does not contain."""

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


def load_producers_before(segment_log: Path, dialect: Dialect) -> ProducerState:
    """Return the producers as of the start of a segment, read from the logs of smaller base offsets in its directory.

    If the beginning of the log is missing, reading begins at the newest snapshot, as in a recovery. Batches below the
    log start offset in the broker's checkpoint are ignored. If a log cannot be read to its end, only its batches before
    the first error count, because a recovery keeps only these.

    Args:
        segment_log: a ``.log`` file named after its base offset.
        dialect: rules of a release.

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
    """Return the log start in the checkpoint of the log directory, or 0 without an entry."""
    topic, partition, _ = parse_partition(directory.name) or ("", 0, "")
    try:
        return read_offset_checkpoint(directory.parent / START_OFFSETS).get((topic, partition), 0)
    except OSError:
        return 0


def _load_snapshot(state: ProducerState, log: Path, start: int) -> None:
    """Load the newest valid snapshot between the log start and the start of the segment."""
    snapshots = {int(path.stem): path for path in log.parent.glob("*.snapshot") if path.stem.isdecimal()}
    for offset in sorted((each for each in snapshots if start < each <= int(log.stem)), reverse=True):
        try:
            state.producers = decode(read_small(snapshots[offset], limit=SNAPSHOT_LIMIT), state.dialect)
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
