"""Base of Kafka's own classes of one release: a driver, and replies in one format (``Reply.java``).

In a lockstep, the classes of every release reply to every step, and nearly every reply equals the reply of the
reference. The observation of the reference is therefore encoded once for all releases of a dialect, and compared with
the bytes of the replies; only replies that differ are decoded.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from conformance.implementations.jvm.codecs import JvmCodecs
from conformance.implementations.jvm.driver import connected_driver, loader_of
from conformance.implementations.jvm.exceptions import display_name, probe_build, unmapped_exception
from conformance.implementations.jvm.rows import ROWS, Row, row_of
from conformance.implementations.jvm.step_batch import JvmBatchGroup, Language
from conformance.implementations.protocol import OptionalMembers
from conformance.operations import Operation, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from conformance.implementations.jvm.step_batch import Requests
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group
    from conformance.operations.op import Op

_HEAD: Final = struct.Struct("=3q")
"""Error (0: none, negative: unknown kind), size of the value in numbers (negative: none), size of the state."""

_WITHOUT_TEXT: Final = -1
_ANY_TEXT: Final = -2
"""Lengths of the message in an expected reply: it has none, or any message matches."""
_SILENT: Final = 1 << 8
"""Number that is added to the number of a kind whose text is not compared."""

ObservationType = TypeVar("ObservationType")


class JvmClasses(OptionalMembers, Generic[ObservationType]):
    """Classes of one release as an implementation (:mod:`conformance.implementations.protocol`).

    Args:
        release: A locked release, or with a build any release with a known dialect.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.
        loader: The loader of the classes; None for the shared one.

    Raises:
        NotDrivenError: The build lacks a class or member that the driver needs.
        ToolError: Java or the jars are missing, or a class has members that the adapter does not know.
    """

    speaks_kafka = True

    driver_name: ClassVar[str]
    """Name of the driver's Java class."""
    group: ClassVar[Group]
    """Group of the release's jars that the classes need."""
    kind_of: ClassVar[Mapping[str, str]]
    """Error kinds of exceptions; a class includes its subclasses."""
    error_kinds: ClassVar[Sequence[str]]
    """Error kinds, in the order of their numbers in a reply, from 1 on."""
    operations: ClassVar[Mapping[str, Op]]
    """Supported operations."""
    state: ClassVar[type]
    """Type of the state."""
    observation_type: Callable[[Outcome, Any], ObservationType]
    """Type of the observations, which has an outcome and a state."""
    encode_step: ClassVar[Requests]
    """Encoder of the operations."""
    ignores_texts: ClassVar[bool] = False
    """True if texts of errors are not compared at all."""
    reply_bytes: ClassVar[int]
    """Size of the buffer for a reply, in bytes."""
    silent: ClassVar[Collection[str]] = frozenset()
    """Error kinds whose text is not compared."""
    shares_codecs: ClassVar[bool] = True
    """True if the reference also uses the codec libraries of this release."""

    row: ClassVar[Row]
    """Encoder and decoder of the state."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.row = row_of(cls.state)

    def __init__(
        self, release: str, progress: Progress | None = None, build: Build | None = None, loader: Any = None
    ) -> None:
        self.name = display_name(release, build)
        self.release = release
        self.build = build
        self.directory = ""
        numbers = {exception: self._number_for_driver(kind) for exception, kind in self.kind_of.items()}
        self._reply = bytearray(self.reply_bytes)
        loader = loader_of(release, self.group, progress, build) if loader is None else loader
        if self.shares_codecs:
            codecs = JvmCodecs(loader)
            self.compress, self.decompress = codecs.compress, codecs.decompress
        self.driver = connected_driver(
            self.driver_name, release, self.group, numbers, self.operations, self._reply, progress, build, loader
        )
        self.prepare()

    def prepare(self) -> None:
        """Find all classes of a build that the driver needs.

        Raises:
            NotDrivenError: The build lacks a class.
            ToolError: A class of the build cannot be loaded.
        """
        if self.build is not None:
            probe_build(self.build, self.driver.prepare)

    def _number_for_driver(self, kind: str) -> int:
        """Return the number of an error kind, increased if the driver is not to compare the text."""
        return self.error_kinds.index(kind) + 1 + (_SILENT if kind in self.silent else 0)

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.directory = str(directory)
        self.driver.begin(self.directory)

    def end(self) -> None:
        """End the example; see the protocol."""
        self.driver.abandon()

    def step_in_progress(self) -> int:
        """Return the step in progress; see :class:`~conformance.implementations.protocol.StackInspectable`."""
        return int(self.driver.running().step())

    def stack(self) -> str:
        """Return the stack; see :class:`conformance.implementations.protocol.StackInspectable`."""
        return str(self.driver.running().stack())

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; see the protocol."""
        return operation in self.operations

    def perform(self, operation: Operation) -> ObservationType:
        """Execute an operation; see the protocol."""
        self.driver.step(self.encode_step(operation))
        return self.observation(operation)

    def observation(self, operation: Operation) -> ObservationType:
        """Return the observation of the last executed operation, which is ``operation``.

        Raises:
            ToolError: A build lacks a class.
        """
        error, count, state_count = _HEAD.unpack_from(self._reply)
        values_count = max(count, 0)
        body = struct.unpack_from(f"={values_count + state_count}q", self._reply, _HEAD.size)
        state = self.row.value(body[values_count:]) if state_count else None
        if not error:
            row = ROWS.get(self.operations[operation.name].gives)
            value = None if row is None or count < 0 else row.value(body[:values_count])
            return self.observation_type(Outcome(None, value), state)
        text = self.driver.text()
        if error < 0:
            return self.observation_type(unmapped_exception(self.name, text), state)
        kind = self.error_kinds[error - 1]
        return self.observation_type(self.refusal(kind, None if text is None else str(text)), state)

    # -- batched execution ----------------------------------------------------------------------------------------

    @classmethod
    def batch_group(cls, rule_sets: int, members: Sequence[tuple[Self, int]]) -> JvmBatchGroup:
        """Return the group of all members (see :class:`conformance.implementations.protocol.BatchedImplementation`)."""
        return JvmBatchGroup(Language(cls.encode_step, cls.encode_reply), rule_sets, members)

    @classmethod
    def encode_reply(cls, operation: Operation, observation: Any) -> bytes | None:
        """Encode the reply for an observation; None if it cannot be encoded, as for a defective reference."""
        (error, value, text), state = observation
        try:
            values = None if value is None else ROWS[cls.operations[operation.name].gives].numbers(value)
            return cls.reply_of(error, values, () if state is None else cls.row.numbers(state), text)
        except (struct.error, LookupError, ValueError, TypeError):
            return None

    @classmethod
    def reply_of(
        cls, error: str | None, values: Sequence[int] | None, state: Sequence[int] = (), text: str | None = None
    ) -> bytes:
        """Encode a reply.

        Args:
            error: The error kind, or None.
            values: The numbers of the value; None if there is no value.
            state: The numbers of the state.
            text: The message of the error.
        """
        words = None if text is None or cls.ignores_texts else text.encode()
        return struct.pack(
            f"={4 + len(values or ()) + len(state)}q",
            0 if error is None else cls.error_kinds.index(error) + 1,
            -1 if values is None else len(values),
            len(state),
            *(values or ()),
            *state,
            _ANY_TEXT if cls.ignores_texts else _WITHOUT_TEXT if words is None else len(words),
        ) + (words or b"")

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """Return the outcome of an exception of this kind, without the message if that is not compared."""
        if kind in self.silent or text is None:
            return Outcome(kind)
        return Outcome(kind, None, self.comparable(text))

    def comparable(self, text: str) -> str:
        """Return a message without the parts that differ between any two implementations."""
        return text.replace(f"{self.directory}/", "")
