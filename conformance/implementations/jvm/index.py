"""Kafka's own ``OffsetIndex``, ``TimeIndex`` and ``TransactionIndex`` of one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.driver import connected_driver
from conformance.implementations.jvm.exceptions import KIND_OF, unknown_outcome
from conformance.implementations.jvm.followers import JvmFollowers
from conformance.implementations.jvm.of_build import name_of, prepared
from conformance.implementations.jvm.reply import UnknownExceptionError, number_of, packed, unpacked
from conformance.implementations.jvm.requests import Requests, numbered, performed
from conformance.implementations.jvm.script import Language
from conformance.operations import KINDS, SIGNATURES, Observation, Operation
from conformance.operations.index import INDEX_OPS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group

_REPLY_BYTES = 1 << 20


OPERATIONS: Final = performed(INDEX_OPS)
CODES: Final = numbered(OPERATIONS)
INDEX: Final = Language(Requests(OPERATIONS), packed)


class JvmIndex:
    """One release's classes behind the adapter interface (see :class:`conformance.implementations.protocol`).

    Args:
        release: a locked release, or any whose dialect is known if there is a build.
        progress: called while jars are fetched.
        build: whose classes are driven instead of the release's own.
        loader: of the classes, if not the one that all have in common.

    Raises:
        ToolError: no Java, no jars; see :func:`~conformance.implementations.jvm.virtual_machine.release_loader`.
    """

    speaks_kafka = True
    group: Final[Group] = "index"
    """The release's jars that it needs."""

    def __init__(
        self, release: str, progress: Progress | None = None, build: Build | None = None, loader: Any = None
    ) -> None:
        self.name = name_of(release, build)
        self.release = release
        self._build = build
        self.takes_negative_sizes = build is None or build.is_kafka
        kinds = {exception: number_of(kind) for exception, kind in KIND_OF.items()}
        self._reply = bytearray(_REPLY_BYTES)
        self.driver = connected_driver(
            "IndexDriver", release, self.group, kinds, OPERATIONS, self._reply, progress, build, loader
        )

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
        self.driver.step(INDEX.step(operation))
        return self.observation(operation)

    @staticmethod
    def followers(rules: int, members: Sequence[tuple[JvmIndex, int]]) -> JvmFollowers:
        """All of them, to be driven as one (see :class:`conformance.implementations.protocol.Follower`)."""
        return JvmFollowers(INDEX, rules, members)

    def observation(self, operation: Operation) -> Observation:
        """The observation of the last operation, which ``operation`` repeats.

        Raises:
            ToolError: a build lacks a class.
        """
        try:
            return unpacked(operation.name, self._reply)
        except UnknownExceptionError as error:
            return Observation(unknown_outcome(self.name, error), None)
