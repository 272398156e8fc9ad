"""Rows about a log with a local and a remote tier (clauses TL).

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.

A condition receives a :class:`~conformance.attribution.rules.DirectoryStep`, in which ``was`` and ``now`` are the
states before and after the step. The result of ``fetch_remote`` has the size of the records at index 3, and the number
of aborted transactions (-1 if none were requested) at index 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution.rules import DirectoryStep, Row
from conformance.operations.tiered import TieredState

if TYPE_CHECKING:
    from conformance.operations.tiered import RemoteSegmentState


TieredStep = DirectoryStep[TieredState, None]


def _numbers(state: TieredState | None) -> dict[int, RemoteSegmentState]:
    return {} if state is None else {segment.number: segment for segment in state.remote}


def _has_remote(step: TieredStep) -> bool:
    return bool(_numbers(step.was))


def _copied(step: TieredStep) -> bool:
    return len(_numbers(step.now)) > len(_numbers(step.was))


def _expired(step: TieredStep) -> bool:
    return len(_numbers(step.now)) < len(_numbers(step.was))


def _moved(step: TieredStep) -> bool:
    return step.was is not None and step.now is not None and step.was.log.start_offset < step.now.log.start_offset


def _local_moved(step: TieredStep) -> bool:
    return step.was is not None and step.now is not None and step.was.local_start_offset < step.now.local_start_offset


def _learned(step: TieredStep) -> bool:
    """Return True if the highest offset in remote storage, as the log knows it, has increased."""
    return (
        step.was is not None
        and step.now is not None
        and (step.was.highest_remote_offset < step.now.highest_remote_offset)
    )


def _starts_remotely(step: TieredStep) -> bool:
    return step.now is not None and step.now.log.start_offset < step.now.local_start_offset


def _several_epochs(step: TieredStep) -> bool:
    return any(len(segment.epochs) > 1 for segment in _numbers(step.now).values())


def _covered(step: TieredStep) -> bool:
    """Return True if two remote segments begin at one offset."""
    starts = [segment.start_offset for segment in _numbers(step.now).values()]
    return len(set(starts)) < len(starts)


def _left(state: int) -> Any:
    """Return a condition that is true if the step leaves a new segment in a state of Kafka's RemoteLogSegmentState.

    State 0 is COPY_SEGMENT_STARTED, 2 is DELETE_SEGMENT_STARTED.
    """
    return lambda step: any(
        segment.state == state for number, segment in _numbers(step.now).items() if number not in _numbers(step.was)
    )


def _asks(*targets: int) -> Any:
    return lambda step: any(target in step.args[0] for target in targets)


def _asks_times(step: TieredStep) -> bool:
    return _has_remote(step) and any(target >= 0 for target in step.args[0])


# fmt: off
ROWS: tuple[Row, ...] = (
    Row("TL-1", "open_tiers", "ok", "the log start", _starts_remotely),
    Row("TL-2", "delete_records truncate_fully", "ok", "the local start", _local_moved),
    Row("TL-3", "copy_segments", "ok", "what later lookups and tasks find", _covered, "only after a truncation"),
    Row("TL-4", "copy_segments follow_remote", "ok", "the highest remote offset", _learned),
    Row("TL-5", "apply_retention", "ok", "segments and local start", _local_moved),
    Row("TL-6", "apply_retention", "ok", "the active segment", _has_remote),
    Row("TL-7", "copy_segments", "ok", "the remote segments", _copied),
    Row("TL-8", "expire_remote", "ok", "the remote segments", _expired),
    Row("TL-9", "copy_segments", "ok", "the log start", _has_remote),
    Row("TL-10", "expire_remote", "ok", "the remote segments", _expired),
    Row("TL-11 TL-12", "expire_remote", "ok", "the log start", _moved),
    Row("TL-13", "expire_remote", "ok", "the remote segments", _expired),
    Row("TL-15", "expire_remote", "ok", "the highest remote offset", _learned),
    Row("TL-14", "copy_segments", "ok", "the epochs of the metadata", _several_epochs),
    Row("TL-16", "fetch_remote", "ok", "the records", lambda step: step.outcome.value[3] > 0),
    Row("TL-17", "fetch_remote", "ok", "the aborted transactions", lambda step: step.outcome.value[5] > 0),
    Row("TL-18", "fetch_remote", "ok", "the aborted transactions", lambda step: step.outcome.value[5] >= 0),
    Row("TL-19", "fetch_remote", "out_of_range", "the error"),
    Row("TL-20", "fetch_remote", "ok", "no record", lambda step: step.outcome.value[3] == 0),
    Row("TL-21a", "copy_segments", "ok", "the metadata", _left(0)),
    Row("TL-21b", "copy_segments", "ok", "the metadata", _left(2), "only if the deletion fails, too"),
    Row("TL-22", "expire_remote", "remote", "the metadata"),
    Row("TL-23", "fetch_remote list_offsets", "remote", "the error"),
    Row("TL-24", "list_offsets", "ok", "the answer", _asks_times),
    Row("LO-1", "list_offsets", "ok", "the answer", _asks(-2)),
    Row("LO-3a", "list_offsets", "ok", "the answer", _asks(-4)),
    Row("LO-4", "list_offsets", "ok", "the answer", _asks(-5)),
    Row("LO-5", "list_offsets", "ok", "the answer", _asks(-6)),
    Row("LO-19", "list_offsets", "ok", "the answer", _asks_times),
)
# fmt: on
