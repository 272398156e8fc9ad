"""The ``.snapshot`` of a segment: transactions that were open at its base offset (``ProducerStateManager.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kidx.producers.snapshot import HEAD, PRODUCER, entries_of, problem_of

if TYPE_CHECKING:
    from kidx.tables.indexes import Counter
    from kidx.tables.segments import Segment

_LARGEST: Final = 256 << 20
"""Maximum number of bytes of a snapshot that is read: five million producers."""


def open_transactions(segment: Segment, counter: Counter) -> dict[int, int] | None:
    """Return the first offset of each transaction that was open at the start of a segment, by producer id.

    The result is None without a complete snapshot; the state must then be read from the log.

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
