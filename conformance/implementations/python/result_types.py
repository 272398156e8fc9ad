"""Checks of the results of Python objects: floats and integers of more than 64 bits are rejected."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from conformance.operations.index import INDEX_OPS
from conformance.operations.op import Shape
from kidx.java_numbers import LONG_MAX, LONG_MIN


class ShapeError(TypeError):
    """Result of a method that has the wrong type."""


def shaped(shape: Callable[[Any], Any], value: Any) -> Any:
    """Return a result, converted to Python's own types.

    Raises:
        ShapeError: The result has another type.
    """
    try:
        return shape(value)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"returned {value!r}: {error}") from None


def integer(value: Any) -> int:
    """Return a 64-bit integer as a Python ``int``.

    Raises:
        TypeError, ValueError: The value is not a 64-bit integer.
    """
    number = operator.index(value)  # numpy's integers are fine, floats are not
    if LONG_MIN <= number <= LONG_MAX:
        return number
    raise ValueError("expected 64-bit integers")


def pair(value: Any) -> tuple[int, int]:
    """Return two 64-bit integers."""
    first, second = value
    return integer(first), integer(second)


def _pair_or_none(value: Any) -> tuple[int, int] | None:
    return None if value is None else pair(value)


def flag(value: Any) -> bool:
    """Return a truth value.

    Raises:
        TypeError: The value is neither True nor False.
    """
    if isinstance(value, bool):
        return value
    raise TypeError("expected True or False")


def _transactions(value: Any) -> tuple[tuple[int, ...], ...]:
    found = tuple(tuple(integer(field) for field in txn) for txn in value)
    if any(len(txn) != 4 for txn in found):
        raise ValueError("an aborted transaction has four numbers")
    return found


def _collected(value: Any) -> tuple[tuple[tuple[int, ...], ...], bool]:
    transactions, complete = value
    return _transactions(transactions), flag(complete)


_CHECKS: Final[dict[Shape, Callable[[Any], Any]]] = {
    Shape.FLAG: flag,
    Shape.PAIR: pair,
    Shape.MAYBE_PAIR: _pair_or_none,
    Shape.TRANSACTIONS: _transactions,
    Shape.COLLECTED: _collected,
}
SHAPES: Final = {name: _CHECKS[each.gives] for name, each in INDEX_OPS.items() if each.gives in _CHECKS}
"""Checks of the results, by the operation of the method."""
