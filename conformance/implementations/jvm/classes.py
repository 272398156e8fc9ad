"""Base of Kafka's own classes of one release: one driver, and replies of one format (``Reply.java``).

In a lockstep the classes of every release reply to every step, and nearly always as the reference did. So the
reference's observation is packed once for all releases of a dialect and compared with the bytes of the replies; only
replies that differ are unpacked.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from conformance.implementations.jvm.codecs import JvmCodecs
from conformance.implementations.jvm.driver import connected_driver, loader_of
from conformance.implementations.jvm.exceptions import unknown_outcome
from conformance.implementations.jvm.followers import JvmFollowers
from conformance.implementations.jvm.of_build import name_of, prepared
from conformance.implementations.jvm.requests import Requests, numbers_of, value_of
from conformance.implementations.jvm.script import Language
from conformance.operations import Operation, Outcome

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group
    from conformance.operations.op import Op

_HEAD: Final = struct.Struct("=3q")
"""Error (0 for none, negative for one of no kind), number of values (negative for none), numbers of the state."""

_LONG: Final = struct.Struct("=q")
_WITHOUT_TEXT: Final = _LONG.pack(-1)
_ANY_TEXT: Final = _LONG.pack(-2)
_SILENT: Final = 1 << 8
"""Added to the number of a kind whose text is not compared."""

ObservationType = TypeVar("ObservationType")


class JvmClasses(ABC, Generic[ObservationType]):
    """One release's classes behind the adapter interface (:mod:`conformance.implementations.protocol`).

    Args:
        release: a locked release, or any whose dialect is known if there is a build.
        progress: called while jars are fetched.
        build: whose classes are driven instead of the release's own.
        loader: of the classes, if not the one that all have in common.

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
    operations: ClassVar[Mapping[str, Op]]
    """What it can do."""
    step_of: ClassVar[Requests]
    """Writes them."""
    any_text: ClassVar[bool] = False
    """Texts of refusals are not compared at all."""
    reply_bytes: ClassVar[int]
    """Room for a reply."""
    silent: ClassVar[Collection[str]] = frozenset()
    """The kinds of refusals whose text is not compared."""
    lends: ClassVar[bool] = True
    """Its codec libraries make the batches of the reference that it is held to."""

    def __init__(
        self, release: str, progress: Progress | None = None, build: Build | None = None, loader: Any = None
    ) -> None:
        self.name = name_of(release, build)
        self.release = release
        self.build = build
        numbers = {exception: self._number(kind) for exception, kind in self.kind_of.items()}
        self._reply = bytearray(self.reply_bytes)
        loader = loader_of(release, self.group, progress, build) if loader is None else loader
        if self.lends:
            codecs = JvmCodecs(loader)
            self.compress, self.decompress = codecs.compress, codecs.decompress
        self.driver = connected_driver(
            self.driver_name, release, self.group, numbers, self.operations, self._reply, progress, build, loader
        )
        self.prepare()

    def prepare(self) -> None:
        """Find all classes of a build that the driver needs.

        Raises:
            NotDrivenError: the build does not have them.
            ToolError: a class of the build cannot be loaded.
        """
        if self.build is not None:
            prepared(self.build, self.driver.prepare)

    def _number(self, kind: str) -> int:
        return self.error_kinds.index(kind) + 1 + (_SILENT if kind in self.silent else 0)

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
        self.driver.step(self.step_of(operation))
        return self.observation(operation)

    def observation(self, operation: Operation) -> ObservationType:
        """The observation of the last operation, which ``operation`` repeats.

        Raises:
            ToolError: a build lacks a class.
        """
        error, count, state_count = _HEAD.unpack_from(self._reply)
        values_count = max(count, 0)
        body = struct.unpack_from(f"={values_count + state_count}q", self._reply, _HEAD.size)
        state = body[values_count:]
        if not error:
            value = None if count < 0 else value_of(self.operations[operation.name].gives, body[:values_count])
            return self.observed(Outcome(None, value), state)
        text = self.driver.text()
        if error < 0:
            return self.observed(unknown_outcome(self.name, text), state)
        return self.observed(self.refusal(self.error_kinds[error - 1], None if text is None else str(text)), state)

    # -- batched execution ----------------------------------------------------------------------------------------

    @classmethod
    def followers(cls, rules: int, members: Sequence[tuple[Self, int]]) -> JvmFollowers:
        """All of them, to be driven as one (see :class:`conformance.implementations.protocol.Follower`)."""
        return JvmFollowers(Language(cls.step_of, cls.packed), rules, members)

    @classmethod
    def packed(cls, operation: Operation, observation: Any) -> bytes | None:
        """The reply that stands for an observation; None if no reply can (a defective reference may say anything)."""
        (error, value, text), state = observation
        try:
            values = () if value is None else numbers_of(cls.operations[operation.name].gives, value)
            numbers = () if state is None else cls.numbers_of_state(state)
            head = _HEAD.pack(
                0 if error is None else cls.error_kinds.index(error) + 1,
                -1 if value is None else len(values),
                len(numbers),
            )
            told = _WITHOUT_TEXT
            if cls.any_text:
                told = _ANY_TEXT
            elif text is not None:
                words = text.encode()
                told = _LONG.pack(len(words)) + words
            return head + struct.pack(f"={len(values) + len(numbers)}q", *values, *numbers) + told
        except (struct.error, LookupError, ValueError, TypeError):
            return None

    @staticmethod
    @abstractmethod
    def numbers_of_state(state: Any) -> Sequence[int]:
        """What :meth:`observed` makes the state of."""

    @abstractmethod
    def refusal(self, kind: str, text: str | None) -> Outcome:
        """The outcome of an exception of that kind, with its message."""

    @abstractmethod
    def observed(self, outcome: Outcome, state: tuple[int, ...]) -> ObservationType:
        """The outcome with the state that the numbers tell; there are none while nothing is open."""
