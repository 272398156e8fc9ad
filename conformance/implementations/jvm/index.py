"""Kafka's own ``OffsetIndex``, ``TimeIndex`` and ``TransactionIndex`` of one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import connected_driver
from conformance.implementations.jvm.exceptions import KIND_OF
from conformance.implementations.jvm.followers import JvmFollowers
from conformance.implementations.jvm.of_build import name_of, prepared
from conformance.implementations.jvm.reply import UnknownExceptionError, number_of, unpacked
from conformance.implementations.jvm.script import CODES, PADDING
from conformance.operations import KINDS, SIGNATURES, Observation, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.fetch import Progress

_REPLY_BYTES = 1 << 20


class _Driving:
    """Tells a driver to perform an operation."""

    def __init__(self, driver: Any) -> None:
        self._open = driver.open
        self._rename = driver.rename
        self._perform = driver.perform

    def __call__(self, operation: Operation) -> None:
        name, arguments = operation
        code = CODES.get(name)
        if code is not None:
            self._perform(code, *arguments, *PADDING[len(arguments)])
        elif name == "open":
            self._open(KINDS.index(arguments[0]), *arguments[1:])
        elif name == "rename":
            self._rename(*arguments)
        else:
            raise ValueError(f"{name} is the harness's own")


class JvmIndex:
    """One release's classes behind the adapter interface (see :class:`conformance.implementations.protocol`).

    Args:
        release: a locked release, or any whose dialect is known if there is a build.
        progress: called while jars are fetched.
        build: whose classes are driven instead of the release's own.

    Raises:
        ToolError: no Java, no jars; see :func:`~conformance.implementations.jvm.virtual_machine.release_loader`.
    """

    speaks_kafka = True

    def __init__(self, release: str, progress: Progress | None = None, build: Build | None = None) -> None:
        self.name = name_of(release, build)
        self.release = release
        self._build = build
        kinds = {exception: number_of(kind) for exception, kind in KIND_OF.items()}
        self._reply = bytearray(_REPLY_BYTES)
        self.driver = connected_driver("IndexDriver", release, "index", kinds, self._reply, progress, build)
        self._drive = _Driving(self.driver)

    def require(self, kind: str) -> None:
        """Finds what a kind of index needs.

        Raises:
            NotDrivenError: a build does not have it.
            ToolError: a class of a build cannot be loaded.
        """
        if self._build is not None:
            prepared(self._build, lambda: self.driver.prepare(KINDS.index(kind)))

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.driver.begin(f"{directory}/")

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
        return operation in SIGNATURES

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
        self._drive(operation)
        return self.observation(operation)

    @staticmethod
    def followers(rules: int, members: Sequence[tuple[JvmIndex, int]]) -> JvmFollowers:
        """All of them, to be driven as one (see :class:`conformance.implementations.protocol.Follower`)."""
        return JvmFollowers(rules, members)

    def observation(self, operation: Operation) -> Observation:
        """The observation of the last operation, which ``operation`` repeats.

        Raises:
            ToolError: the classes threw what no error kind stands for.
        """
        try:
            return unpacked(operation.name, self._reply)
        except UnknownExceptionError as error:
            raise ToolError(f"{self.name} threw what no error kind stands for: {error}") from None
