"""Encoding of operations for Java, derived from their declarations.

A request has the numbers among the arguments in their order. All other arguments are bytes, separated by zero bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from conformance.implementations.jvm.step_batch import require_int, step
from conformance.operations import Effect
from conformance.operations.batches import encode, is_marker, producer_of
from conformance.operations.op import BATCHES, HEXADECIMAL, INT, LONGS, PATH, SETTINGS, TEXT, TEXTS, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.operations import Operation


def performed(operations: Mapping[str, Op]) -> dict[str, Op]:
    """Return the operations that Java executes."""
    return {name: each for name, each in operations.items() if each.effect is not Effect.DAMAGES}


def numbered(operations: Mapping[str, Op]) -> dict[str, int]:
    """Return the number of each operation in batches."""
    return {name: number for number, name in enumerate(operations)}


_CONTENT_OF: Final[dict[Any, Any]] = {
    HEXADECIMAL: bytes.fromhex,
    PATH: str.encode,
    TEXT: str.encode,
    TEXTS: lambda texts: "\0".join(texts).encode(),
    BATCHES: encode,
}
"""For each type of arguments that are bytes in a request, the function that encodes them."""


def _step_of(number: int, operation: Op, content_of: Mapping[Any, Any]) -> Callable[[Sequence[Any]], bytes]:
    """Return the function that encodes an operation with its arguments."""
    kinds = list(operation.arguments.values())
    if kinds == [LONGS]:
        return lambda arguments: step(number, arguments[0])
    contents = [(place, content_of[kind]) for place, kind in enumerate(kinds) if kind in content_of]
    ints = [place for place, kind in enumerate(kinds) if kind is INT]
    choices = {place: options for place, kind in enumerate(kinds) if (options := _options(kind))}
    longs = [place for place, kind in enumerate(kinds) if kind not in content_of]
    if not contents and not ints and not choices:
        return partial(step, number)

    def write_numbers(arguments: Sequence[Any]) -> bytes:
        for place in ints:
            require_int(arguments[place])
        return step(number, arguments)

    if not contents and not choices:
        return write_numbers

    def write(arguments: Sequence[Any]) -> bytes:
        for place in ints:
            require_int(arguments[place])
        content = b"\0".join([of(arguments[place]) for place, of in contents])
        numbers = [choices[at].index(arguments[at]) if at in choices else arguments[at] for at in longs]
        if kinds[0] is BATCHES:
            numbers += (not is_marker(arguments[0]), producer_of(arguments[0]))
        return step(number, numbers, content)

    return write


def _options(kind: Any) -> tuple[str, ...]:
    """Return the names from which an argument is chosen; empty for an argument of another type."""
    return get_args(get_args(kind)[0])


class Requests:
    """Encoder of operations, for :class:`~conformance.implementations.jvm.step_batch.Language`.

    Args:
        operations: The operations that the driver executes.
        of_settings: A function that encodes topic settings.
    """

    def __init__(
        self, operations: Mapping[str, Op], of_settings: Callable[[dict[str, Any]], bytes] | None = None
    ) -> None:
        content_of = {**_CONTENT_OF, SETTINGS: of_settings}
        numbers = numbered(operations)
        self._steps = {name: _step_of(numbers[name], each, content_of) for name, each in operations.items()}

    def __call__(self, operation: Operation) -> bytes:
        """Return the beginning of a step.

        Raises:
            ValueError: Java has no such operation, or its types cannot represent the arguments.
        """
        name, arguments = operation
        write = self._steps.get(name)
        if write is None:
            raise ValueError(f"{name} is executed by the harness, not by Kafka's classes")
        return write(arguments)
