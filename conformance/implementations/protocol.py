"""What an implementation has to offer to be driven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

if TYPE_CHECKING:
    from conformance.operations import Observation, Operation
    from kidx.dialect import Dialect
    from kidx.records import Codec
    from kidx.records.codecs import DecompressedStream, ReadMode


class Implementation(Protocol):
    """One participant of a lockstep. It owns one directory and has at most one index open.

    Attributes:
        name: how reports call it, e.g. ``"jvm 3.9.2"``.
        release: the Kafka release whose dialect it must follow.
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
        """Performs one operation and returns its observation. A refusal is an outcome, never an exception."""

    def end(self) -> None:
        """Ends the example: closes handles, without caring what that does to the files."""


@runtime_checkable
class Requiring(Protocol):
    """An implementation that can tell before its first example whether it has what a kind of index needs."""

    def require(self, kind: str) -> None:
        """Finds what a kind of index needs.

        Raises:
            NotDrivenError: it does not have it.
        """


class CodecLibraries(Implementation, Protocol):
    """An implementation whose codec libraries the reference that it is held to uses: they are not Kafka's own."""

    def compress(self, codec: Codec, data: bytes, magic: int) -> bytes:
        """The bytes as a batch of this magic has them."""

    def decompress(self, codec: Codec, data: bytes, magic: int, *, mode: ReadMode) -> DecompressedStream | None:
        """What comes of the bytes of a batch of this magic; see :class:`kidx.dialect.Decompressor`."""


def lends_libraries(implementation: Any) -> TypeGuard[CodecLibraries]:
    """Whether it has them; it may pass on those of another one."""
    return hasattr(implementation, "decompress")


def with_libraries_of(dialect: Dialect, implementations: Iterable[Any]) -> Dialect:
    """The dialect, with the codec libraries of the first implementation that lends them."""
    lender = next(filter(lends_libraries, implementations), None)
    return dialect if lender is None else dialect.with_libraries(lender.compress, lender.decompress)


class Watchable(Protocol):
    """An implementation that performs steps in threads that are not Python's; a watchdog asks it from another one."""

    def step_in_progress(self) -> int:
        """A number of the step that is being performed, another one for each; 0 if there is none."""

    def stack(self) -> str:
        """Where the thread that performs it is, a frame a line."""


class Follower(Implementation, Protocol):
    """An implementation that takes many steps in one call, with the expected observation of each (batched execution).

    It performs them on its own, some steps behind the references, and stops behind the first that comes out otherwise;
    only then a lockstep asks for its observation and looks at its files.
    """

    @staticmethod
    def followers(rules: int, members: Sequence[tuple[Follower, int]]) -> Followers:
        """Those of one kind, each with the number of the set of rules that it must follow, below ``rules``."""

    def observation(self, operation: Operation) -> Observation:
        """The observation of the last operation performed, which ``operation`` repeats."""


class Script(Protocol):
    """Steps, each with what the references make of it: one item for every set of rules.

    Attributes:
        steps: how many there are.
    """

    steps: int

    def perform(
        self,
        operation: Operation,
        expected: Sequence[tuple[Any, Any]],
        by_name: Callable[[Any, Any], Mapping[str, Any]],
        name: Any,
    ) -> None:
        """An operation; the observation and the files that have to come of it.

        Args:
            operation: what to perform.
            expected: for each set of rules, the observation and the files of a level.
            by_name: makes paths and contents of the files of a level and their name.
            name: of the files.
        """

    def overwrite(self, name: str, contents: Sequence[bytes | None]) -> None:
        """The harness gives a file another content, or removes it (None)."""

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """The names of all files, sorted, have to be these."""


class Followers(Protocol):
    """Several followers, which perform a script together while the next one is made."""

    def begin(self) -> None:
        """Begins an example for all releases; those that have stopped go on."""

    def script(self) -> Script:
        """A new one without any step."""

    def start(self, script: Script, *, alone: bool) -> None:
        """Begins to perform a script; ``finish`` must be called before anything else, and at once if ``alone``."""

    def finish(self) -> int:
        """Returns when all have performed it or have stopped: how many have stopped in it."""

    def stopped_at(self, number: int) -> int:
        """Behind which step of the script a member has stopped; -1 if it has not."""

    def resume(self, number: int) -> None:
        """A member goes on behind the step at which it has stopped, to the end or to the next such step."""

    def performing(self, number: int) -> int:
        """The step that a member performs right now, from 0 on; the number of all if none. Any thread may ask."""
