"""Whole batches after corrupt bytes in a log: a wrong length, or a hole, hides all later batches from every reader."""

from __future__ import annotations

import os
import struct
from typing import Final, NamedTuple

import google_crc32c
import numpy as np

from kidx.files import open_regular

_MOST: Final = 64 << 20
"""Number of bytes that are searched."""
_LENGTH_AT, _MAGIC_AT, _CRC_AT, _ATTRIBUTES_AT, _COUNT_AT, _RECORDS_AT = 8, 16, 17, 21, 57, 61
_OVERHEAD: Final = 12
_MAGIC: Final = 2
_ATTRIBUTES: Final = 0x7F


class HiddenBatch(NamedTuple):
    """A whole batch that no reader reaches.

    Attributes:
        position: position of the batch in the file.
        base_offset, last_offset: first and last offset of the batch.
        records: number of its records.
    """

    position: int
    base_offset: int
    last_offset: int
    records: int


def hidden_batches(path: str | os.PathLike[str], position: int) -> list[HiddenBatch]:
    """Return the batches of format 2 with a right checksum after the position at which reading a ``.log`` ends.

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
    for start in np.flatnonzero(np.frombuffer(data, np.uint8)[_MAGIC_AT:] == _MAGIC).tolist():
        if start < end or start + _RECORDS_AT > len(data):
            continue
        (size,) = struct.unpack_from(">i", data, start + _LENGTH_AT)
        (base,) = struct.unpack_from(">q", data, start)
        crc, attributes, delta = struct.unpack_from(">Ihi", data, start + _CRC_AT)
        after = start + _OVERHEAD + size
        is_likely = size >= _RECORDS_AT - _OVERHEAD and after <= len(data) and 0 <= attributes <= _ATTRIBUTES
        if is_likely and base >= 0 and delta >= 0 and google_crc32c.value(data[start + _ATTRIBUTES_AT : after]) == crc:
            (count,) = struct.unpack_from(">i", data, start + _COUNT_AT)
            found.append(HiddenBatch(position + start, base, base + delta, max(count, 0)))
            end = after
    return found
