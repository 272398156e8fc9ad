"""Participant for an index without the capability ``preallocation``; only its entries are compared.

Kafka preallocates space for all entries when it creates an index. After a crash, Kafka opens this space as entries of
zeros. An index without ``preallocation`` does neither. So it is compared with a separate reference, whose file is
truncated to its entries when it is closed, and preallocated again when it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution import TrackedIndex, clauses_of, is_reachable_by_broker, track_opening, track_step
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep.file_reader import UnreadableFile, corrupted, overwrite
from conformance.lockstep.scopes.index_file import IndexParticipant
from conformance.operations import OK, Observation, Operation

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant
    from conformance.operations import State

ObservedFile = tuple[Observation, bytes | None]

_ENTRY_SIZES = {"offset": 8, "time": 12}
_PREALLOCATING = frozenset({"open", "truncate", "truncate_to", "reset"})
"""The operations after which the size of an index is determined by its maximum size and its entries."""
_FILE_LENGTH_FIELDS = ("max_entries", "full", "length")
"""The fields of a state that depend on the length of the file."""


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
