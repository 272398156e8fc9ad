"""Strategies for remote segments, fetches and invalid files in the cache of remote index files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.operations.cache import KINDS
from conformance.strategies import draws as st
from conformance.strategies.index import damages
from kidx.java_values import LONG_MAX

if TYPE_CHECKING:
    from conformance.operations import Operation
    from conformance.strategies.draws import Draw

ENTRY_SIZES: Final = {".index": 8, ".timeindex": 12, ".txnindex": 34}

SEGMENTS: Final = (
    ("AAAAAAAAAAAAAAAAAAAAbA", 0),
    ("b-_UbGhWQSyTrDfNnQxAAw", 100),
    ("zzzzzzzzzzzzzzzzzzzzzw", 1000),
    ("_0123456789-abcdefghiQ", 5_000_000_000),
)
"""Ids and start offsets of segments. They are few, so that they recur."""
ALIAS: Final = {"A": "B", "w": "x", "Q": "R"}
"""For the last character of an id, a character that decodes to the same id, because its last bits are ignored."""


class Content(NamedTuple):
    """Entries of a segment's index files, with offsets relative to the segment's start.

    Attributes:
        offsets: offset and position of each entry of the offset index.
        times: timestamp and offset of each entry of the time index.
        transactions: producer id, first offset, last offset and last stable offset of each aborted transaction.
    """

    offsets: tuple[tuple[int, int], ...]
    times: tuple[tuple[int, int], ...]
    transactions: tuple[tuple[int, int, int, int], ...]

    def files(self, start: int) -> dict[str, bytes]:
        """Return the bytes of each file."""
        aborted = [(p, start + first, start + last, start + stable) for p, first, last, stable in self.transactions]
        return {
            ".index": b"".join(struct.pack(">2i", *entry) for entry in self.offsets),
            ".timeindex": b"".join(struct.pack(">qi", *entry) for entry in self.times),
            ".txnindex": b"".join(struct.pack(">h4q", 0, *transaction) for transaction in aborted),
        }


def contents() -> Draw[Content]:
    """Draw up to six entries of each index, with increasing offsets and timestamps; few transactions."""
    rows = st.lists(st.tuples(st.sampled_from((1, 5, 1, 20)), st.sampled_from((61, 100))), max_size=6)
    stamps = st.lists(st.tuples(st.sampled_from((10, 0, 1000)), st.sampled_from((1, 5, 20))), max_size=6)
    aborted = st.lists(st.tuples(st.sampled_from((0, 3)), st.sampled_from((4, 9))), max_size=2)
    return st.builds(_content, rows, stamps, st.just([]) | aborted)


def _content(rows: list[tuple[int, int]], stamps: list[tuple[int, int]], aborted: list[tuple[int, int]]) -> Content:
    offsets, times, transactions = [], [], []
    offset = position = 0
    for more, size in rows:
        offset, position = offset + more, position + size
        offsets.append((offset, position))
    offset, now = 0, 1000
    for later, more in stamps:
        offset, now = offset + more, now + later
        times.append((now, offset))
    last = 0
    for first, length in aborted:
        transactions.append((1, last + first, last + length, last + length + 1))
        last += length
    return Content(tuple(offsets), tuple(times), tuple(transactions))


def segments() -> Draw[int]:
    """Draw the number of a segment, two of them more often."""
    return st.sampled_from((0, 1, 1, 2, 0, 3))


def kinds() -> Draw[str]:
    """Draw the kind of a segment's file."""
    return st.sampled_from(KINDS)


def odd_answers() -> Draw[tuple[str, str]]:
    """Draw a behaviour of remote storage, and the name of a change to the content that it returns (RC-7).

    The first change is a random corruption of the bytes; :func:`spoilt` makes the other changes.
    """
    ways = st.sampled_from(("damaged", "damaged", "damaged", "empty", "zeros", "version", "other"))
    return st.sampled_from((("missing", ""), ("fails", ""), ("breaks", "damaged"), ("breaks", ""))) | ways.map(
        lambda way: ("gives", way)
    )


def file_damages(kind: str) -> Draw[Operation]:
    """Draw a corruption of a file of one kind."""
    damage: Draw[Operation] = damages(ENTRY_SIZES[kind], st)
    return damage


def spoilt(content: bytes, kind: str, way: str) -> bytes:
    """Return a corrupt content that random changes of bytes rarely produce.

    Args:
        content: content of a valid file.
        kind: suffix of the file.
        way: ``zeros`` for additional entries of zeros, ``version`` for a wrong version or a partial entry, ``other``
            for entries of ones; an empty file for any other text.
    """
    size = ENTRY_SIZES[kind]
    if way == "zeros":
        return content + bytes(3 * size)
    if way == "version":
        return b"\x01\x00" + content[2:] if kind == ".txnindex" else content + b"\x00"
    if way == "other":
        return b"\xff" * (2 * size)
    return b""


FOREIGN: Final = (
    "README",
    ".DS_Store",
    "lost+found",
    ".nfs0000000000000001",
    "0_notauuid.index",
    ".tmp",
    ".deleted",
    "README.tmp",
    "{id}.index",
    "{start}_{id}",
    "{start}_{id}.bak",
    "{start}_{id}.index.tmp",
    "{start}_{id}.timeindex.deleted",
    "{start}_{id}.txnindex.deleted",
    "{start}_{id}.index.bak.tmp",
    "x_{id}.index",
    "{start}_{id}==.index",
    "{start}_{id}=.index",
    "{start}_x{id}.index",
)
"""Names of files that tools, file systems and killed brokers leave in the cache, and similar names."""
PREFIXES: Final = ("x_{id}", "_{id}", "{id}", "+{start}_{id}", "-1_{id}", "9223372036854775808_{id}", "{start}_{id}==",
                   "{start}_{alias}", "7_{id}", "{start}_{id}_7")  # fmt: skip
"""Prefixes of names, each for the three files of an entry."""


def foreign_names() -> Draw[str]:
    """Draw the pattern of a foreign file's name."""
    return st.sampled_from(FOREIGN)


def prefixes() -> Draw[str]:
    """Draw the prefix of the names of an entry's three files."""
    return st.sampled_from(PREFIXES)


def named(pattern: str, segment: int) -> str:
    """Return a name whose pattern is filled with the id and the start offset of a segment."""
    id_, start = SEGMENTS[segment]
    return pattern.format(id=id_, start=start, alias=id_[:-1] + ALIAS[id_[-1]])


def deltas() -> Draw[int]:
    """Draw distances from the offset or the timestamp of an entry."""
    return st.sampled_from((0, 0, 1, -1, 7, -100, LONG_MAX >> 8))


def waits() -> Draw[int]:
    """Draw milliseconds around the time-to-live of an unused entry (RC-14)."""
    return st.sampled_from((1, TTL - 1, TTL, TTL + 1, 10))


TTL: Final = 100
"""Time-to-live of an unused entry in milliseconds."""
