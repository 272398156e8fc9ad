"""Strategies for the log cleaner: its arguments, and the records to compact."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from conformance.strategies import draws as st
from kidx.discovery import SEGMENT_SUFFIXES, SWAP
from kidx.log.segments import CLEANED

Checkpoint = Literal["last", "none", "half", "active", "beyond"]


class Round(NamedTuple):
    """One cleaning round.

    Attributes:
        checkpoint: cleaner checkpoint: ``"last"`` for the end of the last round, ``"none"`` for no checkpoint, or the
            name of an offset: the middle of the log, the base of the active segment, or beyond the end.
        io_buffer_size: bytes per read.
        slots: number of slots in the offset map.
        age: milliseconds between the modification times of successive segments.
        replicated: True to replicate all records first, so that every inactive segment may be cleaned.
    """

    checkpoint: Checkpoint
    io_buffer_size: int
    slots: int
    age: int
    replicated: bool


class Keyed(NamedTuple):
    """Batch to append.

    Attributes:
        records: key size and value size of each record. The key size is 0 for no key, and -1 or -2 for the key of an
            abort or commit marker; the value size is None for a tombstone.
        codec: compression codec.
    """

    records: tuple[tuple[int, int | None], ...]
    codec: str


def settings() -> st.Draw[dict[str, Any]]:
    """Draw settings of a compacted topic, with tombstones that are removed immediately, in the second round, or later.

    The clock begins at 10,000 milliseconds and timestamps at 0, so that some records are younger than the lag.
    """
    return st.fixed_dictionaries(
        {
            "cleanup.policy": st.sampled_from(("compact", "compact", "compact", "compact,delete")),
            "delete.retention.ms": st.sampled_from((1000, 0, 86_400_000)),
        },
        optional={"min.compaction.lag.ms": st.sampled_from((0, 8990, 0, 9500, 0))},
    )


def rounds() -> st.Draw[Round]:
    """Draw rounds, with buffers for less than one batch up to all, and offset maps for two keys up to all."""
    return st.builds(
        Round,
        checkpoint=st.sampled_from(("last", "last", "none", "half", "active", "beyond")),
        io_buffer_size=st.sampled_from((4096, 300, 200, 150, 80, 20)),
        slots=st.sampled_from((50, 50, 50, 5, 3, 2)),
        age=st.sampled_from((0, 1000, 700)),
        replicated=st.sampled_from((True, True, True, False)),
    )


def crashes() -> st.Draw[tuple[str, int]]:
    """Draw the point of a crash, and how often the cleaner reaches the point before it crashes there.

    ``chunk`` is before a read, ``deletion`` after the renaming of the files of a replaced segment.
    """
    return st.tuples(st.sampled_from(("deletion", "deletion", "chunk")), st.sampled_from((1, 2, 3, 5, 9)))


def next_renames(names: Collection[str]) -> list[tuple[str, str]]:
    """Return the next renames of the cleaner, in order, as (old name, new name): the files of one segment."""
    for suffix, target in ((SWAP, ""), (CLEANED, SWAP)):
        waiting = {name for name in names if name.endswith(suffix)}
        if waiting:
            base = min(waiting).partition(".")[0]
            files = (f"{base}{kind}" for kind in SEGMENT_SUFFIXES)
            return [(f"{file}{suffix}", f"{file}{target}") for file in files if f"{file}{suffix}" in waiting]
    return []


def batches() -> st.Draw[list[Keyed]]:
    """Draw up to four batches of up to four records."""
    keys = st.sampled_from((1, 2, 1, 2, 3, 4, -1, -2, 0))
    records = st.lists(st.tuples(keys, st.sampled_from((3, 0, None, 9, 30))), min_size=1, max_size=4).map(tuple)
    return st.lists(
        st.builds(Keyed, records, st.sampled_from(("none", "none", "none", "gzip", "zstd", "lz4", "snappy"))),
        min_size=1,
        max_size=4,
    )
