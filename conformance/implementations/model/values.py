"""Outcomes of the model, and the limits of Java's numbers."""

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
"""The first number that is too large for a Java ``int``."""
LONG: Final = 1 << 63
"""The first number that is too large for a Java ``long``."""


def as_int(number: int) -> int:
    """Return a number modulo 2**32, as a Java ``int``."""
    return (number + INT) % (2 * INT) - INT


def as_long(number: int) -> int:
    """Return a number modulo 2**64, as a Java ``long``."""
    return (number + LONG) % (2 * LONG) - LONG


def need_ints(*numbers: int) -> None:
    """Abstain if an argument does not fit into a Java ``int``."""
    if not -INT <= min(numbers) <= max(numbers) < INT:
        raise UndefinedError


def need_longs(*numbers: int) -> None:
    """Abstain if an argument does not fit into a Java ``long``."""
    if not -LONG <= min(numbers) <= max(numbers) < LONG:
        raise UndefinedError


def ordered_prefix(numbers: list[int]) -> int:
    """Return the length of the longest prefix in which numbers do not descend."""
    for n, fits in enumerate(map(le, numbers, islice(numbers, 1, None)), 1):
        if not fits:
            return n
    return len(numbers)
