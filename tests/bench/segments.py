"""Large segments, made fast with numpy: the bytes that a producer and a broker would write.

All batches of a segment have the same shape. They are copies of one batch of ``kidx.records.build_batch``, each with
its own base offset, timestamps and checksum. Tests compare them with a real client's bytes, and the indexes with those
that a recovery writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np

from kidx.layout import CHECKSUMMED_FROM, RECORD_BATCH
from kidx.records import SimpleRecord, build_batch
from kidx.scan.entries import expected_indexes
from kidx.scan.rows import BATCH

FIRST_TIMESTAMP = 1_700_000_000_000
_CHUNK = 4096


def payload(value_size: int) -> bytes:
    """Return a value that compresses moderately, the same for all records."""
    return np.random.default_rng(0).bytes(value_size)


def template(records: int, value_size: int) -> bytes:
    """Build one batch: keys of eight bytes, values of ``value_size``, equal timestamps, as a producer sends them."""
    value = payload(value_size)
    made = [SimpleRecord(FIRST_TIMESTAMP, f"{number:08d}".encode(), value) for number in range(records)]
    return build_batch(made, partition_leader_epoch=0)


def chunks(batches: int, records: int, value_size: int, base_offset: int = 0) -> Iterator[bytes]:
    """Yield the bytes of consecutive batches, a few thousand at a time; each is a millisecond later than the last."""
    one = np.frombuffer(template(records, value_size), np.uint8)
    at = {field.name: slice(field.offset, field.offset + field.size) for field in RECORD_BATCH.fields}
    for first in range(0, batches, _CHUNK):
        numbers = np.arange(first, min(first + _CHUNK, batches), dtype=np.int64)
        block = np.tile(one, (len(numbers), 1))
        stamps = (FIRST_TIMESTAMP + numbers).astype(">i8")
        block[:, at["base_offset"]] = (base_offset + numbers * records).astype(">i8").view(np.uint8).reshape(-1, 8)
        block[:, at["base_timestamp"]] = stamps.view(np.uint8).reshape(-1, 8)
        block[:, at["max_timestamp"]] = stamps.view(np.uint8).reshape(-1, 8)
        sums = [google_crc32c.value(row[CHECKSUMMED_FROM:].tobytes()) for row in block]
        block[:, at["crc"]] = np.array(sums, ">u4").view(np.uint8).reshape(-1, 4)
        yield block.tobytes()


def write_segment(
    directory: Path, size: int, *, records: int, value_size: int, base_offset: int = 0, index_interval_bytes: int = 4096
) -> Path:
    """Write a finished segment of about ``size`` bytes with its indexes, and return the path of its ``.log``."""
    directory.mkdir(parents=True, exist_ok=True)
    one = len(template(records, value_size))
    batches = max(1, size // one)
    log = directory / f"{base_offset:020d}.log"
    with log.open("wb") as file:
        for chunk in chunks(batches, records, value_size, base_offset):
            file.write(chunk)
    rows = np.zeros(batches, BATCH)
    numbers = np.arange(batches)
    rows["position"], rows["size"] = numbers * one, one
    rows["base_offset"] = base_offset + numbers * records
    rows["last_offset"] = rows["base_offset"] + records - 1
    rows["max_timestamp"] = FIRST_TIMESTAMP + numbers
    offsets, times = expected_indexes(rows, index_interval_bytes=index_interval_bytes)
    entries = np.stack([offsets["offset"] - base_offset, offsets["position"]], axis=1).astype(">i4")
    log.with_suffix(".index").write_bytes(entries.tobytes())
    packed = b"".join(struct.pack(">qi", stamp, offset - base_offset) for stamp, offset in times.tolist())
    log.with_suffix(".timeindex").write_bytes(packed)
    return log
