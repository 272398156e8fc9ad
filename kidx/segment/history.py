"""Which transactions the segments before one leave open: what its own log does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kidx.errors import KidxError
from kidx.producers import ProducerState
from kidx.records import file_batches

if TYPE_CHECKING:
    from kidx.dialect import Dialect


def producers_before(segment_log: Path, dialect: Dialect) -> ProducerState:
    """The producers as they were when a segment began, read from the logs of smaller base offsets beside it.

    A log that cannot be read to its end counts as far as it can be, as it does after its recovery.

    Args:
        segment_log: a ``.log`` file named after its base offset.
        dialect: the rules of a release.

    Raises:
        OSError: an earlier log cannot be opened.
    """
    state = ProducerState(segment_log.absolute().parent.name, dialect)
    if not _is_transactional(segment_log):
        return state
    earlier = [log for log in segment_log.absolute().parent.glob("*.log") if log.name < segment_log.name]
    for log in sorted(earlier):
        try:
            for batch in file_batches(log):
                if batch.magic >= 2 and batch.producer_id >= 0 and (completed := state.update(batch)) is not None:
                    state.complete(completed)
        except KidxError:
            continue
    return state


def _is_transactional(log: Path) -> bool:
    try:
        return any(batch.magic >= 2 and batch.is_transactional for batch in file_batches(log))
    except KidxError:
        return True
