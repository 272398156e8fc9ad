"""Operations on the cache of remote index files and their outcomes as plain data (:mod:`conformance.operations`).

One cache is open at a time, in the directory that the harness assigns to each implementation. Its remote storage is in
memory. The clock advances only with ``pass_time``. An operation includes the work of Kafka's background threads, except
the deletion of removed files, which ``delete_removed`` executes. A segment is identified by its id, as Kafka prints it,
and by its start offset.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.op import (
    BOOLEAN,
    HEXADECIMAL,
    LIST,
    LONG,
    TEXT,
    TEXTS,
    Effect,
    Files,
    Op,
    Shape,
    by_name,
    one_of,
)

if TYPE_CHECKING:
    from conformance.operations.outcomes import Json, Outcome

KINDS: Final = (".index", ".timeindex", ".txnindex")
"""The suffixes of the files of a segment that are cached."""
ANSWERS: Final = ("gives", "missing", "fails", "breaks")
"""The responses of remote storage for one file: the content, no such file, an error, or an error after the content."""

_op = partial(Op, files=Files.REPLACES)
_SEGMENT: Final = {"segment": TEXT, "start_offset": LONG}

CACHE_OPS: Final = by_name(
    (
        # Opens or creates the cache of the directory. `max_size` is a number of bytes (in 3.6, of entries). `ttl_ms` is
        # the time for which an unused entry is kept, from 4.3 on. -1 means unlimited.
        _op("open_cache", {"max_size": LONG, "ttl_ms": LONG, "now": LONG}, effect=Effect.OPENS),
        # Sets the response of remote storage to the next requests for a file.
        Op(
            "store_index",
            {"segment": TEXT, "kind": one_of(*KINDS), "answer": one_of(*ANSWERS), "content": HEXADECIMAL},
            early=True,
            files=Files.LEAVES,
        ),
        # Requests the entry of a segment. With `hold`, the entry is kept for ask_held, as a reader keeps it that still
        # uses it.
        _op("fetch_entry", {**_SEGMENT, "hold": BOOLEAN}),
        _op("look_up_offset", {**_SEGMENT, "offset": LONG}, gives=Shape.NUMBER),
        _op("look_up_timestamp", {**_SEGMENT, "timestamp": LONG, "starting_offset": LONG}, gives=Shape.NUMBER),
        _op("aborted_in", {**_SEGMENT, "fetch_offset": LONG, "upper_bound": LONG}, gives=Shape.COLLECTED),
        # A lookup in the held entry, by timestamp and starting offset or by offset; the result is null if no entry is
        # held.
        Op(
            "ask_held",
            {"by_time": BOOLEAN, "target": LONG, "starting_offset": LONG},
            gives=Shape.NUMBER,
            files=Files.LEAVES,
        ),
        _op("remove_entries", {"segments": TEXTS}),
        _op("resize_cache", {"max_size": LONG}),
        # Advances the clock. Without `tidies`, expired entries are removed only by the next operation.
        _op("pass_time", {"milliseconds": LONG, "tidies": BOOLEAN}),
        _op("delete_removed", {}),
        _op("close_cache", {}, effect=Effect.RELEASES),
        _op("crash_cache", {}, effect=Effect.RELEASES),
        # Corruption by the harness: one of the file operations of an index, on a file in the cache's directory. The
        # harness does not truncate a file that an open cache maps.
        _op("damage_cached_file", {"path": TEXT, "how": TEXT, "arguments": LIST}, effect=Effect.DAMAGES),
    )
)
"""All operations on a cache."""

CACHE_ERRORS: Final = {
    "corrupt": "a cached or fetched file is invalid",
    "unsupported_version": "a transaction has a version that the release does not know",
    "kafka": "a file cannot be fetched, opened, renamed or deleted",
    "invalid_number": "the name of a file does not begin with an offset",
    "invalid_argument": "the name of a file holds no id of a segment, or a size is negative",
    "out_of_bounds": "the name of a file lacks an underscore or a full stop, or a read is outside the file",
    "illegal_state": "the cache is closed, or the entry has been removed",
    "closed": "no cache has been opened, or the held entry is closed",
    "io": "the operating system reports an error",
}
"""The meaning of each error kind of an operation on a cache."""
CACHE_ERROR_KINDS: Final = tuple(CACHE_ERRORS)

DIRECTORY: Final = "remote-log-index-cache"
"""The cache's directory, relative to the directory of an implementation."""


class CachedEntry(NamedTuple):
    """Entry of the cache, as the cache reports it.

    Attributes:
        segment: The id of the segment.
        start_offset: The base offset of its indexes.
        offsets: The number of entries in the offset index; times: in the time index.
        size: The size that counts towards the limit, bytes; -1 in 3.6, which does not count bytes.
        marked: True if its files were renamed for deletion; cleaned: True if they were deleted.
    """

    segment: str
    start_offset: int
    offsets: int
    times: int
    size: int
    marked: bool
    cleaned: bool


class CacheState(NamedTuple):
    """State of a cache after an operation, as the cache reports it.

    Attributes:
        closed: True if the cache is closed and rejects requests.
        entries: The entries in the order of their ids.
    """

    closed: bool
    entries: tuple[CachedEntry, ...]

    def to_json(self) -> Json:
        """Return the state as in a trace or a report."""
        entries: list[dict[str, Any]] = [dict(entry._asdict()) for entry in self.entries]
        return {"closed": self.closed, "entries": entries}


class CacheObservation(NamedTuple):
    """Outcome of an operation, and the state after it or None if no cache has been opened."""

    outcome: Outcome
    state: CacheState | None
