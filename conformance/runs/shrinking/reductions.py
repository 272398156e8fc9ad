"""Reductions of a trace, and the cost that orders traces by simplicity.

Numbers become smaller or equal to each other, arguments simpler (shorter lists, fewer options and settings). Some steps
are deleted together; the offsets after a deletion move, and the rest may be invalid.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from conformance.implementations.protocol import BULK
from conformance.operations import Effect, Operation, every_signature
from conformance.operations.index_steps import has_valid_arguments
from kidx.errors import KidxError
from kidx.segment.append_info import follower_append_info

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


_NEEDED_SETTINGS: Final = frozenset({"segment.bytes", "segment.index.bytes"})
"""Settings without which a segment of a log has millions of batches."""
_NEEDED_OF_BATCH: Final = frozenset({"base", "records", "epoch"})
"""Properties of a batch that are never deleted."""
_LISTS: Final = frozenset({"targets", "batches", "records"})
"""Lists from which any item may be deleted, except the last remaining one."""
_BATCH_OVERHEAD: Final = 12
"""The number of bytes before the part of a batch that its length counts: base offset and length."""
_NO_CODEC: Final = "none"
_ROOMY: Final = 120
"""A maximum size of an index, in which several entries of either kind fit."""
_SKIP_FULL_CHECK: Final = {"maybe_append": (False,)}
"""By operation, the arguments that its bulk operation lacks; here, whether the check for a full index is skipped."""
_FEW_SINGLE: Final = 5
"""The maximum number of single operations that are easier to read than one bulk operation."""


def cost(operations: Sequence[Operation]) -> tuple[int, int, int, int]:
    """Return the cost that shrinking reduces: operations, items of arguments, base offsets, then numbers.

    A bulk operation costs more than the single operations that it repeats, if these are few.
    """
    items = sum(_items(operation.args) for operation in operations)
    found = [pair for operation in operations for pair in numbers(operation)]
    bases = sum(1 for name, value in found if name in BASES and value)
    return sum(map(_length, operations)), items, bases, sum(cost_of_number(value) for _, value in found)


def _length(operation: Operation) -> int:
    return min(operation.args[-1], _FEW_SINGLE + 1) + 1 if operation.name in BULK else 1


def _items(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_items, value.values()))
    if isinstance(value, list | tuple):
        return len(value) + sum(map(_items, value))
    # Shorter batches in hexadecimal are simpler; the name of a file always has the same length.
    return len(value) if isinstance(value, str) and value != _NO_CODEC else 0


def simplified(operation: Operation) -> Iterator[Operation]:
    """Yield the operation with fewer settings, targets, batches, records or options."""
    name, arguments = operation
    for place, (argument, value) in enumerate(zip(every_signature()[name], arguments, strict=True)):
        for simpler in _simpler(argument, value):
            yield Operation(name, (*arguments[:place], simpler, *arguments[place + 1 :]))
    if name in BULK and arguments[-1] > 0:
        yield one_of(operation, arguments[-1] - 1)
        yield one_of(operation, 0)
    if name == "append_records":
        yield from _fewer_batches(operation)


def singly(operation: Operation, most: int) -> Iterator[Operation]:
    """Yield the single operations of a bulk operation, at most ``most`` + 1; yield any other operation unchanged."""
    if operation.name not in BULK:
        yield operation
        return
    for number in range(min(operation.args[-1], most + 1)):
        yield one_of(operation, number)


def written_out(operations: Sequence[Operation]) -> Iterator[Sequence[Operation]]:
    """Yield the operations with one bulk operation replaced by the operations that it repeats, or by two of these.

    Of two consecutive entries, the second stores another number. Shrinking has replaced numbers by zeros, and an entry
    of zeros has the bytes of an empty slot, so that only an entry after the last slot would be visible.
    """
    for number in reversed(range(len(operations))):
        operation = operations[number]
        if operation.name in BULK and (count := operation.args[-1]) > 1:
            first, second, last = (one_of(operation, place) for place in (0, 1, count - 1))
            key, stored, *rest = second.args
            candidates: list[tuple[Operation, ...]] = [
                (first, Operation(second.name, (key, stored + 1, *rest))),
                (first, last),
            ]
            if count <= _FEW_SINGLE:
                candidates.append(tuple(singly(operation, _FEW_SINGLE)))
            for singles in candidates:
                yield *operations[:number], *singles, *operations[number + 1 :]


def opened_once(operations: Sequence[Operation]) -> Iterator[Sequence[Operation]]:
    """Yield only the operations after a later opening of an index, preceded by one opening with enough space.

    An index that was opened twice only to change its size needs only one opening with that size.
    """
    for number, (name, arguments) in enumerate(operations):
        if number and name == "open":
            kind, path, base_offset, *_ = arguments
            yield Operation("open", (kind, path, base_offset, _ROOMY, True)), *operations[number + 1 :]


def one_of(operation: Operation, number: int) -> Operation:
    """Return one of the single operations of a bulk operation, counted from 0."""
    name = BULK[operation.name]
    first, second, first_step, second_step, _ = operation.args
    numbers_of_one = first + number * first_step, second + number * second_step
    return Operation(name, (*numbers_of_one, *_SKIP_FULL_CHECK.get(name, ())))


def _simpler(name: str, value: Any) -> Iterator[Any]:
    """Yield simpler values of an argument."""
    if isinstance(value, dict):
        yield from _fewer_options(name, value)
    elif isinstance(value, list) and name in _LISTS:
        yield from _shorter(value)
    elif name == "codec" and value != _NO_CODEC:
        yield _NO_CODEC
    elif name == "producer" and isinstance(value, str):
        yield None


def _fewer_options(name: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    needed = _NEEDED_SETTINGS if name == "settings" else _NEEDED_OF_BATCH
    for key in sorted(options.keys() - needed):
        yield {other: kept for other, kept in options.items() if other != key}
    if name != "settings":
        for key, item in options.items():
            yield from ({**options, key: simpler} for simpler in _simpler(key, item))


def _shorter(items: list[Any]) -> Iterator[list[Any]]:
    half = len(items) // 2
    if half > 1:
        yield from (items[:half], items[half:])
    if half:
        yield from ([*items[:i], *items[i + 1 :]] for i in range(len(items)))
    for i, item in enumerate(items):
        if isinstance(item, dict):
            yield from ([*items[:i], simpler, *items[i + 1 :]] for simpler in _simpler("batch", item))


def _fewer_batches(operation: Operation) -> Iterator[Operation]:
    """Yield an append to a segment with one batch less; the arguments are recomputed as for a follower."""
    text, *append_info = operation.args
    records = bytes.fromhex(text)
    ends = [0]
    while ends[-1] + _BATCH_OVERHEAD <= len(records):
        ends.append(ends[-1] + _BATCH_OVERHEAD + int.from_bytes(records[ends[-1] + 8 : ends[-1] + 12], "big"))
    try:
        is_original = append_info == list(follower_append_info(records))
        for start, end in pairwise(ends):
            rest = records[:start] + records[end:]
            if rest and end <= len(records):
                yield Operation(
                    operation.name, (rest.hex(), *(follower_append_info(rest) if is_original else append_info))
                )
    except KidxError:
        return  # a corrupt batch


_MOVING: Final = frozenset(
    {"base", "offset", "start_offset", "log_start_offset", "recovery_point", "fetch_offset", "upper_bound", "file"}
)
"""Arguments that change if an append before them is deleted."""


def is_valid_sequence(operations: Operations) -> bool:
    """Return True if a trace opens its object in time, corrupts only released files, and has valid arguments."""
    opening = next((step for step in operations if step.needs_opening or step.effect is Effect.OPENS), None)
    if opening is None or opening.needs_opening or not all(map(has_valid_arguments, operations)):
        return False
    in_use = False
    for operation in operations:
        effect = operation.effect
        if effect is Effect.DAMAGES and in_use:
            return False
        if effect is not None and effect is not Effect.DAMAGES:
            in_use = effect is Effect.OPENS
    return True


def reopen_cycles(operations: Operations) -> Iterator[tuple[int, int]]:
    """Yield ranges of steps to delete: all before a later opening, or from a step to the next opening; last first."""
    openings = [i for i, operation in enumerate(operations) if operation.effect is Effect.OPENS]
    for opening in reversed(openings[1:]):
        yield 0, opening
    for earlier, opening in reversed(list(pairwise(openings))):
        for start in range(earlier, opening):
            yield start, opening
            yield start + 1, opening + 1


def renumbered_without(operations: Operations, number: int) -> Iterator[Operations]:
    """Yield the trace without an append, with later offsets as if the append had never happened."""
    name, arguments = operations[number]
    if name not in ("append_as_follower", "append_as_leader", "append_verified"):
        return
    batches = arguments[0]
    count = sum(batch["records"][-1][0] + 1 for batch in batches)
    first = batches[0].get("base")
    rest = operations[number + 1 :]
    for since in (0,) if first is None else (first + 1, first + count):
        yield operations[:number] + tuple(moved(operation, since, -count) for operation in rest)


def moved(operation: Operation, since: int, distance: int) -> Operation:
    """Return the operation with every offset from ``since`` on moved by a distance, but not below zero."""

    def move(name: str, value: Any) -> Any:
        return max(0, value + distance) if name in _MOVING and value >= since else value

    return with_numbers(operation, move)
