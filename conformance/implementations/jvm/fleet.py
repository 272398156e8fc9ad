"""Kafka's own classes of many releases, driven as one: Java works while the references do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.driver import driver_class

if TYPE_CHECKING:
    from conformance.operations import Operation


class JvmFleet:
    """Members of one kind (see :class:`conformance.implementations.protocol.Fleet`).

    Args:
        name: of the Java class, to which the members' drivers are added.
        members: implementations, each with its ``driver``.
        driving: makes of a driver, or of that class, what performs operations.
    """

    def __init__(
        self, name: str, members: Sequence[Any], driving: Callable[[Any], Callable[[Operation], None]]
    ) -> None:
        self.start: Callable[[Operation], None]
        self.finish: Callable[[], None]
        if len(members) == 1:  # there is nothing to share out
            self.start, self.finish = driving(members[0].driver), _nothing
            return
        drivers = driver_class(name)()
        for member in members:
            drivers.add(member.driver)
        self.start, self.finish = driving(drivers), drivers.finish


def _nothing() -> None:
    """What is left to do when one release has performed its operation."""
