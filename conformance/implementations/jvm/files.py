"""What a release's segment and its log have in common: one driver, and replies of one form (``LogReply.java``)."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from conformance.implementations.jvm.driver import connected_driver
from conformance.implementations.jvm.exceptions import unknown_outcome
from conformance.implementations.jvm.of_build import name_of, prepared
from conformance.operations import Operation, Outcome

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.fetch import Progress
    from conformance.kafka.releases import Group

_HEAD: Final = struct.Struct("=3q")
"""Error (0 for none, negative for one of no kind), number of values (negative for none), numbers of the state."""

ObservationType = TypeVar("ObservationType")


class JvmFiles(ABC, Generic[ObservationType]):
    """One release's classes behind the adapter interface (:mod:`conformance.implementations.protocol`).

    Args:
        release: a locked release, or any whose dialect is known if there is a build.
        progress: called while jars are fetched.
        build: whose classes are driven instead of the release's own.

    Raises:
        NotDrivenError: the build does not have what the driver needs.
        ToolError: no Java, no jars, or a class whose parts are not known.
    """

    speaks_kafka = True

    driver_name: ClassVar[str]
    """The driver, of :mod:`conformance.implementations.jvm.driver`."""
    group: ClassVar[Group]
    """The release's jars that it needs."""
    kind_of: ClassVar[Mapping[str, str]]
    """Which exception is which kind; a class stands for its subclasses too."""
    error_kinds: ClassVar[Sequence[str]]
    """The kinds, in the order of their numbers in a reply, from 1 on."""
    operations: ClassVar[Collection[str]]
    """The names of what it can do."""
    reply_bytes: ClassVar[int]
    """Room for a reply."""
    driving: ClassVar[type[Any]]
    """Made of a driver, it is called with each operation and tells the driver to perform it."""

    def __init__(self, release: str, progress: Progress | None = None, build: Build | None = None) -> None:
        self.name = name_of(release, build)
        self.release = release
        numbers = {exception: self.error_kinds.index(kind) + 1 for exception, kind in self.kind_of.items()}
        self._reply = bytearray(self.reply_bytes)
        self.driver = connected_driver(self.driver_name, release, self.group, numbers, self._reply, progress, build)
        self._drive = self.driving(self.driver)
        if build is not None:
            prepared(build, self.driver.prepare)

    def end(self) -> None:
        """See the protocol."""
        self.driver.abandon()

    def step_in_progress(self) -> int:
        """See :class:`conformance.implementations.protocol.Watchable`."""
        return int(self.driver.running().step())

    def stack(self) -> str:
        """See :class:`conformance.implementations.protocol.Watchable`."""
        return str(self.driver.running().stack())

    def supports(self, operation: str) -> bool:
        """See the protocol."""
        return operation in self.operations

    def perform(self, operation: Operation) -> ObservationType:
        """See the protocol."""
        self._drive(operation)
        return self.observation(operation)

    def observation(self, operation: Operation) -> ObservationType:
        """The observation of the last operation, which ``operation`` repeats.

        Raises:
            ToolError: the class threw what no error kind stands for.
        """
        error, count, state_count = _HEAD.unpack_from(self._reply)
        values_count = max(count, 0)
        body = struct.unpack_from(f"={values_count + state_count}q", self._reply, _HEAD.size)
        state = body[values_count:]
        if not error:
            value = None if count < 0 else self.value(operation.name, body[:values_count])
            return self.observed(Outcome(None, value), state)
        text = self.driver.text()
        if error < 0:
            return self.observed(unknown_outcome(self.name, text), state)
        return self.observed(self.refusal(self.error_kinds[error - 1], None if text is None else str(text)), state)

    @abstractmethod
    def value(self, name: str, values: tuple[int, ...]) -> Any:
        """What the operation of that name returned, from the numbers of the reply."""

    @abstractmethod
    def refusal(self, kind: str, text: str | None) -> Outcome:
        """The outcome of an exception of that kind, with its message."""

    @abstractmethod
    def observed(self, outcome: Outcome, state: tuple[int, ...]) -> ObservationType:
        """The outcome with the state that the numbers tell; there are none while nothing is open."""
