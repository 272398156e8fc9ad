"""One release performs recorded operations alone: what it answered, what it left behind, which clauses it showed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.experiments.release_diff.watched import Watched
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
class Performance:
    """The result of a trace in one release.

    Attributes:
        side: whose classes performed it.
        observations: for each step outcome and state; None for what the harness does to files.
        clauses: for each step the clauses that it exercises.
        files: name and content of the files after the last step.
        conforms: whether the classes did what the reference does in their own dialect.
    """

    side: Side
    observations: tuple[Any, ...]
    clauses: tuple[tuple[str, ...], ...]
    files: dict[str, bytes]
    conforms: bool

    @property
    def release(self) -> str:
        """Whose dialect."""
        return self.side.release


class Performer:
    """One release on its own: its classes beside the reference in its own dialect.

    Args:
        machine: whose operations.
        side: whose classes and dialect.
        scratch: an empty directory.
        progress: called while jars are fetched.
    """

    def __init__(self, machine: str, side: Side, scratch: Path, progress: Progress | None = None) -> None:
        kind = MACHINES[machine]
        self.side = side
        self.release = release = side.release
        self._kafka = Watched(kind.subject(side.specification, release, progress))
        self._lockstep = kind.new_lockstep([self._kafka], scratch, releases=[release], on_divergence=self._noted)
        self._conforms = True

    @property
    def directory(self) -> Path:
        """Where the classes work."""
        return self._kafka.directory

    def _noted(self, _: Divergence) -> bool:
        self._conforms = False
        return True

    def perform(self, operations: Sequence[Operation]) -> Performance:
        """Performs operations from an empty directory on.

        Fewer are performed if the reference contradicts its model, or if a call finds nothing open.
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
            files = _files(self._kafka.directory)
            self._lockstep.end()
        return Performance(self.side, tuple(observations), tuple(clauses), files, self._conforms)


def can_execute(lockstep: Any, operation: Operation) -> bool:
    """Whether an index or log is open; opening and file damage need none."""
    return operation.effect in (Effect.OPENS, Effect.DAMAGES) or lockstep.primary.observation.state is not None


def _files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
