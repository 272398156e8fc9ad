"""What an implementation has to offer to be driven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation


class Implementation(Protocol):
    """One party of a lockstep. It owns one directory and has at most one index open.

    Attributes:
        name: how reports call it, e.g. ``"jvm 3.9.2"``.
        release: the Kafka release whose dialect it is held to.
        speaks_kafka: its refusals carry Kafka's own texts, which are compared letter for letter.
    """

    name: str
    release: str
    speaks_kafka: bool

    def begin(self, directory: Path) -> None:
        """Starts an example in an empty directory; whatever was open before is abandoned without touching files."""

    def supports(self, operation: str) -> bool:
        """Whether it has an operation of this name at all."""

    def perform(self, operation: Operation) -> Observation:
        """Performs one operation and says what came of it. A refusal is an outcome, never an exception."""

    def end(self) -> None:
        """Ends the example: closes handles, without caring what that does to the files."""
