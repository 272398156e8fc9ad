"""Checkpoint of Kafka's log cleaner: the offset up to which it has cleaned a log (``cleaner-offset-checkpoint``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from conformance.operations import Operation

if TYPE_CHECKING:
    from conformance.operations.log import LogObservation

NO_CHECKPOINT: Final = -1
"""Value for a log that was never cleaned."""


def checkpoint_after(before: int, operation: Operation, seen: LogObservation) -> int:
    """Return the checkpoint after an operation.

    A cleaning round sets it to the end of the cleaned records. A truncation lowers it to the new end of the log.

    Args:
        before: the checkpoint before.
        operation: the operation.
        seen: the result of the operation.
    """
    if operation.name == "clean_log" and seen.outcome.error is None and seen.outcome.value:
        return int(seen.outcome.value[0])
    if operation.name in ("truncate_log", "truncate_fully"):
        return min(before, int(operation.args[0]))
    return before


def with_checkpoint(operation: Operation, checkpoint: int) -> Operation:
    """Return the operation; if it is a cleaning round, it begins at the checkpoint."""
    return Operation(operation.name, (checkpoint, *operation.args[1:])) if operation.name == "clean_log" else operation


def last_checkpoints(operations: Iterable[Operation], observations: Iterable[LogObservation]) -> list[int]:
    """Return the checkpoints that a broker may have written last, the newest first."""
    found = [NO_CHECKPOINT]
    for operation, seen in zip(operations, observations, strict=False):
        found.append(checkpoint_after(found[-1], operation, seen))
    return list(dict.fromkeys(reversed(found[-2:])))
