"""Performs the script of a content in lockstep, and returns the result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from conformance.errors import ToolError
from conformance.experiments.fuzz.scripts import MACHINE_OF, SCRIPTS
from conformance.lockstep import DivergenceError
from conformance.runs.shrinking.failure import shrunk

if TYPE_CHECKING:
    from conformance.operations import Operation

DEADLINE: Final = 20
"""Seconds that a case may take; it needs some milliseconds, so this is a hang."""


class HangError(Exception):
    """A case did not end."""


class Examined(NamedTuple):
    """The result for one content.

    Attributes:
        outcomes: of every step, as (operation, error kind or value), in the newest dialect's reference.
        failure: the difference, with the fewest operations that show it; None if all agree.
        crash: what escaped from an implementation that is neither an answer nor a refusal; None normally.
        operations: the script.
    """

    outcomes: tuple[tuple[str, Any], ...]
    failure: DivergenceError | None
    crash: Exception | None
    operations: list[Operation]

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes it new: how every step ended, without the numbers."""
        return tuple(f"{name}:{_shape(outcome)}" for name, outcome in self.outcomes)


def script_of(
    script: Callable[[bytes], list[Operation]], content: bytes, asked_as: bytes | None = None
) -> list[Operation]:
    """The script of a content, with the questions that another one is asked."""
    if asked_as is None:
        return script(content)
    return [_with_content(operation, asked_as, content) for operation in script(asked_as)]


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


class Examiner:
    """Examines contents of one format.

    Args:
        format_name: of ``--format``.
        lockstep: of the machine that the format belongs to.
    """

    def __init__(self, format_name: str, lockstep: Any) -> None:
        self.machine = MACHINE_OF[format_name]
        self._script = SCRIPTS[format_name]
        self._lockstep = lockstep

    def examine(self, content: bytes, asked_as: bytes | None = None) -> Examined:
        """Performs the script of a content, or with ``asked_as`` that of another one, to compare the answers."""
        operations = script_of(self._script, content, asked_as)
        outcomes: list[tuple[str, Any]] = []
        lockstep = self._lockstep
        try:
            with _deadline(DEADLINE):
                lockstep.begin()
                try:
                    for operation in operations:
                        outcome = lockstep.perform(operation).outcome
                        outcomes.append((operation.name, outcome.error or outcome.value))
                    lockstep.compare_directories()
                finally:
                    lockstep.end()
        except ToolError as error:
            return Examined(tuple(outcomes), None, error, operations[: len(outcomes) + 1])
        except DivergenceError as failure:
            return Examined(tuple(outcomes), shrunk(lockstep, failure), None, operations)
        except Exception as crash:  # noqa: BLE001 -- what escapes is what is looked for
            return Examined(tuple(outcomes), None, crash, operations[: len(outcomes) + 1])
        return Examined(tuple(outcomes), None, None, operations)


@contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Ends what takes too long.

    Raises:
        HangError: it did.
    """

    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise HangError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
