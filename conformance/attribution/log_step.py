"""Tracked state of a log before a step, and the input of the conditions of rows about logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

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
        corrupted: The suffixes of the files that were corrupted since the log was last opened.
        furthest_start: The largest log start offset since the log was opened.
        has_lost_indexes: True if the offset index or the time index of a segment was removed or corrupted.
        failed: True if the log's disk has failed.
        directory: The role of the directory's name, as in ``rename_log``.
    """

    is_clean: bool | None = None
    corrupted: set[str] = field(default_factory=set)
    furthest_start: int = 0
    has_lost_indexes: bool = False
    failed: bool = False
    directory: str = "topic"
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for two states if and only if all fields but ``settings`` are equal."""
        return (
            self.is_clean,
            frozenset(self.corrupted),
            self.furthest_start,
            self.has_lost_indexes,
            self.failed,
            self.directory,
        )


def track_corruption(tracked: TrackedLog, path: str) -> None:
    """Update the tracked state with the corruption of a file."""
    suffix = PurePath(path).suffix
    tracked.corrupted.add(suffix or path)
    tracked.has_lost_indexes |= suffix in (OFFSET_INDEX.name, TIME_INDEX.name)


def track_log_step(tracked: TrackedLog, operation: Operation, observation: LogObservation) -> None:
    """Update the tracked state with a step; call :func:`clauses_of_log_step` before."""
    if observation.outcome.error is not None:
        pass  # it has not opened, renamed or closed the log
    elif operation.name == "open_log":
        tracked.is_clean = None
        tracked.corrupted.clear()
        tracked.furthest_start = 0
        tracked.settings = operation.args[0]
        tracked.failed, tracked.directory = False, "topic"
    elif operation.name == "rename_log":
        tracked.directory = operation.args[0]
    elif operation.name == "fail_log":
        tracked.failed = True
    elif operation.name == "close_log":
        tracked.is_clean = bool(operation.args[0])
    if observation.state is not None:
        tracked.furthest_start = max(tracked.furthest_start, observation.state.start_offset)


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
