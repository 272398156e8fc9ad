"""Type of a control batch's first record, from its bytes: one function that runs plain or compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from kidx.records.layout import RECORD_BATCH_OVERHEAD


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
