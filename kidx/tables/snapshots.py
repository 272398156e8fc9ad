"""The ``.snapshot`` beside a segment: which transactions were open where it begins (``ProducerStateManager.java``).

A header of version and CRC-32C (of all that follows it), a count, and an entry for every producer.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import google_crc32c

from kidx.layout import Field, Layout

if TYPE_CHECKING:
    from kidx.tables.indexes import Counter
    from kidx.tables.segments import Segment

# fmt: off
PRODUCER_ENTRY: Final = Layout(".snapshot entry", (
    Field( 0, 8, "producer_id",              "the producer"),
    Field( 8, 2, "epoch",                    "its current epoch"),
    Field(10, 4, "last_sequence",            "of its last batch"),
    Field(14, 8, "last_offset",              "of its last batch"),
    Field(22, 4, "offset_delta",             "last less first sequence of its last batch"),
    Field(26, 8, "timestamp",                "largest of its last batch"),
    Field(34, 4, "coordinator_epoch",        "of the coordinator that ended its last transaction"),
    Field(38, 8, "current_txn_first_offset", "first offset of the transaction that is open, -1 if none is"),
), "ProducerSnapshot.json")
# fmt: on

_HEADER: Final = struct.Struct(">hIi")  # version, checksum, number of entries
_LARGEST: Final = 256 << 20
"""Bytes of a snapshot, of five million producers, that are read at most."""
_CHECKSUMMED_FROM: Final = 6
_VERSION: Final = 1


def open_transactions(segment: Segment, counter: Counter) -> dict[int, int] | None:
    """First offsets of the transactions open at the start of a segment, by producer.

    None without a snapshot that is whole: then only the log knows.

    Raises:
        OSError: the file cannot be read.
    """
    if "snapshot" not in segment.sizes:
        return None
    with segment.store.open(segment.file("snapshot")) as reader:
        head = reader.read(0, _HEADER.size)
        count = _HEADER.unpack(head)[2] if len(head) == _HEADER.size else -1
        if reader.size != _HEADER.size + count * PRODUCER_ENTRY.size or reader.size > _LARGEST:
            return None
        data = head + reader.read(_HEADER.size, reader.size)
        counter.index_bytes += reader.bytes_read
    if len(data) < _HEADER.size:
        return None
    version, checksum, count = _HEADER.unpack_from(data)
    whole = len(data) == _HEADER.size + count * PRODUCER_ENTRY.size
    if version != _VERSION or not whole or google_crc32c.value(data[_CHECKSUMMED_FROM:]) != checksum:
        return None
    entries = PRODUCER_ENTRY.struct.iter_unpack(data[_HEADER.size :])
    return {producer_id: first for producer_id, *_, first in entries if first >= 0}
