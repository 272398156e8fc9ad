"""The operations on the cache of remote index files and their outcomes as plain data (:mod:`conformance.operations`).

One cache is open at a time, below the directory that the harness gives each implementation, in front of a remote
storage in memory. Time stands still between ``pass_time`` operations. What Kafka's threads do on their own is done
before an operation ends, but for the deletion of removed files, which ``delete_removed`` performs. Segments are named
by their ids as Kafka prints them, and by their start offsets.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from conformance.operations.effects import Effect
from conformance.operations.op import (
    BOOLEAN,
    HEXADECIMAL,
    LIST,
    LONG,
    TEXT,
    TEXTS,
    Files,
    Op,
    Shape,
    by_name,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations.outcomes import Json, Outcome

KINDS: Final = (".index", ".timeindex", ".txnindex")
"""The files of a segment that are cached."""
ANSWERS: Final = ("gives", "missing", "fails", "breaks")
"""What remote storage does: gives the content, has no such file, fails, or fails behind the content."""

_op = partial(Op, files=Files.REPLACES)
_SEGMENT: Final = {"segment": TEXT, "start_offset": LONG}

CACHE_OPS: Final = by_name(
    (
        # Opens the cache of the directory, or makes one. `max_size` is in bytes, in 3.6 a number of entries; `ttl_ms`
        # is how long an unused entry stays, from 4.3 on; -1 for ever.
        _op("open_cache", {"max_size": LONG, "ttl_ms": LONG, "now": LONG}, effect=Effect.OPENS),
        # Says what remote storage makes of the next requests for a file.
        Op(
            "store_index",
            {"segment": TEXT, "kind": one_of(*KINDS), "answer": one_of(*ANSWERS), "content": HEXADECIMAL},
            files=Files.LEAVES,
        ),
        # Asks for a segment's entry; `hold` keeps it for ask_held, as a reader does that is at work.
        _op("fetch_entry", {**_SEGMENT, "hold": BOOLEAN}),
        _op("look_up_offset", {**_SEGMENT, "offset": LONG}, gives=Shape.NUMBER),
        _op("look_up_timestamp", {**_SEGMENT, "timestamp": LONG, "starting_offset": LONG}, gives=Shape.NUMBER),
        _op("aborted_in", {**_SEGMENT, "fetch_offset": LONG, "upper_bound": LONG}, gives=Shape.COLLECTED),
        # By offset, or by time and starting offset; nothing if no entry is held.
        Op(
            "ask_held",
            {"by_time": BOOLEAN, "target": LONG, "starting_offset": LONG},
            gives=Shape.NUMBER,
            files=Files.LEAVES,
        ),
        _op("remove_entries", {"segments": TEXTS}),
        _op("resize_cache", {"max_size": LONG}),
        # Without `tidies`, what has become too old is only noticed by the next operation.
        _op("pass_time", {"milliseconds": LONG, "tidies": BOOLEAN}),
        _op("delete_removed", {}),
        _op("close_cache", {}, effect=Effect.RELEASES),
        _op("crash_cache", {}, effect=Effect.RELEASES),
        # Damage by the harness: one of the file operations of an index, on a file of the cache's directory. While the
        # cache is open, no file that it maps becomes shorter.
        _op("damage_cached_file", {"path": TEXT, "how": TEXT, "arguments": LIST}, effect=Effect.DAMAGES),
    )
)
"""Every operation on a cache."""

CACHE_ERRORS: Final = {
    "corrupt": "a cached file, or one that was fetched, cannot be right",
    "unsupported_version": "a transaction has a version that the release does not know",
    "kafka": "a file cannot be fetched, opened, renamed or deleted",
    "invalid_number": "the name of a file does not begin with an offset",
    "invalid_argument": "the name of a file holds no id of a segment, or a size is negative",
    "out_of_bounds": "the name of a file lacks an underscore or a full stop, or what is read is outside the file",
    "illegal_state": "the cache is closed, or the entry has been removed",
    "closed": "no cache has been opened, or the held entry is closed",
    "io": "the operating system refuses",
}
"""When an operation on a cache is refused with each kind."""
CACHE_ERROR_KINDS: Final = tuple(CACHE_ERRORS)

DIRECTORY: Final = "remote-log-index-cache"
"""The cache's directory below an implementation's own."""

_NUMBERS: Final = 8
_HALF: Final = 1 << 64


class CachedEntry(NamedTuple):
    """What an entry of the cache says of itself.

    Attributes:
        segment: its id.
        start_offset: from which its indexes count.
        offsets: entries of the offset index, and times: of the time index.
        size: bytes that it counts as; -1 in 3.6, which does not count them.
        marked: its files were renamed to be deleted, and cleaned: they were deleted.
    """

    segment: str
    start_offset: int
    offsets: int
    times: int
    size: int
    marked: bool
    cleaned: bool


class CacheState(NamedTuple):
    """What a cache says of itself after an operation.

    Attributes:
        closed: it has been closed, and answers nothing any more.
        entries: in the order of their ids.
    """

    closed: bool
    entries: tuple[CachedEntry, ...]

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Self:
        """From a row of numbers in this order, an id as two numbers."""
        entries = []
        for at in range(1, len(numbers), _NUMBERS):
            high, low, start, offsets, times, size, marked, cleaned = numbers[at : at + _NUMBERS]
            segment = _text(high % _HALF * _HALF + low % _HALF)
            entries.append(CachedEntry(segment, start, offsets, times, size, bool(marked), bool(cleaned)))
        return cls(bool(numbers[0]), tuple(entries))

    def to_numbers(self) -> list[int]:
        """The row of numbers that :meth:`of_numbers` makes it of."""
        numbers = [int(self.closed)]
        for segment, *rest in self.entries:
            id_ = base64.urlsafe_b64decode(f"{segment}==")
            halves = [int.from_bytes(half, signed=True) for half in (id_[:8], id_[8:])]
            numbers += [*halves, *map(int, rest)]
        return numbers

    def to_json(self) -> Json:
        """As a trace or a report carries it."""
        entries: list[dict[str, Any]] = [dict(entry._asdict()) for entry in self.entries]
        return {"closed": self.closed, "entries": entries}


def _text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(16)).decode().rstrip("=")


class CacheObservation(NamedTuple):
    """An outcome and the state after it; no state before a cache has been opened."""

    outcome: Outcome
    state: CacheState | None
