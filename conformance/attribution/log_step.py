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
        unprepared: True if the log was closed without a clean shutdown.
        prepared: True if the log was closed by a clean shutdown and has not been opened since.
        corrupted: The suffixes of the files that were corrupted since the log was last open.
        furthest_start: The largest log start offset since the log was opened.
        has_lost_indexes: True if the offset index or the time index of a segment was removed or corrupted.
        failed: True if the log's disk has failed.
        directory: The role of the directory's name, as in ``rename_log``.
    """

    unprepared: bool = False
    prepared: bool = False
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
            self.unprepared,
            self.prepared,
            frozenset(self.corrupted),
            self.furthest_start,
            self.has_lost_indexes,
            self.failed,
            self.directory,
        )


def track_corruption(now: TrackedLog, path: str) -> None:
    """Update the tracked state with the corruption of a file."""
    suffix = PurePath(path).suffix
    now.corrupted.add(suffix or path)
    now.has_lost_indexes |= suffix in (OFFSET_INDEX.name, TIME_INDEX.name)


def track_log_step(now: TrackedLog, operation: Operation, observation: LogObservation) -> None:
    """Update the tracked state with a step; call :func:`clauses_of_log_step` before."""
    if operation.name == "open_log":
        now.unprepared = now.prepared = False
        now.corrupted.clear()
        now.furthest_start = 0
        now.settings = operation.args[0]
        now.failed, now.directory = False, "topic"
    elif operation.name == "rename_log":
        now.directory = operation.args[0]
    elif operation.name == "fail_log":
        now.failed = True
    elif operation.name == "close_log":
        now.prepared = bool(operation.args[0])
        now.unprepared = not now.prepared
    if observation.state is not None:
        now.furthest_start = max(now.furthest_start, observation.state.start_offset)


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
