"""Execution of a trace by one Kafka release, which records observations, files and exercised clauses.

Proxy for an implementation: it records observations, and may report another release than the implementation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.protocol import OptionalMembers
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.operations import Effect
from conformance.operations.state_diff import with_fields_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.experiments.release_diff.sides import Side
    from conformance.implementations.protocol import Implementation
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Observation, Operation

_FORWARDED: Final = frozenset({"stack", "compress"})
"""Optional methods of implementations beyond the protocol."""


class RecordingProxy(OptionalMembers):
    """Proxy that forwards every operation, and remembers the last observation.

    Args:
        implementation: The implementation that executes the operations.
        release: The release by whose rules the lockstep checks the implementation; None for the implementation's own
            release. With another release, the lockstep does not compare error texts.
        listener: A callback that receives every operation and its observation.

    Attributes:
        performed: The number of operations since the example began.
        last: The observation of the last operation; None before the first.
        control: Another implementation, which executes every operation before this one; or None.
        unobserved: Fields of the state that are not compared: the proxy returns the fields of ``control`` instead.
        speaks_kafka: True if the lockstep compares error texts.
    """

    def __init__(
        self,
        implementation: Implementation,
        release: str | None = None,
        listener: Callable[[Operation, Observation], None] = lambda *_: None,
    ) -> None:
        self.implementation = implementation
        self.release = implementation.release if release is None else release
        self.name = implementation.name if release is None else f"{implementation.name} in place of {release}"
        self.speaks_kafka = release is None
        self.listener = listener
        self.performed = 0
        self.last: Observation | None = None
        self.unobserved: set[str] = set()
        self.control: RecordingProxy | None = None
        self._directory: Path | None = None
        self.step_in_progress, self.decompress = implementation.step_in_progress, implementation.decompress

    def __getattr__(self, name: str) -> Any:
        if name in _FORWARDED:
            return getattr(self.implementation, name)
        raise AttributeError(name)

    @property
    def directory(self) -> Path:
        """Working directory.

        Raises:
            ToolError: No example has begun.
        """
        if self._directory is None:
            raise ToolError(f"{self.name} has not begun an example")
        return self._directory

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self._directory = directory
        self.performed = 0
        self.last = None
        self.implementation.begin(directory)

    def supports(self, operation: str) -> bool:
        """Return True if the implementation supports an operation; see the protocol."""
        return self.implementation.supports(operation)

    def perform(self, operation: Operation) -> Observation:
        """Execute an operation; see the protocol."""
        self.last = self.implementation.perform(operation)
        self.performed += 1
        self.listener(operation, self.last)
        if self.unobserved and self.control is not None and self.control.performed == self.performed:
            like = None if self.control.last is None else self.control.last.state
            return self.last._replace(state=with_fields_of(self.last.state, like, self.unobserved))
        return self.last

    def end(self) -> None:
        """End the example; see the protocol."""
        self.implementation.end()


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
