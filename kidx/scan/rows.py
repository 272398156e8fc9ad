"""Rows of batch headers, and reasons for which a walk stops; shared by the plain walk and the compiled kernels."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kidx.layout import RECORD_BATCH_OVERHEAD

Array = np.ndarray[Any, Any]

# fmt: off
BATCH: Final = np.dtype([
    ("position",       "i8"),  # byte position in the file
    ("size",           "i8"),  # total size in bytes
    ("base_offset",    "i8"),  # first offset; in a compressed v0, v1 batch from its records
    ("last_offset",    "i8"),  # last offset before any compaction
    ("base_timestamp", "i8"),  # milliseconds; in v0, v1 equal to max_timestamp
    ("max_timestamp",  "i8"),  # milliseconds, -1 for none
    ("producer_id",    "i8"),  # -1 for none
    ("leader_epoch",   "i4"),  # -1 for none
    ("base_sequence",  "i4"),  # -1 for none
    ("count",          "i4"),  # number of records; -1 in v0, v1
    ("crc",            "u4"),  # stored checksum
    ("attributes",     "i2"),  # the ATTRIBUTE_ bits of kidx.layout
    ("producer_epoch", "i2"),  # -1 for none
    ("magic",          "i1"),  # 0, 1, 2 or any other byte in the file
    ("control",        "i1"),  # type of a control batch's first record: 0 abort, 1 commit; otherwise -1
    ("crc_ok",         "?"),   # size and checksum are right
], align=True)
"""One row per batch."""
# fmt: on

MORE: Final = 0
"""The walk needs bytes after the end of the block, which the next block has."""

END: Final = 1
"""Fewer than 18 bytes remain, or the next batch would exceed the end of the file."""

CORRUPT: Final = 2
"""A length is below 14: nothing after it can be read."""

FULL: Final = 3
"""All given rows are written."""


ODD: Final = 4
"""A fast path leaves a batch to the walk, because it is not an ordinary one; see :meth:`kidx.scan.LogBlocks.rows`."""


class WalkResult(NamedTuple):
    """Result of a walk: rows written, position in the block where it stopped, and reason (MORE, END, CORRUPT, FULL)."""

    rows: int
    stopped: int
    reason: int


def control_type(buffer: Any, position: int, end: int) -> Any:
    """Return the type in the key of a control batch's first record (``ControlRecordType.parse``), 0 abort, 1 commit.

    The result is -1 for a type that Kafka does not have, or if the record cannot be read. The function calls no other,
    so that numba can compile it.

    Args:
        buffer: bytes, uint8.
        position: position of the batch in the buffer.
        end: position after the batch.
    """
    at = position + RECORD_BATCH_OVERHEAD
    for field in range(3):  # length, then a byte of attributes, timestamp delta, offset delta
        while at < end and np.int64(buffer[at]) > 127:
            at += 1
        at += 2 if field == 0 else 1
    size, shift = np.int64(0), 0
    while at < end and shift < 35:
        byte = np.int64(buffer[at])
        size |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 128:
            break
    size >>= 1  # zigzag: a negative size, for no key at all, is odd and becomes too small
    if size < 4 or at + 4 > end:
        return -1
    number = (np.int64(buffer[at + 2]) << 8) | np.int64(buffer[at + 3])
    return number if number <= 6 else -1
