"""Execution of corrupt files in lockstep, one file at a time.

The probe of a content is the list of operations that write the content to a file, open the file and query it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from conformance.errors import ToolError
from conformance.experiments.fuzz.probes import MACHINE_OF, PROBES
from conformance.lockstep import DivergenceError
from conformance.runs.completeness import compared_by
from conformance.runs.shrinking.divergence import shrink_divergence

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.verdict import Comparison

DEADLINE: Final = 20
"""Seconds after which a probe counts as a hang; probes take milliseconds."""


class HangError(Exception):
    """Probe that did not end."""


class ExecutionResult(NamedTuple):
    """Result of one content.

    Attributes:
        outcomes: The outcome of every step in kidx, as (operation, error kind or value), for the newest release.
        failure: The divergence, with the shortest sequence of operations that shows it, or None if all agree.
        crash: An unexpected exception of an implementation, or None.
        operations: The operations of the probe.
    """

    outcomes: tuple[tuple[str, Any], ...]
    failure: DivergenceError | None
    crash: Exception | None
    operations: list[Operation]

    @property
    def signature(self) -> tuple[str, ...]:
        """Kinds of the outcomes of all steps, without values."""
        return tuple(f"{name}:{_shape(outcome)}" for name, outcome in self.outcomes)


def probe_of(
    script: Callable[[bytes], list[Operation]], content: bytes, queries_from: bytes | None = None
) -> list[Operation]:
    """Return the probe of a content.

    Args:
        script: A function that returns the probe of a content.
        content: The content of the file.
        queries_from: The content from which the queries are derived; None for ``content``.
    """
    if queries_from is None:
        return script(content)
    return [_with_content(operation, queries_from, content) for operation in script(queries_from)]


def _with_content(operation: Operation, old: bytes, new: bytes) -> Operation:
    if operation.args == (old.hex(),):
        return operation._replace(args=(new.hex(),))
    if operation.args[-1:] == ((old.hex(),),):
        return operation._replace(args=(*operation.args[:-1], (new.hex(),)))
    return operation


def _shape(outcome: Any) -> str:
    if isinstance(outcome, str):
        return outcome
    return "nothing" if outcome is None else type(outcome).__name__


class CaseExecutor:
    """Executor of contents of one format.

    Args:
        format_name: A format of ``--format``.
        lockstep: A lockstep of the state machine that the format belongs to.

    Attributes:
        machine: The name of this state machine.
    """

    def __init__(self, format_name: str, lockstep: Any) -> None:
        self.machine = MACHINE_OF[format_name]
        self._script = PROBES[format_name]
        self._lockstep = lockstep

    @property
    def compared(self) -> Comparison:
        """Summary of what the lockstep has compared."""
        return compared_by(self._lockstep, self.machine, 0)

    def examine(self, content: bytes, queries_from: bytes | None = None) -> ExecutionResult:
        """Execute the probe of a content.

        Args:
            content: The content of the file.
            queries_from: The content from which the queries are derived; None for ``content``.
        """
        operations = probe_of(self._script, content, queries_from)
        outcomes: list[tuple[str, Any]] = []
        lockstep = self._lockstep
        try:
            with _deadline(DEADLINE), lockstep.example():
                for operation in operations:
                    outcome = lockstep.perform(operation).outcome
                    outcomes.append((operation.name, outcome.error or outcome.value))
                lockstep.compare_directories()
        except ToolError as error:
            return ExecutionResult(tuple(outcomes), None, error, operations[: len(outcomes) + 1])
        except DivergenceError as failure:
            return ExecutionResult(tuple(outcomes), shrink_divergence(lockstep, failure), None, operations)
        except Exception as crash:  # noqa: BLE001 -- any unexpected exception is a finding
            return ExecutionResult(tuple(outcomes), None, crash, operations[: len(outcomes) + 1])
        return ExecutionResult(tuple(outcomes), None, None, operations)


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Stop the block after a time limit.

    Raises:
        HangError: The block exceeded the limit.
    """

    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise HangError(f"did not return within {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
