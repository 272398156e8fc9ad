"""Predictions of the model: outcomes and files on disk, and the placeholder for parts that it does not predict."""

from __future__ import annotations

from enum import Enum
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.operations import Outcome

if TYPE_CHECKING:
    from conformance.operations import State


class Unknown(Enum):
    """Type of :data:`UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""Placeholder for a state or the bytes of a file that the model does not predict."""


class Prediction(NamedTuple):
    """Expected result of an operation.

    Attributes:
        outcome: The value or the kind of error; texts are not predicted.
        state: The state of the index after the operation, or :data:`UNKNOWN`.
        file: The content of the index's file after the operation, None if the file does not exist, or :data:`UNKNOWN`.
            It is the model's own buffer, which the next operation changes: compare it immediately, and keep neither it
            nor a ``memoryview`` of it.
    """

    outcome: Outcome
    state: State | Unknown
    file: bytes | bytearray | Unknown | None


class UndefinedError(Exception):
    """Operation after which the model cannot predict anything until the next ``open``."""


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


Content = bytearray | None | Unknown
"""Bytes of a file, None if the file does not exist, or UNKNOWN."""


class Directory:
    """Directory of files, which is empty at first and has no subdirectories.

    The buffers are shared with the open index, because a mapped file is the file itself.
    """

    def __init__(self) -> None:
        self._files: dict[str, Content] = {}
        self._others: Content = None

    def read(self, name: str) -> Content:
        """Return the content of a file."""
        return self._files.get(name, self._others)

    def put(self, name: str, content: Content) -> None:
        """Set the content of a file."""
        self._files[name] = content

    def move(self, old: str, new: str) -> None:
        """Rename a file, replacing any file with the new name."""
        content = self.read(old)
        self._files[old] = None
        self._files[new] = content

    def invalidate(self) -> None:
        """Mark all files as unknown."""
        self._files.clear()
        self._others = UNKNOWN
