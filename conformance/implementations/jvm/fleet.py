"""Kafka's own segments or logs of many releases, driven as one: Java works while the references do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.driver import driver_class

if TYPE_CHECKING:
    from conformance.operations import Operation


class JvmFleet:
    """Members of one kind; every operation is one crossing into Java, which performs it on threads of its own.

    Args:
        name: of the Java class, to which the members' drivers are added.
        members: implementations, each with its ``driver``.
        driving: makes of it what performs operations.
    """

    def __init__(
        self, name: str, members: Sequence[Any], driving: Callable[[Any], Callable[[Operation], None]]
    ) -> None:
        drivers = driver_class(name)()
        for member in members:
            drivers.add(member.driver)
        self.perform = driving(drivers)
        """Starts an operation and returns at once."""
        self.join: Callable[[], None] = drivers.join
        """Waits until everybody has performed it."""
