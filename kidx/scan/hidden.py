"""Whole batches after corrupt bytes in a log: a wrong length, or a hole, hides all later batches from every reader."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from kidx.files import open_regular
from kidx.records.layout import CHECKSUMMED_FROM, LOG_OVERHEAD, RECORD_BATCH, RECORD_BATCH_OVERHEAD

_MOST: Final = 64 << 20
"""Number of bytes that are searched."""
_CHECKSUMMED: Final = 4 * _MOST
"""Number of bytes whose checksum is computed: headers of a hostile file may all claim the rest of the file."""
_MAGIC_AT: Final = RECORD_BATCH.field("magic").offset
_MAGIC: Final = 2
_ATTRIBUTES: Final = 0x7F


class HiddenBatch(NamedTuple):
    """A whole batch that no reader reaches.

    Attributes:
        position: position of the batch in the file.
        base_offset, last_offset: first and last offset of the batch.
        records: number of its records.
        size: size in bytes.
        max_timestamp: largest timestamp in milliseconds; -1 for none.
        attributes: the ``ATTRIBUTE_`` bits of :mod:`kidx.records.layout`.
    """

    position: int
    base_offset: int
    last_offset: int
    records: int
    size: int
    max_timestamp: int
    attributes: int


def hidden_batches(path: str | os.PathLike[str], position: int) -> list[HiddenBatch]:
    """Return the batches of format 2 with a right checksum after the position at which reading a ``.log`` ends.

    The search ends early in a file whose false headers would take minutes to check.

    Args:
        path: path of the log.
        position: position at which a reader of the log stops.

    Raises:
        OSError: the file cannot be read.
    """
    descriptor = open_regular(path)
    try:
        data = os.pread(descriptor, _MOST, position)
    finally:
        os.close(descriptor)
    found: list[HiddenBatch] = []
    end = 1  # no batch begins at the position itself
    left = _CHECKSUMMED
    for start in np.flatnonzero(np.frombuffer(data, np.uint8)[_MAGIC_AT:] == _MAGIC).tolist():
        if start < end or start + RECORD_BATCH_OVERHEAD > len(data):
            continue
        header = RECORD_BATCH.struct.unpack_from(data, start)
        base, length, _, _, crc, attributes, delta, _, max_timestamp, *_, count = header
        after = start + LOG_OVERHEAD + length
        is_likely = start + RECORD_BATCH_OVERHEAD <= after <= len(data) and 0 <= attributes <= _ATTRIBUTES
        is_likely &= base >= 0 and delta >= 0
        if not is_likely:
            continue
        left -= length
        if left < 0:
            break
        if google_crc32c.value(data[start + CHECKSUMMED_FROM : after]) == crc & 0xFFFFFFFF:
            numbers = base, base + delta, max(count, 0), after - start, max_timestamp, attributes
            found.append(HiddenBatch(position + start, *numbers))
            end = after
    return found
