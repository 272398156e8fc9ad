"""Scope of an index file, with an abstract model.

Of an index without the capability ``preallocation``, only the entries are compared. Kafka preallocates space for all
entries when it creates an index. After a crash, Kafka opens this space as entries of zeros. An index without
``preallocation`` does neither. So it is compared with a separate reference, whose file is truncated to its entries when
it is closed, and preallocated again when it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution import (
    TrackedIndex,
    clauses_of,
    implicated_clauses,
    is_reachable_by_broker,
    track_opening,
    track_step,
)
from conformance.attribution.history import follow, hidden, remember, rests_on
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.model import Model
from conformance.lockstep.file_reader import StepFileReader, UnreadableFile, corrupted, overwrite
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.participant import Participant
from conformance.lockstep.scope import Group, Scope
from conformance.operations import OK, Observation, Operation
from conformance.operations.index import INDEX_OPS
from conformance.operations.index_capabilities import INDEX_CAPABILITIES, can_execute
from conformance.operations.op import Files
from kidx.layout import ABORTED_TXN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from conformance.attribution.history import History
    from conformance.lockstep.divergence import Divergence
    from conformance.operations import State
    from kidx.dialect import Dialect

ObservedFile = tuple[Observation, bytes | None]

_ENTRY_SIZES = {"offset": 8, "time": 12}
_PREALLOCATING = frozenset({"open", "truncate", "truncate_to", "reset"})
"""The operations after which the size of an index is determined by its maximum size and its entries."""
_FILE_LENGTH_FIELDS = ("max_entries", "full", "length")
"""The fields of a state that depend on the length of the file."""


class IndexParticipant(Participant):
    """Implementation of an index, with its directory and its file."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self.file = StepFileReader()

    def clear(self) -> None:
        """See the base class."""
        self.file.release()
        super().clear()

    def watch(self, name: str) -> None:
        """See the base class."""
        self.file.watch(self.prefix + name)

    def corrupt(self, operation: Operation, name: str, content: bytes | None) -> None:
        """Replace the content of the closed file by the corrupted content of the reference's file.

        Args:
            content: The content of the reference's file after the corruption, or None if the file is removed.
        """
        del operation
        overwrite(self.prefix + name, content)
        self.watch(name)

    def read(self) -> bytes | None:
        """Return the current content of the file, or None if it does not exist."""
        return self.file.read()


class EntriesOnlyParticipant(IndexParticipant):
    """Index without ``preallocation``. It has its own reference, apart from a transaction index."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        self._own = IndexParticipant(
            ReferenceIndex(implementation.release), directory.with_name(f"{directory.name}-entries")
        )
        self._kind = ""
        self._promised = True

    def begin(self) -> None:
        """See the base class."""
        super().begin()
        self._own.begin()
        self._tracked = TrackedIndex(self.implementation.release)
        self._state: State | None = None
        self._writable = True

    def clear(self) -> None:
        """See the base class."""
        super().clear()
        self._own.end()

    def watch(self, name: str) -> None:
        """See the base class."""
        super().watch(name)
        self._own.watch(name)

    def corrupt(self, operation: Operation, name: str, content: bytes | None) -> None:
        """See the base class; the corruption is applied to the entries."""
        if not self._is_mapped:
            super().corrupt(operation, name, content)
            return
        if not self._tracked.closed:
            self._truncate_to_entries(self._state)
            self._state = None  # the file does not have this state any more
        before = self._own.read()
        if before is None and operation.name != "write_file":
            return
        after = corrupted(before or b"", operation.name, operation.args)
        for participant in (self, self._own):
            if after is not None or participant.read() is not None:
                overwrite(participant.prefix + name, after)
            participant.file.watch(participant.prefix + name)
        track_step(self._tracked, operation, Observation(OK, self._state))

    def is_promised(self) -> bool:
        """See the base class."""
        return self._promised or not self._is_mapped

    @property
    def _is_mapped(self) -> bool:
        """True for an offset or time index, which Kafka maps into memory and preallocates."""
        return self._kind in _ENTRY_SIZES

    def normalize(
        self, operation: Operation, expected: ObservedFile, actual: ObservedFile, reference: Participant
    ) -> tuple[ObservedFile, ObservedFile]:
        """See the base class."""
        if operation.name == "open":
            self._kind = operation.args[0]
        if not self._is_mapped:
            self.own_clauses = None
            return super().normalize(operation, expected, actual, reference)
        observation, files = self._perform_with_own_reference(operation)
        other, contents = actual
        size = _ENTRY_SIZES[self._kind]
        if observation.state is None or other.state is None:
            observation = observation._replace(state=other.state)
        else:
            observation = observation._replace(
                state=observation.state._replace(**{name: getattr(other.state, name) for name in _FILE_LENGTH_FIELDS})
            )
        if operation.name.removeprefix("bulk_") in ("append", "maybe_append") and not self._writable:
            # The kind of the error depends on the free space.
            observation = _with_same_error(observation, other)
        return (observation, _entries(files, self._entries, size)), (
            other,
            _without_preallocation(contents, size),
        )

    def _perform_with_own_reference(self, operation: Operation) -> ObservedFile:
        """Execute a step with the participant's own reference, and return the observation and the file."""
        name = operation.name
        if name == "open" and not self._tracked.closed:
            self._truncate_to_entries(self._state)
        if name == "open":
            self._writable = operation.args[-1]
            track_opening(self._tracked, operation, self._own.read())
        before = self._state
        observation = self._own.perform(operation)
        self.own_clauses = clauses_of(operation, self._tracked, observation)
        self._promised = is_reachable_by_broker(operation, self._tracked, observation)
        track_step(self._tracked, operation, observation)
        if name in _PREALLOCATING:
            observation = self._with_preallocation(observation)
        elif name in ("close", "crash"):
            self._truncate_to_entries(before)
        self._state = observation.state
        return observation, self._own.read()

    def _with_preallocation(self, observation: Observation) -> Observation:
        """Preallocate space for ``max_index_size``, or for more entries if it has more; not if it is read-only."""
        state, entry = observation.state, _ENTRY_SIZES[self._kind]
        if state is None or self._tracked.closed or not self._writable:
            return observation
        size = max(self._tracked.max_index_size // entry, state.entries) * entry
        if size == state.length:
            return observation
        resize = Operation("resize", (size,))
        resized = self._own.perform(resize)
        track_step(self._tracked, resize, resized)
        return observation._replace(state=resized.state)

    def _truncate_to_entries(self, state: State | None) -> None:
        content = self._own.read()
        if content is not None and state is not None:
            self._own.file.release()
            overwrite(self._own.prefix + self._tracked.path, content[: state.entries * _ENTRY_SIZES[self._kind]])

    @property
    def _entries(self) -> int | None:
        return None if self._state is None else self._state.entries

    def comparable_listing(self, expected: list[str]) -> list[str]:
        """See the base class; an empty file may be missing."""
        listing = self.listing()
        if not self._is_mapped:
            return listing
        own = self._own.listing()
        empty = {name for name in {*listing, *own} if not (self._size_of(name) or self._own_size_of(name))}
        return expected if set(listing) - empty == set(own) - empty else listing

    def _size_of(self, name: str) -> int:
        path = self.directory / name
        return path.stat().st_size if path.is_file() else 0

    def _own_size_of(self, name: str) -> int:
        path = self._own.directory / name
        return path.stat().st_size if path.is_file() else 0


def _with_same_error(expected: Observation, actual: Observation) -> Observation:
    if expected.outcome.error is None or actual.outcome.error is None:
        return expected
    return expected._replace(outcome=actual.outcome)


def _entries(content: bytes | None, entries: int | None, size: int) -> bytes:
    """Return the bytes of the entries; for a closed file (``entries`` is None), the content without a tail of zeros."""
    return _without_preallocation(content if entries is None or content is None else content[: entries * size], size)


def _without_preallocation(content: bytes | None, size: int) -> bytes:
    """Return a file without the zeros after its last entry and without a partial entry; empty if it does not exist."""
    if isinstance(content, UnreadableFile):
        return content
    whole = content or b""
    kept = whole[: len(whole) // size * size].rstrip(b"\0")
    return kept + bytes(-len(kept) % size)


_NAMING = {name: each.names_file for name, each in INDEX_OPS.items() if each.names_file >= 0}
"""The operations that select another file, each with the position of the argument that names it."""
_REPLACING = frozenset(name for name, each in INDEX_OPS.items() if each.files is Files.REPLACES)
"""The operations after which the reference's file may be a different one, or removed."""
_READING = frozenset(name for name, each in INDEX_OPS.items() if each.looks)
"""The operations that do not change the reference's file, so that it is not read again; subjects' files always are."""

_READING_RECORDS = frozenset({"open", "collect_aborted", "all_aborted", "truncate_to"})
"""The operations that may read the records of a transaction index; Kafka's does not read all of them."""

ObservedFiles = tuple[Observation, bytes | None]


def _has_unknown_version(records: bytes) -> bool:
    starts = range(0, len(records) - ABORTED_TXN.size + 1, ABORTED_TXN.size)
    return any(records[at : at + 2] != b"\0\0" for at in starts)


class IndexScope(Scope[Observation, bytes | None]):
    """Scope of one index file, of any of the three kinds."""

    reference = ReferenceIndex
    operations = INDEX_OPS
    empty_observation = Observation(OK, None)
    no_files = None
    no_file_name = ""
    file_selecting_operations = frozenset(_NAMING)
    close_operation = Operation("close")
    sections = ("index",)  # of kidx.dialect.table

    def representative_order(self, releases: Iterable[str]) -> Iterable[str]:
        """Return the releases in reverse order: of releases that behave alike, the newest gets the reference."""
        return reversed(list(releases))

    def participant(self, implementation: Any, directory: Path) -> IndexParticipant:
        """See the base class."""
        capabilities = implementation.capabilities
        if capabilities is not None and "preallocation" not in capabilities:
            return EntriesOnlyParticipant(implementation, directory)
        return IndexParticipant(implementation, directory)

    def model(self, release: str) -> Model:
        """See the base class."""
        return Model(release)

    def named(self, operation: Operation, before: str) -> str:
        """Return the name of the file, which is an argument of the operation."""
        del before
        name: str = operation.args[_NAMING[operation.name]]
        return name

    def files_after(self, reference: Participant, operation: Operation, before: bytes | None) -> bytes | None:
        """Return the content of the file; it is read only if the operation can have changed it."""
        name = operation.name
        if name in _READING:
            return before
        file: StepFileReader = reference.file  # type: ignore[attr-defined]
        return file.read() if name in _REPLACING else file.read_again()

    def by_name(self, files: bytes | None, name: str) -> Mapping[str, bytes | None]:
        """See the base class."""
        return {name: files} if name else {}

    def bytes_of(self, files: bytes | None) -> int:
        """See the base class."""
        return len(files or b"")

    def corrupted_path(self, operation: Operation, name: str) -> str:
        """See the base class."""
        del operation
        return name

    def corrupt(self, group: Group[Observation, bytes | None], operation: Operation, name: str) -> None:
        """Apply the corruption to the reference's file, and give all participants the same content."""
        group.observation = Observation(OK, group.observation.state)
        if group.files is None and operation.name != "write_file":
            return
        group.files = corrupted(group.files or b"", operation.name, operation.args)
        for participant in (group.reference, *group.unbatched):
            if participant.active:
                participant.corrupt(operation, name, group.files)  # type: ignore[attr-defined]

    def tracked(self, release: str) -> TrackedIndex:
        """See the base class."""
        return TrackedIndex(release)

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedIndex,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, known
        if operation.name == "open":
            track_opening(tracked, operation, before[1])
        return clauses_of(operation, tracked, after[0])

    def is_reachable_by_broker(self, operation: Operation, tracked: TrackedIndex, after: ObservedFiles) -> bool:
        """See the base class."""
        return is_reachable_by_broker(operation, tracked, after[0])

    def is_of_a_broker(
        self,
        operation: Operation,
        clauses: tuple[str, ...],
        seen: tuple[ObservedFiles, ObservedFiles],
        actual: ObservedFiles,
    ) -> bool:
        """See the base class: a record of an unknown version may be rejected although Kafka does not read it."""
        del clauses
        before, after = seen
        if operation.name not in _READING_RECORDS or after[0].outcome.error or not actual[0].outcome.error:
            return True
        state = after[0].state
        is_transaction = state is not None and state.full is None
        return not (is_transaction and any(map(_has_unknown_version, (before[1] or b"", after[1] or b""))))

    def implicated_clauses(
        self,
        clauses: tuple[str, ...],
        operation: Operation,
        dialect: Dialect,
        seen: tuple[ObservedFiles, ObservedFiles],
        expected: ObservedFiles,
        actual: ObservedFiles,
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, expected
        return implicated_clauses(clauses, operation, seen[0][1], actual[0])

    def remember(self, history: History, divergence: Divergence) -> None:
        """See the base class."""
        of_bytes = "bytes" in divergence.aspects
        remember(history, divergence.operation, divergence.clauses, divergence.fields, of_bytes=of_bytes)

    def rests_on(
        self,
        history: History,
        hidden: tuple[str, ...],
        divergence: Divergence,
        expected: Observation,
        actual: Observation,
    ) -> Collection[str]:
        """See the base class."""
        of_length, of_last = divergence.is_of_length, set(divergence.fields) == {"last"}
        operation = divergence.operation
        return (*hidden, *rests_on(history, operation, expected, actual, of_length=of_length, of_last=of_last))

    def carried(self, history: History, divergence: Divergence) -> Collection[str]:
        """See the base class."""
        if divergence.is_of_length or not divergence.has_other_length:
            return ()
        return sorted(history.get("length", frozenset()) | history.get("file", frozenset()))

    hidden = staticmethod(hidden)
    follow = staticmethod(follow)
    track = staticmethod(track_step)


class IndexLockstep(Lockstep[Observation, "bytes | None"]):
    """Lockstep of index files, with the arguments of the base class.

    Attributes:
        capabilities: The capabilities that every subject has.
    """

    scope = IndexScope()

    def __init__(self, subjects: Iterable[Any], scratch: Path, **options: Any) -> None:
        super().__init__(subjects, scratch, **options)
        declared = [subject.capabilities for subject in self.subjects]
        self.capabilities = frozenset(INDEX_CAPABILITIES).intersection(*(each for each in declared if each is not None))

    def count_at(self, level: str) -> None:
        """See the base class; at level must, machines only make calls that a broker makes."""
        if level == "must":
            self.capabilities -= {"calls_after_close", "odd_arguments"}

    def can_execute(self, operations: Iterable[Operation]) -> bool:
        """See the base class."""
        return super().can_execute(operations) and can_execute(operations, self.capabilities)
