"""Numbers of a trace, and their simplification: towards zero and towards each other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.operations import Operation, every_signature

Operations = tuple[Operation, ...]
Change = Callable[[str, int], int]
"""Function of the name of a number (its argument or key) and its value, which returns the new value."""

_UNCHANGED: Final = frozenset(
    {"settings", "max_index_size", "index_size", "index_interval", "init_file_size", "io_buffer_size", "magic", "slots"}
)
"""Sizes and intervals that machines choose from a few useful values; a cleaner with an empty buffer would never end."""
_BASE_IN_FILE_NAME: Final = re.compile(r"^(?:\d{20}|-\d{19})(?!\d)")
BASES: Final = frozenset({"base_offset", "file"})
"""Numbers that are the base offset of a file; most traces do not need one other than 0."""
_OFFSETS: Final = BASES | {
    "offset", "first_offset", "last_offset", "last_stable_offset", "fetch_offset", "upper_bound", "start_offset",
}  # fmt: skip
"""Numbers that move with a base offset. A target is missing: it is an offset for one kind of index only."""
_FEW: Final = 3
"""The number of nearest and of smallest other numbers that are tried in place of a number."""


def cost_of_number(value: int) -> int:
    """Return a cost that is smaller for a simpler number."""
    return 2 * abs(value) + (value < 0)


def numbers(operation: Operation) -> list[tuple[str, int]]:
    """Return the name and the value of every number that may change, in order."""
    found: list[tuple[str, int]] = []

    def note(name: str, value: int) -> int:
        found.append((name, value))
        return value

    with_numbers(operation, note)
    return found


def with_numbers(operation: Operation, change: Change) -> Operation:
    """Return the operation with every number changed.

    The name of a number is its argument or key. A file name that begins with a base offset is a number named
    ``"file"``.
    """
    names = every_signature()[operation.name]
    changed = tuple(_changed(n, v, change) for n, v in zip(names, operation.args, strict=True))
    return Operation(operation.name, changed)


def _changed(name: str, value: Any, change: Change) -> Any:
    match value:
        case _ if name in _UNCHANGED:
            changed = value
        case bool():
            changed = value
        case int():
            changed = change(name, value)
        case str() if _BASE_IN_FILE_NAME.match(value):
            number = int(value[:20])
            changed = f"{max(min(number, 0), change('file', number)):020d}{value[20:]}"
        case dict():
            changed = {key: _changed(key, item, change) for key, item in value.items()}
        case list() | tuple():
            changed = type(value)([_changed(name, item, change) for item in value])
        case _:
            changed = value
    return changed


@dataclass(frozen=True, slots=True)
class Choice:
    """Number of a trace that may become smaller.

    Attributes:
        value: The number.
        targets: Smaller numbers to try first.
        with_value: A function that returns the trace with another number at this position.
    """

    value: int
    targets: Sequence[int]
    with_value: Callable[[int], Operations]


def rebased(operations: Operations) -> Iterator[Operations]:
    """Yield the trace with one of its base offsets at 0, and all offsets at the same distance from it as before."""
    bases = {value for operation in operations for name, value in numbers(operation) if name in BASES and value}
    for base in sorted(bases, key=abs):
        for moving in (_OFFSETS | {"target"}, _OFFSETS):
            yield _with_all(operations, _reduced_by(base, moving))


def _reduced_by(distance: int, names: frozenset[str]) -> Change:
    return lambda name, value: value - distance if name in names else value


def shifted(operations: Operations, place: int) -> Choice | None:
    """Return a choice for a positive number, which all larger numbers follow at the same distance; else None.

    Args:
        operations: The trace.
        place: The position of the number among the positive numbers of the trace, from the largest.
    """
    values = [value for value in _different(operations) if value > 0]
    if place >= len(values):
        return None
    value = values[place]

    def with_value(target: int) -> Operations:
        distance = value - target
        return _with_all(operations, lambda _, old: old - distance if old >= value else old)

    return Choice(value, _targets(value, values), with_value)


def replaced(operations: Operations, place: int) -> Choice | None:
    """Return a choice as :func:`shifted` does, which replaces all occurrences of the number and no other numbers."""
    values = _different(operations)
    if place >= len(values):
        return None
    value = values[place]

    def with_value(target: int) -> Operations:
        return _with_all(operations, lambda _, old: target if old == value else old)

    return Choice(value, _targets(value, values), with_value)


def single(operations: Operations, place: int) -> Choice | None:
    """Return a choice for one occurrence of a number, counted from the last operation; None after the first one."""
    places = [(at, inner) for at in reversed(range(len(operations))) for inner in range(len(numbers(operations[at])))]
    if place >= len(places):
        return None
    at, inner = places[place]
    operation = operations[at]

    def with_value(target: int) -> Operations:
        count = itertools.count()
        changed = with_numbers(operation, lambda _, old: target if next(count) == inner else old)
        return (*operations[:at], changed, *operations[at + 1 :])

    value = numbers(operation)[inner][1]
    return Choice(value, _targets(value, _different(operations)), with_value)


def _different(operations: Operations) -> list[int]:
    return sorted({value for operation in operations for _, value in numbers(operation)}, reverse=True)


def _with_all(operations: Operations, change: Change) -> Operations:
    return tuple(with_numbers(operation, change) for operation in operations)


def _targets(value: int, others: Sequence[int]) -> list[int]:
    """Return zero, one, the negated value, and numbers next to others: the nearest ones and the smallest ones."""
    below = [other for other in others if cost_of_number(other) < cost_of_number(value)]
    close = [near for other in (*below[:_FEW], *below[-_FEW:]) for near in (other, other + 1)]
    return [near for near in dict.fromkeys((0, 1, -value, *close)) if cost_of_number(near) < cost_of_number(value)]
