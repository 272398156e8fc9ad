"""Participants of a lockstep of caches: Kafka's own cache, and a fork that caches no transaction index.

A fork has a separate reference, which gets the same operations, but whose remote storage has no transaction indexes.
So it has an offset index, a time index, and an empty transaction index for each segment; only the last one is not
compared. Sizes of entries are not compared, but what the cache evicts because of them is. The machine draws the same
operations for a fork as for Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.cache import TrackedCache
from conformance.attribution.rules import DirectoryStep
from conformance.attribution.tables import rules_of
from conformance.implementations.kidx.cache import ReferenceCache
from conformance.lockstep.scopes.directory import LogParticipant
from conformance.operations import OK, Operation
from conformance.operations.cache import DIRECTORY, KINDS, CacheObservation
from kidx.java_values import LONG_MIN

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lockstep.participant import Participant
    from conformance.lockstep.scopes.directory import Files

Seen = tuple[CacheObservation, "Files"]

_TRANSACTIONS: Final = KINDS[-1]
_NOT_AN_ID: Final = frozenset({"invalid_number", "invalid_argument"})
"""The kinds of Java's exceptions about a text that is not an id: base64 and UUID have different ones."""


class CacheParticipant(LogParticipant):
    """Implementation of the cache, in its directory."""

    below = DIRECTORY
    compared = ("",)  # files with any name


class ForkParticipant(CacheParticipant):
    """Fork of Kafka's cache, with its own reference and its own names of files.

    Its attribute ``own_name`` returns the name that a file has in the fork, or None if the fork has no such file.
    """

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        own = directory.with_name(f"{directory.name}-reference")
        self._own = CacheParticipant(ReferenceCache(implementation.release), own)
        self._rules = rules_of("cache", implementation.release)
        self.own_clauses = ()

    def begin(self) -> None:
        """See the base class."""
        super().begin()
        self._own.begin()
        self._tracked = TrackedCache()
        self._seen: Seen = CacheObservation(OK, None), {}

    def clear(self) -> None:
        """See the base class."""
        super().clear()
        self._own.end()

    # -- files -------------------------------------------------------------------------------------------------

    def corrupt(self, path: str, how: str, numbers: tuple[Any, ...]) -> None:
        """Corrupt a file of the fork and of its reference; an example that gives a file a name of Kafka alone ends."""
        if _TRANSACTIONS in path:
            self._corrupt_transactions(path, how)
        elif (name := self.implementation.own_name(path)) is None:
            self.active = False
            self.leave()
        else:
            super().corrupt(name, how, numbers)
            self._own.corrupt(path, how, numbers)
        self._seen = self._seen[0], self._own.read()

    def _corrupt_transactions(self, path: str, how: str) -> None:
        """Create the empty transaction index of a segment that the harness writes, or remove one without a segment."""
        prefix, _, rest = path.partition(_TRANSACTIONS)
        is_whole = {prefix + kind for kind in KINDS if kind != _TRANSACTIONS} <= {*self._own.listing()}
        if not rest and is_whole == (how == "write_file"):
            self._own.corrupt(path, how, ("",))

    def comparable_listing(self, expected: list[str]) -> list[str]:
        """See the base class; the names come from the participant's own reference."""
        listing = self.listing()
        return expected if sorted(self._own_names(self._own.read())) == listing else listing

    def _own_names(self, files: Files) -> Files:
        """Return the files that the fork has, by its names."""
        names = {name: self.implementation.own_name(name) for name in files if _TRANSACTIONS not in name}
        return {own: files[name] for name, own in names.items() if own is not None}

    # -- results -----------------------------------------------------------------------------------------------

    def normalize(
        self, operation: Operation, expected: Seen, actual: Seen, reference: Participant
    ) -> tuple[Seen, Seen]:
        """See the base class; the expected result comes from the participant's own reference."""
        del expected, reference
        operation, before = _translated(operation), self._seen
        observation = self._own.implementation.perform(operation)
        self._seen = observation, self._own.read()
        outcome, now = observation
        step = DirectoryStep(operation.args, self._tracked, before[0].state, outcome, now, before[1], self._seen[1])
        self.own_clauses = self._rules.exercised(operation.name, outcome.error, step)
        self._tracked.track(operation, observation)
        found = actual[0].outcome
        if operation.name == "open_cache" and {outcome.error, found.error} <= _NOT_AN_ID:
            actual = actual[0]._replace(outcome=found._replace(error=outcome.error)), actual[1]
        if now is not None:
            now = now._replace(entries=tuple(entry._replace(size=-1) for entry in now.entries))
        return (CacheObservation(outcome, now), self._own_names(self._seen[1])), actual


def _translated(operation: Operation) -> Operation:
    """Return an operation without what the fork lacks: transaction indexes, and the starting offset of a lookup."""
    name, arguments = operation
    if name == "store_index" and arguments[1] == _TRANSACTIONS:
        return Operation(name, (arguments[0], _TRANSACTIONS, "missing", ""))
    if name == "look_up_timestamp" or (name == "ask_held" and arguments[0]):
        return Operation(name, (*arguments[:-1], LONG_MIN))
    return operation


def cache_participant(implementation: Any, directory: Path) -> CacheParticipant:
    """Return the participant of a cache, which is a fork if it has its own names of files."""
    kind = CacheParticipant if implementation.own_name is None else ForkParticipant
    return kind(implementation, directory)
