"""Predictions of the model, and the placeholder for parts that it does not predict."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.operations import Outcome, State


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
