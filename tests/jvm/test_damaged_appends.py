"""Corrupt streams, accepted or rejected by leaders on both sides of each change of rule (LG-64, LG-74 to LG-76)."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import cycle, pairwise, product
from typing import Any

import pytest

from conformance.implementations.jvm.log import JvmLog
from conformance.lockstep.scopes.log import LogLockstep
from conformance.operations import Operation
from conformance.operations.batches import encode
from conformance.scratch import scratch_directory
from conformance.strategies.leader import CLAIMED
from kidx.layout import RECORD_BATCH_OVERHEAD

pytestmark = pytest.mark.jvm

SIDES = ("2.4.1", "2.6.3", "2.7.2", "3.1.2", "3.5.2", "3.6.2", "4.4.0")
"""Leaders pass over keys and values from 2.6 on, field by field from 3.6; from 2.8 on a buffer is before zstd."""
SETTINGS = {"segment.bytes": 1 << 20, "segment.index.bytes": 96}
FIRST = {"zstd": 4, "lz4": 4, "snappy": 17}
"""Positions before it have a magic number; in snappy also a byte of the size that Kafka up to 3.4 allocates."""
STORED = struct.Struct("<I")
"""The size before a block of lz4; its highest bit says that the block is stored."""
EMPTY = STORED.pack(1) + b"\0"
KINDS_OF_BLOCK = ([], [["set", 6, 0]], [["set", 6, 1]], [["set", 6, 2]])
"""Kinds of zstd's first block: unchanged, raw, raw and last, or one repeated byte; these give odd records."""


def damaged(codec: str) -> Iterator[dict[str, Any]]:
    """Yield batches of small and large records, with one byte of their streams set, in zstd with another block type."""
    first = FIRST[codec]
    before = KINDS_OF_BLOCK if codec == "zstd" else KINDS_OF_BLOCK[:1]
    for size, kind, place, byte in product((5, 272, 2100), before, range(first, first + 14), (0, 2, 16, 200)):
        yield {"records": [[0, 0, size], [1, 0, size]], "codec": codec, "payload": [*kind, ["set", place, byte]]}
    for size, kind, cut in product((5, 272, 2100), before, (1, 3, 4, 9, 40)):
        yield {"records": [[0, 0, size]], "codec": codec, "payload": [*kind, ["cut", cut]]}
        yield {"records": [[0, 0, size]], "codec": codec, "payload": [*kind, ["add", cut]]}


def empty() -> Iterator[dict[str, Any]]:
    """Yield batches with an empty block of lz4 instead of the end, and before more bytes."""
    for size, more in product((0, 5, 60), (1, 5, 9, 70)):
        end = [["cut", 4], ["add", 4], ["set", -4, 1], ["add", more]]
        yield {"records": [[0, 0, size], [1, 0, size]], "codec": "lz4", "payload": end}


def claiming() -> Iterator[dict[str, Any]]:
    """Yield batches whose frame of lz4 claims checksums that are missing or incomplete."""
    for size, (flags, own), cut, plain in product((5, 272), CLAIMED, range(10), ([], [["cut", 3]])):
        payload = [["set", 4, flags], ["set", 6, own], ["cut", cut]]
        yield {"records": [[0, 0, size], [1, 0, size]], "codec": "lz4", "payload": payload, "plain": plain}


def in_blocks(number: int) -> Iterator[dict[str, Any]]:
    """Yield batches whose frame of lz4 has stored blocks, most of them followed by empty ones."""
    chance = random.Random(76)  # noqa: S311
    for _ in range(number):
        records = [[0, 0, chance.choice((0, 5, 40, 2048, 2100, 4500))], [1, 1, 5, chance.choice((3, 2100))]]
        plain = encode([{"records": records}])[RECORD_BATCH_OVERHEAD:]
        places = [chance.choice((chance.randrange(16), chance.randrange(len(plain)))) for _ in range(3)]
        frame = b""
        for start, end in pairwise(sorted([0, *places, len(plain)])):
            frame += STORED.pack(end - start | 1 << 31) + plain[start:end] if start < end else b""
            frame += EMPTY * chance.choice((0, 1, 1, 2, 3))
        head = 7
        size = len(encode([{"records": records, "codec": "lz4"}])) - RECORD_BATCH_OVERHEAD
        changes = [["set", place, byte] for place, byte in enumerate(frame, head) if byte]
        yield {"records": records, "codec": "lz4", "payload": [["cut", size - head], ["add", len(frame) + 4], *changes]}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("batches", "clause"),
    [
        (list(damaged("zstd")), "LG-64"),
        (list(damaged("snappy")), "LG-64"),
        (list(damaged("lz4")) + list(empty()), "LG-74"),
        (list(claiming()), "LG-75"),
        (list(in_blocks(300)), "LG-76"),
    ],
    ids=["zstd", "snappy", "lz4", "checksums of lz4", "blocks of lz4"],
)
def test_leaders_make_the_same_of_damaged_streams(batches, clause, thorough):
    some = SIDES if thorough else SIDES[1::4]
    batches = batches[:: 1 if thorough else 3]
    with scratch_directory() as scratch:
        lockstep = LogLockstep([JvmLog(release) for release in some], scratch)
        for start, target in zip(range(0, len(batches), 20), cycle(("producer", "gzip")), strict=False):
            lockstep.begin()
            try:
                lockstep.perform(Operation("open_log", (SETTINGS | {"compression.type": target}, 0, 0, True, 0)))
                for batch in batches[start : start + 20]:
                    lockstep.perform(Operation("append_as_leader", ([batch], 0)))
                lockstep.perform(Operation("list_offsets", ([-1, -2, -3, 0, 1],)))
                lockstep.flush()
            finally:
                lockstep.end()
        assert lockstep.statistics.exercised(some[-1])[clause] > 10
