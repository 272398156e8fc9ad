"""Seed files of a fuzzer: small valid files of every format, written by kidx."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from kidx import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from kidx.records import (
    Codec,
    EndTransactionMarker,
    TimestampType,
    build_batch,
    end_transaction_marker,
    write_message,
)
from kidx.records.record import ControlRecordType

BASE_OFFSET: Final = 5
"""Base offset of all files; it is not 0, so that relative and absolute offsets differ."""
TIME: Final = 1_700_000_000_000
"""Timestamp in milliseconds next to which all timestamps are."""

IndexType = TypeVar("IndexType", OffsetIndex, TimeIndex)


def offset_seeds(scratch: Path) -> list[bytes]:
    """Return offset indexes: trimmed, preallocated, empty, and larger than the warm section."""

    def add(index: OffsetIndex, number: int) -> None:
        index.append(BASE_OFFSET + number * 3, number * 100)

    shapes = ((4, 64, True), (3, 64, False), (0, 32, False), (1100, 8800, True))
    return [_index_file(OffsetIndex, scratch / "seed.index", add, *shape) for shape in shapes]


def time_seeds(scratch: Path) -> list[bytes]:
    """Return time indexes: trimmed, preallocated, empty, and larger than the warm section."""

    def add(index: TimeIndex, number: int) -> None:
        index.maybe_append(TIME + number * 10, BASE_OFFSET + number * 3)

    shapes = ((4, 60, True), (3, 60, False), (0, 36, False), (800, 9612, True))
    return [_index_file(TimeIndex, scratch / "seed.timeindex", add, *shape) for shape in shapes]


def _index_file(
    kind: type[IndexType], path: Path, add: Callable[[IndexType, int], None], count: int, max_size: int, trimmed: bool
) -> bytes:
    """Return an index file with some entries, trimmed to their size or preallocated with the maximum size."""
    path.unlink(missing_ok=True)
    index = kind(path, BASE_OFFSET, max_index_size=max_size)
    for number in range(1, count + 1):
        add(index, number)
    if trimmed:
        index.trim_to_valid_size()
    index.close_handler()
    return path.read_bytes()


def transaction_seeds(scratch: Path) -> list[bytes]:
    """Return transaction indexes with two, no, one, and three transactions."""
    seeds = []
    for count in (2, 0, 1, 3):
        path = scratch / "seed.txnindex"
        path.unlink(missing_ok=True)
        with TransactionIndex(BASE_OFFSET, path) as index:
            for number in range(count):
                first = BASE_OFFSET + number * 10
                index.append(AbortedTxn(7 + number, first, first + 5, first + 6))
        seeds.append(path.read_bytes() if path.exists() else b"")
    return seeds


def log_seeds(_scratch: Path) -> list[bytes]:
    """Return logs with batches of every format and codec, with gaps, and with a transaction and its marker."""
    plain = [
        build_batch([(TIME, b"k", b"v"), (TIME + 7, None, b"w")], base_offset=5),
        build_batch([(TIME + 3, b"k", b"v", (("h", b"1"),))], base_offset=9),
        build_batch([(TIME + 9, b"k", None)], base_offset=10, last_offset=12),
    ]
    codecs = [
        build_batch([(TIME + i, b"key", b"value" * 5)], base_offset=5 + i, codec=codec)
        for i, codec in enumerate((Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD))
    ]
    marker = EndTransactionMarker(ControlRecordType.ABORT, 1)
    transaction = [
        build_batch(
            [(TIME, b"k", b"v")], base_offset=5, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True
        ),
        end_transaction_marker(marker, producer_id=3, producer_epoch=0, offset=6, timestamp=TIME + 1),
    ]
    stamped = [
        build_batch(
            [(TIME, b"k", b"v")], base_offset=5, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=TIME + 50
        )
    ]
    legacy = [
        write_message(5, 0, -1, b"k", b"v"),
        write_message(6, 1, TIME, b"k", b"v"),
        build_batch([(TIME, b"k", b"v"), (TIME + 1, b"k", b"w")], base_offset=7, magic=1, codec=Codec.GZIP),
    ]
    return [b"".join(batches) for batches in (plain, transaction, stamped, legacy, codecs, [])]


SEEDS: Final[dict[str, Callable[[Path], list[bytes]]]] = {
    "offset": offset_seeds,
    "time": time_seeds,
    "txn": transaction_seeds,
    "log": log_seeds,
}
"""Functions that return the seeds of each format; every bit of the first seed is flipped."""
