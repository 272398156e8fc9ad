"""Times of the records of a segment, block by block: checked by reading them, and kept for the next query.

The first query with a condition on ``timestamp`` reads everything, and notes for each block of a segment the smallest
and the largest time of its records. The next one reads only the blocks that can have a requested time. Neither headers
nor the time index decide, so the selection is exact.

The notes are files in the user's cache, one for each range that was read. Each is named after a version of the log: its
inode, size and times, or what an object store reports. They may be removed at any time. If they cannot be written or
read, or the version is unknown, everything is read.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from platformdirs import user_cache_path

from kidx.errors import KidxError
from kidx.java_values import LONG_MAX, LONG_MIN
from kidx.layout import ATTRIBUTE_CODEC, ATTRIBUTE_CONTROL
from kidx.scan import BATCH, decode_batch
from kidx.scan.batch_headers import walk as walk_headers
from kidx.scan.records import RECORD
from kidx.storage import RangeReader
from kidx.tables.batch_walk import BatchWalk

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.scan.rows import Array
    from kidx.tables.predicates import Predicates
    from kidx.tables.segments import Segment

Ranges = tuple[tuple[int, int], ...]
"""Byte ranges of a log, in order; each begins and ends between batches."""

BLOCK: Final = np.dtype(
    [("start", "<i8"), ("end", "<i8"), ("first", "<i8"), ("last", "<i8"), ("least", "<i8"), ("largest", "<i8")]
)
"""Consecutive batches: their bytes, and the smallest and largest offset and time of their records."""
_SMALLEST_BLOCK: Final = 32 << 10
_BLOCKS: Final = 1024
"""Number of blocks of a large segment: the notes of a gigabyte take up to 100 KB."""
_BATCHES: Final = 1 << 12
_RECORDS: Final = 1 << 14


def known_ranges(
    segment: Segment, version: str, bounds: tuple[int, int], offsets: tuple[int, int], predicates: Predicates
) -> Ranges | None:
    """Return the ranges between two positions that can have requested records; None if not all of it was checked.

    Args:
        version: the version of its log; empty if unknown.
        bounds: the two positions.
        offsets: the first requested offset, and the offset after the last.
        predicates: the requested times.
    """
    blocks = _load(segment, version) if version else np.empty(0, BLOCK)
    at = bounds[0]
    found: list[tuple[int, int]] = []
    for block in blocks[(blocks["end"] > bounds[0]) & (blocks["start"] < bounds[1])]:
        start, end = int(block["start"]), int(block["end"])
        if start > at:
            return None
        if end <= at:
            continue
        if _fits(block, offsets, predicates):
            if found and found[-1][1] == at:
                at = found.pop()[0]
            found.append((at, min(end, bounds[1])))
        at = end
    return tuple(found) if at >= bounds[1] else None


def check(
    segment: Segment,
    reader: RangeReader,
    bounds: tuple[int, int],
    offsets: tuple[int, int],
    predicates: Predicates,
    *,
    checked: bool,
    compiled: bool,
) -> Iterator[tuple[int, int]]:
    """Check the times of all records between two positions, and yield the ranges that can have requested records.

    The last range is whatever cannot be checked. The result is kept if it is complete, and the log has not changed.

    Args:
        bounds: the two positions, each between batches.
        offsets: the first requested offset, and the offset after the last.
        predicates: the requested times.
        checked: True to validate checksums.
        compiled: True to use compiled kernels.

    Raises:
        OSError: the log cannot be read.
    """
    version, (at, end) = reader.version(), bounds
    size = max(_SMALLEST_BLOCK, segment.size // _BLOCKS)
    blocks = []
    with suppress(KidxError):
        for batches in _batches(reader, bounds, segment, checked=checked, compiled=compiled):
            for block in _blocks(batches, size):
                blocks.append(block)
                at = int(block["end"])
                if _fits(block, offsets, predicates):
                    yield int(block["start"]), at
    if at < end:
        yield at, end
        return
    with suppress(OSError):  # the log was removed
        if version and version == reader.version():
            _keep(segment, version, np.array(blocks, BLOCK))


class Recent(RangeReader):
    """A reader that keeps its last reads, so that what was checked is not fetched again."""

    def __init__(self, reader: RangeReader) -> None:
        self._reader, self.size = reader, reader.size
        self._kept: list[tuple[int, bytes]] = []

    def version(self) -> str:
        """See the base class."""
        return self._reader.version()

    def is_zero_from(self, position: int) -> bool:
        """See the base class."""
        return self._reader.is_zero_from(position)

    def _read(self, start: int, end: int) -> bytes:
        for at, data in self._kept:
            if at <= start and end <= at + len(data):
                return data[start - at : end - at]
        data = self._reader.read(start, end - start)
        self._kept = [*self._kept[-1:], (start, data)]
        return data


def _fits(block: Any, offsets: tuple[int, int], predicates: Predicates) -> bool:
    least = LONG_MIN if predicates.min_time is None else predicates.min_time
    largest = LONG_MAX if predicates.max_time is None else predicates.max_time
    return bool(
        block["largest"] >= least
        and block["least"] <= largest
        and block["last"] >= offsets[0]
        and block["first"] < offsets[1]
    )


def _blocks(batches: Array, size: int) -> Array:
    """Combine the batches that begin in the same ``size`` bytes of a log."""
    heads = np.flatnonzero(np.diff(batches["start"] // size, prepend=-1))
    blocks = batches[heads]
    blocks["end"] = batches["end"][np.append(heads[1:], len(batches)) - 1]
    for name, combine in (("first", np.minimum), ("least", np.minimum), ("last", np.maximum), ("largest", np.maximum)):
        blocks[name] = combine.reduceat(batches[name], heads)
    return blocks


def _batches(
    reader: RangeReader, bounds: tuple[int, int], segment: Segment, *, checked: bool, compiled: bool
) -> Iterator[Array]:
    """Yield consecutive batches, as blocks of one batch.

    Raises:
        KidxError: the next batch is corrupt.
        OSError: the log cannot be read.
    """
    walk = BatchWalk(reader, *bounds, source=segment.name, may_grow=segment.is_last)
    rows, records = np.empty(_BATCHES, BATCH), np.empty(_RECORDS if compiled else 0, RECORD)
    for position, batch, _ in walk:
        if compiled and batch.magic >= 2:
            window = np.frombuffer(walk.window, np.uint8)
            start, end = position - walk.base, bounds[1] - walk.base
            count = walk_headers(
                window, min(len(window), end), rows, start=start, file_end=end, checked=checked, compiled=True
            ).rows
            found = _of_headers(window, rows[:count], records, walk.base)
            if len(found):
                walk.position = int(found["end"][-1])
                yield found
                continue
        if checked:
            batch.ensure_valid()
        yield _of_batch(batch, position, compiled=compiled)


def _of_headers(window: Array, rows: Array, records: Array, base: int) -> Array:
    """Return the leading batches that are valid, uncompressed and of v2; control batches have no records to return."""
    from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

    plain = (rows["magic"] == 2) & rows["crc_ok"] & (rows["attributes"] & ATTRIBUTE_CODEC == 0) & (rows["count"] >= 0)
    rows = rows if plain.all() else rows[: int(plain.argmin())]
    if not len(rows):
        return np.empty(0, BLOCK)
    number, _, _ = record_kernels.read_batches(window, rows, 0, records, len(window))
    rows = rows[:number]
    found = np.empty(number, BLOCK)
    found["start"], found["end"] = base + rows["position"], base + rows["position"] + rows["size"]
    found["first"], found["last"] = rows["base_offset"], rows["last_offset"]
    found["least"], found["largest"] = LONG_MAX, LONG_MIN
    there = (rows["count"] > 0) & (rows["attributes"] & ATTRIBUTE_CONTROL == 0)
    heads = np.cumsum(rows["count"], dtype=np.int64) - rows["count"]
    times = records["timestamp"][: int(rows["count"].sum(dtype=np.int64))]
    # Between two heads are the records of one batch: batches without records add none.
    filled = rows["count"] > 0
    if filled.any():
        least, largest = (combine.reduceat(times, heads[filled]) for combine in (np.minimum, np.maximum))
        found["least"][there] = least[there[filled]]
        found["largest"][there] = largest[there[filled]]
    return found


def _of_batch(batch: RecordBatch, position: int, *, compiled: bool) -> Array:
    """Return one batch as a block.

    Raises:
        KidxError: it is corrupt.
    """
    offsets, rows = [batch.base_offset, batch.last_offset], None
    times: list[int] = []
    if compiled and not batch.is_control:
        with suppress(KidxError):  # an old batch, a very large one, or one that iteration finds corrupt
            rows = decode_batch(batch).rows
    if rows is None and not batch.is_control:
        for record in batch.offset_timestamps():
            times = [min(record.timestamp, *times), max(record.timestamp, *times)] if times else [record.timestamp]
            offsets = [min(record.offset, *offsets), max(record.offset, *offsets)]
    elif rows is not None and len(rows):
        times = [int(rows["timestamp"].min()), int(rows["timestamp"].max())]
        offsets += [int(rows["offset"].min()), int(rows["offset"].max())]
    end = position + batch.size_in_bytes
    least, largest = (min(times), max(times)) if times else (LONG_MAX, LONG_MIN)
    return np.array([(position, end, min(offsets), max(offsets), least, largest)], BLOCK)


def _directory_of(log: str) -> Path:
    name = hashlib.sha256(log.encode(errors="surrogateescape")).hexdigest()[:32]
    return user_cache_path("kidx") / "record-times" / name


def _stem(version: str) -> str:
    return hashlib.sha256(version.encode()).hexdigest()[:32]


def _keep(segment: Segment, version: str, blocks: Array) -> None:
    """Write a note about a version of a log, and remove those about other versions."""
    data, directory, stem = blocks.tobytes(), _directory_of(segment.name), _stem(version)
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{stem}-{int(blocks['start'][0])}" if len(blocks) else directory / stem
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(zlib.crc32(data).to_bytes(4, "big") + data)
        temporary.replace(path)
        for other in directory.iterdir():
            if not other.name.startswith((stem, ".")):
                other.unlink(missing_ok=True)


def _load(segment: Segment, version: str) -> Array:
    """Return the blocks of all notes about a version, by position."""
    notes = [np.empty(0, BLOCK)]
    with suppress(OSError):
        for path in _directory_of(segment.name).glob(f"{_stem(version)}*"):
            data = path.read_bytes()
            if len(data) % BLOCK.itemsize == 4 and zlib.crc32(data[4:]) == int.from_bytes(data[:4], "big"):
                notes.append(np.frombuffer(data[4:], BLOCK))
    found = np.concatenate(notes)
    return found[np.argsort(found["start"], kind="stable")]
