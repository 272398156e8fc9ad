"""Reference of the cache of remote index files: kidx's cache, with remote storage in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.cache import CACHE_SILENT
from conformance.implementations.kidx.shared_dialect import SharedReference
from conformance.operations import OK, Operation, Outcome
from conformance.operations.cache import CACHE_OPS, DIRECTORY, CachedEntry, CacheObservation, CacheState
from kidx.errors import ClosedError, KidxError
from kidx.remote import (
    CacheEntry,
    RemoteIndexCache,
    RemoteResourceNotFoundError,
    RemoteSegment,
    RemoteStorageError,
    id_from_text,
    text_of_id,
)
from kidx.remote.cache import release_handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


class StoredIndexes:
    """Remote storage in memory, whose responses operations define."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, str], tuple[str, bytes]] = {}

    def clear(self) -> None:
        """Remove all files."""
        self._stored.clear()

    def put(self, segment: str, kind: str, answer: str, content: str) -> None:
        """Define the response to requests for a file; ``answer`` is one of the ANSWERS of the operation."""
        self._stored[segment, kind] = answer, bytes.fromhex(content)

    def fetch_index(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Fetch a file; see :class:`kidx.remote.RemoteStorage`."""
        answer, content = self._stored.get((text_of_id(segment.id), kind), ("missing", b""))
        if answer == "missing":
            raise RemoteResourceNotFoundError(f"there is no {segment.file_name(kind)}")
        if answer == "fails":
            raise RemoteStorageError("storage does not answer")
        return self._broken(content) if answer == "breaks" else (content,)

    @staticmethod
    def _broken(content: bytes) -> Iterator[bytes]:
        yield content
        raise OSError("the connection is lost")


class ReferenceCache(SharedReference):
    """Reference with kidx's own cache."""

    operations = CACHE_OPS
    index_cache: type[RemoteIndexCache] = RemoteIndexCache

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self.cache: RemoteIndexCache | None = None
        self._stored = StoredIndexes()
        self._held: CacheEntry | None = None
        self._now = 0
        self._calls: dict[str, Callable[..., Any]] = {
            "open_cache": self._open,
            "store_index": self._stored.put,
            "fetch_entry": self._fetch,
            "look_up_offset": lambda id_, start, offset: self._opened().lookup_offset(_segment(id_, start), offset),
            "look_up_timestamp": lambda id_, start, *asked: self._opened().lookup_timestamp(
                _segment(id_, start), *asked
            ),
            "aborted_in": self._aborted,
            "ask_held": self._ask_held,
            "remove_entries": lambda ids: self._opened().remove(*map(id_from_text, ids)),
            "resize_cache": self._resize,
            "pass_time": self._pass_time,
            "delete_removed": self._delete_removed,
            "close_cache": self._close,
            "crash_cache": self.end,
        }

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory)
        self._stored.clear()

    def end(self) -> None:
        """End the example; see the protocol."""
        cache, self.cache, self._held = self.cache, None, None
        if cache is not None:
            release_handles(cache.entries)

    def perform(self, operation: Operation) -> CacheObservation:
        """Execute an operation; see the protocol."""
        name, arguments = operation
        outcome = self._outcome(name, arguments)
        if self.cache is None:
            return CacheObservation(outcome, None)
        if name != "pass_time" or arguments[1]:
            self.cache.evict()
        return CacheObservation(outcome, self._state(self.cache))

    def _outcome(self, name: str, arguments: tuple[Any, ...]) -> Outcome:
        try:
            value = self._calls[name](*arguments)
        except KidxError as error:
            text = error.kafka_message
            if text is None or error.kind in CACHE_SILENT:
                return Outcome(error.kind)
            return Outcome(error.kind, None, text.replace(f"{self._directory}/{DIRECTORY}/", ""))
        except OSError:
            return Outcome("io")
        return OK if value is None else Outcome(None, value)

    # -- operations --------------------------------------------------------------------------------------------

    def _opened(self) -> RemoteIndexCache:
        """Return the cache, or raise an error if none is open."""
        if self.cache is None:
            raise ClosedError("no cache is open", None)
        return self.cache

    def _open(self, max_size: int, ttl_ms: int, now: int) -> None:
        self.end()
        self._now = now
        self.cache = self.index_cache(
            self._directory,
            self._stored,
            max_size=max_size,
            ttl_ms=ttl_ms,
            clock=lambda: self._now,
            dialect=self.dialect,
        )

    def _fetch(self, segment: str, start_offset: int, hold: bool) -> None:
        entry = self._opened().entry(_segment(segment, start_offset))
        if hold:
            self._held = entry

    def _aborted(self, segment: str, start_offset: int, fetch_offset: int, upper_bound: int) -> Any:
        found = self._opened().collect_aborted_txns(_segment(segment, start_offset), fetch_offset, upper_bound)
        return tuple(tuple(txn) for txn in found.aborted_transactions), found.is_complete

    def _ask_held(self, by_time: bool, target: int, starting_offset: int) -> int | None:
        self._opened()
        if self._held is None:
            return None
        if by_time:
            return self._held.lookup_timestamp(target, starting_offset).position
        return self._held.lookup_offset(target).position

    def _resize(self, max_size: int) -> None:
        cache = self._opened()
        if self.dialect.cache_limit != "entries":  # the limit of 3.6 cannot be changed
            cache.resize(max_size)

    def _pass_time(self, milliseconds: int, tidies: bool) -> None:
        del tidies  # True if the cache evicts expired entries now, which :meth:`perform` does
        self._opened()
        self._now += milliseconds

    def _delete_removed(self) -> None:
        self._opened().delete_removed()

    def _close(self) -> None:
        self._opened().close()

    def _state(self, cache: RemoteIndexCache) -> CacheState:
        counts_entries = self.dialect.cache_limit == "entries"
        entries = [
            CachedEntry(
                text_of_id(segment_id),
                entry.offset_index.base_offset,
                entry.offset_index.entries,
                entry.time_index.entries,
                -1 if counts_entries else entry.size,
                entry.is_marked,
                entry.is_cleaned,
            )
            for segment_id, entry in cache.entries.items()
        ]
        return CacheState(cache.is_closed, tuple(sorted(entries)))


def _segment(segment: str, start_offset: int) -> RemoteSegment:
    return RemoteSegment(start_offset, id_from_text(segment))
