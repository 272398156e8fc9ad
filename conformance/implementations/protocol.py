"""Interfaces of implementations, and the methods of a Python index, which have the names of kidx's methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, runtime_checkable

from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import missing_index_capability

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.operations import Observation, Operation
    from kidx.dialect import Dialect
    from kidx.records import Codec
    from kidx.records.codecs import DecompressedStream, ReadMode


class OptionalMembers:
    """Members that an implementation need not have, with their defaults."""

    capabilities: frozenset[str] | None = None
    """The declared capabilities; None for an implementation that has all and declares none."""
    takes_negative_sizes: bool = True
    """True if ``resize`` may have a negative size, as only Kafka's classes and kidx accept (AI-44)."""
    in_process: bool = True
    """False if the implementation has its own time limits."""
    failures_between_examples: list[str] | None = None
    """The failures that occurred while files were closed between two examples."""
    excused: Counter[str] | None = None
    """The number of steps with a tolerated difference, by the description of the tolerance."""
    step_in_progress: Callable[[], int] | None = None
    """See :class:`StackInspectable`."""
    batch_group: Callable[..., Any] | None = None
    """See :class:`BatchedImplementation`."""
    decompress: Callable[..., DecompressedStream | None] | None = None
    """See :class:`CodecProvider`."""
    own_name: Callable[[str], str | None] | None = None
    """A function that returns the name that a file has in a fork of Kafka, or None if the fork has no such file."""
    perform_for: Callable[[Sequence[Dialect]], None] | None = None
    """A function of a reference that lets it execute for several dialects from the next example on."""


class Implementation(Protocol):
    """Participant of a lockstep, which owns one directory and has at most one index open.

    Attributes:
        name: The name in reports, e.g. ``"jvm 3.9.2"``.
        release: The Kafka release whose dialect the implementation must follow.
        speaks_kafka: True if errors have Kafka's own texts, which are compared literally.
    """

    name: str
    release: str
    speaks_kafka: bool

    @property
    def capabilities(self) -> frozenset[str] | None:
        """See :class:`OptionalMembers`, as for the others."""

    @property
    def takes_negative_sizes(self) -> bool: ...  # noqa: D102 -- as above

    @property
    def step_in_progress(self) -> Callable[[], int] | None: ...  # noqa: D102

    @property
    def decompress(self) -> Callable[..., DecompressedStream | None] | None: ...  # noqa: D102

    def begin(self, directory: Path) -> None:
        """Begin an example in an empty directory; an index that is still open is abandoned, its files unchanged."""

    def supports(self, operation: str) -> bool:
        """Return True if the implementation has an operation of this name."""

    def perform(self, operation: Operation) -> Observation:
        """Execute one operation and return the observation. An error is an outcome, never an exception."""

    def end(self) -> None:
        """End the example and close the files, even if that changes them."""


@runtime_checkable
class CapabilityChecked(Protocol):
    """Implementation that knows before its first example whether it supports a kind of index."""

    def require(self, kind: str) -> None:
        """Check that the implementation has everything that a kind of index needs.

        Raises:
            NotDrivenError: The implementation lacks something.
        """


class CodecProvider(Implementation, Protocol):
    """Implementation whose codec libraries are also used by its reference, instead of the libraries of kidx."""

    def compress(self, codec: Codec, data: bytes, magic: int) -> bytes:
        """Compress data for a batch of this magic."""

    def decompress(self, codec: Codec, data: bytes, magic: int, *, mode: ReadMode) -> DecompressedStream | None:
        """Decompress the data of a batch of this magic; see :class:`kidx.dialect.Decompressor`."""


def provides_codecs(implementation: Any) -> TypeGuard[CodecProvider]:
    """Return True if an implementation provides codec libraries."""
    return implementation.decompress is not None


def takes(implementation: Implementation, operation: Operation) -> bool:
    """Return True if an implementation accepts an operation with these arguments.

    Args:
        implementation: Any participant.
        operation: An operation; one that is not on an index is always accepted.
    """
    capabilities = implementation.capabilities
    if capabilities is not None and missing_index_capability(operation, capabilities):
        return False
    return operation.name != "resize" or operation.args[0] >= 0 or implementation.takes_negative_sizes


def with_codecs_of(dialect: Dialect, implementations: Iterable[Any]) -> Dialect:
    """Return the dialect, with the codec libraries of the first implementation that provides them."""
    lender = next(filter(provides_codecs, implementations), None)
    return dialect if lender is None else dialect.with_libraries(lender.compress, lender.decompress)


class StackInspectable(Protocol):
    """Implementation that executes steps in threads unknown to Python; a watchdog queries it from its own thread."""

    def step_in_progress(self) -> int:
        """Return a number that identifies the step in progress, or 0."""

    def stack(self) -> str:
        """Return the stack of the thread that executes the step, one frame per line."""


class BatchedImplementation(Implementation, Protocol):
    """Implementation that executes many steps in one call, which contains the expected observation of each step.

    It executes the steps some time after the references, and stops after the first step that differs. Only then does a
    lockstep request the observation and read the files.

    A set of rules is the behaviour of releases that share a reference. A step has one expected result for each set.
    """

    @staticmethod
    def batch_group(rule_sets: int, members: Sequence[tuple[BatchedImplementation, int]]) -> BatchGroup:
        """Return the group of these members.

        Args:
            rule_sets: The number of sets of rules.
            members: Implementations, each with the number (from 0) of the set of rules that it must follow.
        """

    def observation(self, operation: Operation) -> Observation:
        """Return the observation of the last executed operation, which is ``operation``."""


class StepBatch(Protocol):
    """Batch of steps, each with the expected result for every set of rules (:class:`BatchedImplementation`)."""

    steps: int

    def perform(
        self,
        operation: Operation,
        expected: Sequence[tuple[Any, Any]],
        by_name: Callable[[Any, Any], Mapping[str, Any]],
        name: Any,
    ) -> None:
        """Add an operation, with the expected observation and files.

        Args:
            expected: The expected observation and files, for each set of rules. The type of the files depends on the
                scope of the lockstep; for an index file, it is the content.
            by_name: A function that returns the content of each path, given such files and their name.
            name: The name of the files; for an index file, it is the path.
        """

    def overwrite(self, name: str, contents: Sequence[bytes | None]) -> None:
        """Add a step that gives a file another content, or removes it (None)."""

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """Add a check that these are the sorted names of all files."""


class BatchGroup(Protocol):
    """Several batched implementations, which execute a batch of steps together while the next batch is prepared."""

    def begin(self) -> None:
        """Begin an example for all members, including members that have stopped."""

    def script(self) -> StepBatch:
        """Return a new batch without any step."""

    def start(self, script: StepBatch, *, alone: bool) -> None:
        """Start to execute a batch; ``finish`` must be called before the next batch.

        Args:
            alone: True if the caller calls ``finish`` immediately, without preparing another batch in the meantime.
        """

    def finish(self) -> int:
        """Wait until all members have executed the batch or have stopped; return the number of stopped members."""

    def stopped_at(self, number: int) -> int:
        """Return the number of the step after which a member has stopped, or -1 if it has not."""

    def resume(self, number: int) -> None:
        """Let a member continue after the step at which it has stopped, to the end or to the next step that differs."""

    def performing(self, number: int) -> int:
        """Return the number from 0 of the step that a member is executing, or the number of all steps at the end.

        Any thread may call this method.
        """


METHODS: Final = {name: each.method or name for name, each in INDEX_OPS.items() if each.tried is not None}
"""The name of the method, for each operation that Python objects may have."""

BULK: Final = {name: each.many for name, each in INDEX_OPS.items() if each.many}
"""The single operation that each bulk operation repeats."""
