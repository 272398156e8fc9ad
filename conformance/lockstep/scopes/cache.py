"""Scope of the cache of remote index files: all files in the cache's directory, and the state of the entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.attribution.cache import TrackedCache, cache_clauses_of, track_cache_step
from conformance.implementations.kidx.cache import ReferenceCache
from conformance.lockstep.lockstep import Lockstep
from conformance.lockstep.scopes.directory import DirectoryScope, Files
from conformance.lockstep.scopes.log_files import LogParticipant
from conformance.operations import OK, Operation
from conformance.operations.cache import CACHE_OPS, DIRECTORY, CacheObservation

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect

ObservedFiles = tuple[CacheObservation, Files]


class CacheParticipant(LogParticipant):
    """Implementation of the cache, in its directory."""

    below = DIRECTORY
    compared = ("",)  # files with any name


class CacheScope(DirectoryScope[CacheObservation]):
    """Scope of a cache: all files of its directory."""

    empty_observation = CacheObservation(OK, None)
    corrupting_operations = frozenset({"damage_cached_file"})
    close_operation = Operation("close_cache")
    operations = CACHE_OPS
    sections = ("index", "remote")  # of kidx.dialect.table

    def participant(self, implementation: Any, directory: Path) -> CacheParticipant:
        """See the base class."""
        return CacheParticipant(implementation, directory)

    def reference(self, release: str) -> ReferenceCache:
        """See the base class."""
        return ReferenceCache(release)

    def tracked(self, release: str) -> TrackedCache:
        """See the base class."""
        return TrackedCache(release)

    def clauses_of(
        self,
        operation: Operation,
        dialect: Dialect,
        tracked: TrackedCache,
        before: ObservedFiles,
        after: ObservedFiles,
        known: dict[Any, Any],
    ) -> tuple[str, ...]:
        """See the base class."""
        del dialect, known
        return cache_clauses_of(operation, tracked, before, after)

    def track(self, tracked: TrackedCache, operation: Operation, observation: CacheObservation) -> None:
        """See the base class."""
        track_cache_step(tracked, operation, observation)


class CacheLockstep(Lockstep[CacheObservation, Files]):
    """Lockstep of caches, with the arguments of the base class."""

    scope = CacheScope()
