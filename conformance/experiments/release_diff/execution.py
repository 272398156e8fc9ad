"""Execution of a trace by one Kafka release, which records observations, files and exercised clauses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.experiments.release_diff.recording_proxy import RecordingProxy
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.operations import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.experiments.release_diff.sides import Side
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Operation


@dataclass(frozen=True)
class ExecutionRecord:
    """Record of one release's execution of a trace.

    Attributes:
        side: The release, or the build of Kafka, whose classes executed the trace.
        observations: Outcome and state for each step; None for a corruption by the harness.
        clauses: The exercised clauses for each step.
        files: Names and contents of the files after the last step.
        conforms: True if the classes agreed with the reference (kidx) for their own release.
    """

    side: Side
    observations: tuple[Any, ...]
    clauses: tuple[tuple[str, ...], ...]
    files: dict[str, bytes]
    conforms: bool

    @property
    def release(self) -> str:
        """Release whose rules the reference follows."""
        return self.side.release


class ReleaseRunner:
    """Runner of one release: its classes and the reference (kidx) for this release, in lockstep.

    Args:
        machine: The state machine that the operations belong to.
        side: The release, or the build of Kafka, whose classes execute the operations.
        scratch: An empty directory.
        progress: A callback that is called while jars are downloaded.
    """

    def __init__(self, machine: str, side: Side, scratch: Path, progress: Progress | None = None) -> None:
        kind = MACHINES[machine]
        self.side = side
        self.release = release = side.release
        self._kafka = RecordingProxy(kind.subject(side.specification, release, progress))
        self._lockstep = kind.new_lockstep([self._kafka], scratch, releases=[release], on_divergence=self._noted)
        self._conforms = True

    @property
    def directory(self) -> Path:
        """Working directory of the classes."""
        return self._kafka.directory

    def _noted(self, _: Divergence) -> bool:
        self._conforms = False
        return True

    def perform(self, operations: Sequence[Operation]) -> ExecutionRecord:
        """Execute operations, beginning with an empty directory.

        The execution ends early if the reference diverges from its model, or if an operation needs an open index or log
        and none is open.
        """
        self._conforms = True
        observations: list[Any] = []
        clauses: list[tuple[str, ...]] = []
        self._lockstep.begin()
        try:
            for operation in operations:
                if not can_execute(self._lockstep, operation):
                    break
                performed = self._kafka.performed
                counts: Counter[str] = next(iter(self._lockstep.statistics.clauses.values()))
                counts.clear()
                self._lockstep.perform(operation)
                observations.append(self._kafka.last if self._kafka.performed > performed else None)
                clauses.append(tuple(counts))
        except DivergenceError:
            self._conforms = False
        finally:
            files = self._files()
            self._lockstep.end()
        return ExecutionRecord(self.side, tuple(observations), tuple(clauses), files, self._conforms)

    def _files(self) -> dict[str, bytes]:
        """Return names and contents of the files below the directory that is compared: others have random names."""
        directory = self._kafka.directory
        below = getattr(self._lockstep.participant(self._kafka.name), "below", "")
        return {
            path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted((directory / below).rglob("*"))
            if path.is_file()
        }


def can_execute(lockstep: Any, operation: Operation) -> bool:
    """Return True if an index or log is open, or if the operation needs none."""
    possible = not operation.needs_opening or operation.effect is Effect.DAMAGES
    return possible or lockstep.primary.observation.state is not None
