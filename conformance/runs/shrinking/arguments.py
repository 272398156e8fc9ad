"""Simpler arguments (shorter lists, fewer options and settings), and the cost that orders traces by simplicity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from conformance.implementations.methods import BULK
from conformance.operations import Operation, every_signature
from conformance.runs.shrinking.integers import BASES, cost_of_number, numbers
from kidx.errors import KidxError
from kidx.segment.append_info import follower_append_info

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
_FEW: Final = 5
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
    return min(operation.args[-1], _FEW + 1) + 1 if operation.name in BULK else 1


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
            if count <= _FEW:
                candidates.append(tuple(singly(operation, _FEW)))
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
