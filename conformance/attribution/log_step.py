"""What is known of a log before a step, and what the condition of a row about logs looks at."""

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
"""Name and content of each file that is compared."""


@dataclass(slots=True)
class TrackedLog:
    """What is known of a log before a step.

    Attributes:
        unprepared: it was closed without a clean shutdown being prepared.
        prepared: it was closed by a clean shutdown, and has not been opened since.
        damaged: suffixes of the files that were damaged since it was last open.
        furthest_start: the largest start offset since it was opened.
        has_lost_indexes: the offset or the time index of a segment was removed or damaged.
        settings: of the topic.
    """

    unprepared: bool = False
    prepared: bool = False
    damaged: set[str] = field(default_factory=set)
    furthest_start: int = 0
    has_lost_indexes: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal if and only if all of it is."""
        return self.unprepared, self.prepared, frozenset(self.damaged), self.furthest_start, self.has_lost_indexes


def follow_damage(now: TrackedLog, path: str) -> None:
    """Takes the damage of a file into account."""
    suffix = PurePath(path).suffix
    now.damaged.add(suffix or path)
    now.has_lost_indexes |= suffix in (OFFSET_INDEX.name, TIME_INDEX.name)


def follow_log(now: TrackedLog, operation: Operation, observation: LogObservation) -> None:
    """Takes a step into account; :func:`clauses_of_log_step` has to be asked before."""
    if operation.name == "open_log":
        now.unprepared = now.prepared = False
        now.damaged.clear()
        now.furthest_start = 0
        now.settings = operation.args[0]
    elif operation.name == "close_log":
        now.prepared = bool(operation.args[0])
        now.unprepared = not now.prepared
    if observation.state is not None:
        now.furthest_start = max(now.furthest_start, observation.state.start_offset)


class LogStep(NamedTuple):
    """The input of a row's condition: arguments, tracked state and state before (None: closed), outcome, files.

    Attributes:
        answers: what ``list_offsets`` says to each target; nothing of another operation.
    """

    args: tuple[Any, ...]
    before: TrackedLog
    was: LogState | None
    value: Any
    now: LogState | None
    files_before: Files
    files: Files
    answers: Mapping[int, Any] = MappingProxyType({})
