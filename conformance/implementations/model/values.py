"""The outcomes that models answer with, and the limits of Java's numbers."""

from __future__ import annotations

from itertools import islice
from operator import le
from typing import Final

from conformance.implementations.model.prediction import UndefinedError
from conformance.operations import Outcome

BUFFER_OVERFLOW: Final = Outcome("buffer_overflow")
CLOSED: Final = Outcome("closed")
CORRUPT: Final = Outcome("corrupt")
ILLEGAL_STATE: Final = Outcome("illegal_state")
INVALID_ARGUMENT: Final = Outcome("invalid_argument")
INVALID_OFFSET: Final = Outcome("invalid_offset")
IO: Final = Outcome("io")
OFFSET_OVERFLOW: Final = Outcome("offset_overflow")
OUT_OF_BOUNDS: Final = Outcome("out_of_bounds")
READ_ONLY: Final = Outcome("read_only")
YES: Final = Outcome(value=True)
NO: Final = Outcome(value=False)

INT: Final = 1 << 31
LONG: Final = 1 << 63


def as_int(number: int) -> int:
    """A number as Java's ``int`` holds it: modulo 2**32, signed."""
    return (number + INT) % (2 * INT) - INT


def as_long(number: int) -> int:
    """A number as Java's ``long`` holds it: modulo 2**64, signed."""
    return (number + LONG) % (2 * LONG) - LONG


def need_ints(*numbers: int) -> None:
    """Arguments that a Java ``int`` cannot hold have no meaning."""
    if not -INT <= min(numbers) <= max(numbers) < INT:
        raise UndefinedError


def need_longs(*numbers: int) -> None:
    """Arguments that a Java ``long`` cannot hold have no meaning."""
    if not -LONG <= min(numbers) <= max(numbers) < LONG:
        raise UndefinedError


def in_order(numbers: list[int]) -> int:
    """How many of the first numbers do not fall."""
    for n, fits in enumerate(map(le, numbers, islice(numbers, 1, None)), 1):
        if not fits:
            return n
    return len(numbers)
