"""What an implementation has to offer to be driven."""

from __future__ import annotations

from collections.abc import Callable
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


class Member(Implementation, Protocol):
    """One of several implementations that can be driven together: what makes a lockstep of 26 releases fast.

    After its fleet has performed an operation, a lockstep does not call ``perform`` of the member but asks it what came
    of that operation.
    """

    @staticmethod
    def fleet(members: list[Member]) -> Fleet:
        """Those of one kind, to be driven as one."""

    def answers(self, reply: bytes) -> bool:
        """Whether it answered the last operation exactly so; ``reply`` is its fleet's ``packed``."""

    def observation(self, operation: Operation) -> Observation:
        """What came of the last operation, which was this one."""


class Fleet(Protocol):
    """Several implementations that perform an operation in one go, while the lockstep is busy with its references.

    Attributes:
        start: begins to perform an operation, at least; once it was called, ``finish`` must be, before anything else.
        finish: returns when all members have performed it.
    """

    start: Callable[[Operation], None]
    finish: Callable[[], None]

    def packed(self, operation: Operation, observation: Observation) -> bytes | None:
        """The reply of a member that makes this observation; None if none could be made."""
