"""Tracked state of a log before a step, and the input of the conditions of rows about logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kidx.discovery import LOG, PARTITION_METADATA
from kidx.layout import OFFSET_INDEX, TIME_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.operations import Operation
    from conformance.operations.log import LogObservation, LogState

Files = dict[str, bytes]
"""The names and contents of the files that are compared."""


@dataclass(slots=True)
class TrackedLog:
    """State of a log before a step that the log itself does not report.

    Attributes:
        is_clean: True if the log was closed by a clean shutdown, and False if it was closed without one; None if it
            has been opened since, or was not closed.
        corrupted: The suffixes of the files that were corrupted since the log was last opened; the name of a file
            without one, and of ``partition.metadata``.
        furthest_start: The largest log start offset since the log was opened.
        has_lost_indexes: True if the offset index or the time index of a segment was removed or corrupted, and no log.
        has_lost_records: True if a log of a segment was removed or corrupted.
        is_truncated: True if the log was truncated since it was opened.
        failed: True if the log's disk has failed.
        directory: The role of the directory's name, as in ``rename_log``.
        renamed: True if the directory has had another name since the log was opened.
        verified: The producers with a transaction whose verification was requested since the log was opened.
        is_watermark_before: True if the high watermark is before the log start.
    """

    is_clean: bool | None = None
    corrupted: set[str] = field(default_factory=set)
    furthest_start: int = 0
    has_lost_indexes: bool = False
    has_lost_records: bool = False
    is_truncated: bool = False
    failed: bool = False
    directory: str = "topic"
    renamed: bool = False
    verified: set[int] = field(default_factory=set)
    settings: dict[str, Any] = field(default_factory=dict)
    is_watermark_before: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for two states if and only if all fields but ``settings`` are equal."""
        return (
            self.is_clean,
            frozenset(self.corrupted),
            self.furthest_start,
            self.has_lost_indexes,
            self.has_lost_records,
            self.is_truncated,
            self.failed,
            self.directory,
            self.renamed,
            frozenset(self.verified),
            self.is_watermark_before,
        )


def track_corruption(tracked: TrackedLog, path: str) -> None:
    """Update the tracked state with the corruption of a file."""
    suffix = PurePath(path).suffix
    tracked.corrupted.add(path if path == PARTITION_METADATA else suffix or path)
    tracked.has_lost_records |= suffix == LOG
    tracked.has_lost_indexes |= suffix in (OFFSET_INDEX.name, TIME_INDEX.name)
    tracked.has_lost_indexes &= not tracked.has_lost_records


def track_log_step(tracked: TrackedLog, operation: Operation, observation: LogObservation) -> None:
    """Update the tracked state with a step; call :func:`clauses_of_log_step` before."""
    if operation.name == "verify_transaction":
        tracked.verified.add(operation.args[0])
    elif operation.name == "append_verified":
        tracked.verified.update(batch["producer"][0] for batch in operation.args[0] if "producer" in batch)
    elif observation.outcome.error is not None:
        pass  # it has not opened, renamed or closed the log
    elif operation.name == "open_log":
        tracked.is_clean = None
        tracked.corrupted.clear()
        tracked.furthest_start = 0
        tracked.settings = operation.args[0]
        tracked.failed, tracked.directory, tracked.renamed = False, "topic", False
        tracked.verified.clear()
        tracked.is_truncated = False
    elif operation.name == "truncate_log":
        tracked.is_truncated |= bool(observation.outcome.value)
    elif operation.name == "rename_log":
        tracked.directory, tracked.renamed = operation.args[0], True
    elif operation.name == "fail_log":
        tracked.failed = True
    elif operation.name == "close_log":
        tracked.is_clean = bool(operation.args[0])
    if observation.state is not None:
        state = observation.state
        tracked.furthest_start = max(tracked.furthest_start, state.start_offset)
        tracked.is_watermark_before = state.high_watermark < state.start_offset


class LogStep(NamedTuple):
    """Input of a row's condition.

    Attributes:
        args: The operation's arguments.
        before: The tracked state before the step.
        was: The state before the step; None if no log was open.
        value: The result of the operation.
        now: The state after the step; None if no log is open.
        files_before: The files before the step.
        files: The files after the step.
        answers: The result of ``list_offsets`` for each target; empty for any other operation.
    """

    args: tuple[Any, ...]
    before: TrackedLog
    was: LogState | None
    value: Any
    now: LogState | None
    files_before: Files
    files: Files
    answers: Mapping[int, Any] = MappingProxyType({})
