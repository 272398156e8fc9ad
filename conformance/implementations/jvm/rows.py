"""Rows of numbers that represent values of a type: Java adds them to a reply (``Reply.java``), and Python reads them.

=============================== =====================================================
``int``, ``bool``               one number
``str``                         the two halves of an id of Kafka
``T | None``                    0; or 1 and the numbers of ``T``
``tuple[T, ...]``               the number of elements, and the numbers of each
``tuple[T, U]``, a NamedTuple   the numbers of its fields
=============================== =====================================================

Every step of a lockstep needs a row. For speed, encoders and decoders are compiled from the types, like the methods of
a NamedTuple.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from conformance.operations.op import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HALF: Final = 1 << 64


class Row(NamedTuple):
    """Encoder and decoder of a type.

    Attributes:
        numbers: A function that returns the numbers of a value.
        value: A function that returns the value from its numbers.
    """

    numbers: Callable[[Any], Sequence[int]]
    value: Callable[[Sequence[int]], Any]


@cache
def row_of(kind: Any) -> Row:
    """Return encoder and decoder of a type."""
    names: dict[str, Any] = {"halves": _halves, "id_of": _id_of}
    read = eval(f"lambda number: {_read(kind, names)}", names)  # noqa: S307 -- the text is made here
    return Row(
        eval(f"lambda value: ({_numbers(kind, 'value')},)", names),  # noqa: S307 -- as above
        lambda numbers: read(iter(numbers).__next__),
    )


def _numbers(kind: Any, value: str) -> str:
    """Return the numbers of a value, as items of a tuple in Python."""
    if kind in (int, bool):
        return value
    if kind is str:
        return f"*halves({value})"
    parts = _parts(kind)
    if type(None) in parts:
        return f"*((0,) if {value} is None else (1, {_numbers(parts[0], value)}))"
    if parts[-1] is Ellipsis:
        each = f"*[number for each in {value} for number in ({_numbers(parts[0], 'each')},)]"
        return f"len({value}), {f'*{value}' if parts[0] is int else each}"
    return ", ".join(_numbers(part, f"{value}[{place}]") for place, part in enumerate(parts))


def _read(kind: Any, names: dict[str, Any]) -> str:
    """Return an expression in Python for the value whose numbers ``number`` returns, one after the other."""
    if kind is int:
        return "number()"
    if kind is bool:
        return "bool(number())"
    if kind is str:
        return "id_of(number(), number())"
    parts = _parts(kind)
    if type(None) in parts:
        return f"({_read(parts[0], names)} if number() else None)"
    if parts[-1] is Ellipsis:
        return f"tuple([{_read(parts[0], names)} for _ in range(number())])"
    if get_origin(kind) is not tuple:
        names[kind.__name__] = kind
    fields = ", ".join(_read(part, names) for part in parts)
    return f"({fields},)" if get_origin(kind) is tuple else f"{kind.__name__}({fields})"


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) or tuple(get_type_hints(kind).values())


def _halves(text: str) -> tuple[int, int]:
    data = base64.urlsafe_b64decode(f"{text}==")
    return int.from_bytes(data[:8], signed=True), int.from_bytes(data[8:], signed=True)


def _id_of(high: int, low: int) -> str:
    data = (high % _HALF).to_bytes(8) + (low % _HALF).to_bytes(8)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_FLAT: Final = Row(lambda value: value, tuple)
_Transactions = tuple[tuple[int, int, int, int], ...]
ROWS: Final = {
    Shape.FLAG: row_of(bool),
    Shape.NUMBER: row_of(int),
    Shape.NUMBERS: _FLAT,
    Shape.PAIR: _FLAT,
    Shape.MAYBE_PAIR: _FLAT,
    Shape.ANSWERS: row_of(tuple[tuple[int, int, int] | None, ...]),
    Shape.TRANSACTIONS: row_of(_Transactions),
    Shape.COLLECTED: row_of(tuple[_Transactions, bool]),
}
"""Rows of the values of operations that return something."""
