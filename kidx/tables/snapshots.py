"""The ``.snapshot`` beside a segment: which transactions were open where it begins (``ProducerStateManager.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.producers.snapshot import HEAD, PRODUCER, entries_of, problem_of

if TYPE_CHECKING:
    from kidx.tables.indexes import Counter
    from kidx.tables.segments import Segment

_LARGEST: Final = 256 << 20
"""Bytes of a snapshot, of five million producers, that are read at most."""


def open_transactions(segment: Segment, counter: Counter) -> dict[int, int] | None:
    """First offsets of the transactions open at the start of a segment, by producer.

    None without a snapshot that is whole: then only the log knows.

    Raises:
        OSError: the file cannot be read.
    """
    if "snapshot" not in segment.sizes:
        return None
    with segment.store.open(segment.file("snapshot")) as reader:
        head = reader.read(0, HEAD.size)
        count = HEAD.unpack(head)[2] if len(head) == HEAD.size else -1
        if reader.size != HEAD.size + count * PRODUCER.size or reader.size > _LARGEST:
            return None
        data = head + reader.read(HEAD.size, reader.size)
        counter.index_bytes += reader.bytes_read
    if len(data) != HEAD.size + count * PRODUCER.size or problem_of(data):
        return None
    return {
        entry.producer_id: entry.current_txn_first_offset
        for entry in entries_of(data)
        if entry.current_txn_first_offset >= 0
    }
