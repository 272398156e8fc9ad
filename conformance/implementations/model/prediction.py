"""What the model says of an operation, and how it says that it does not know."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.operations import Outcome, State


class Unknown(Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""Stands for a state or the bytes of a file of which the model says nothing."""


class Prediction(NamedTuple):
    """What has to come of an operation.

    Attributes:
        outcome: its value or the kind of its refusal; the model knows no texts.
        state: what the index says of itself afterwards, or :data:`UNKNOWN`.
        file: every byte that is then on disk under the name the index has, None where there is no such file, or
            :data:`UNKNOWN`. It is the model's own buffer, which the next operation changes: compare it at once, and
            keep neither it nor a ``memoryview`` of it.
    """

    outcome: Outcome
    state: State | Unknown
    file: bytes | bytearray | Unknown | None


class UndefinedError(Exception):
    """The model cannot predict this index from here on; the next ``open`` makes it predictable again."""
