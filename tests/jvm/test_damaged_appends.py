"""Damaged zstd and snappy streams, as leaders on both sides of each change of rule take or refuse them (LG-64)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from conformance.implementations.jvm.log import JvmLog
from conformance.lockstep.levels.log import LogLockstep
from conformance.operations import Operation
from conformance.scratch import scratch_directory

pytestmark = pytest.mark.jvm

SIDES = ("2.4.1", "2.6.3", "2.7.2", "3.1.2", "3.5.2", "3.6.2", "4.4.0")
"""Leaders pass over keys and values from 2.6 on, field by field from 3.6; from 2.8 on a buffer is before zstd."""
OPEN = Operation("open_log", ({"segment.bytes": 1 << 20, "segment.index.bytes": 96}, 0, 0, True, 0))
FIRST = {"zstd": 4, "snappy": 17}
"""What comes before is a magic number; in snappy also a byte of a size by which Kafka up to 3.4 makes room."""
KINDS_OF_BLOCK = ([], [["set", 6, 0]], [["set", 6, 1]], [["set", 6, 2]])
"""Zstd's first block as it is, raw, raw and the last, or repeating one byte: then what is in the records is odd."""


def damaged(codec: str) -> Iterator[dict[str, Any]]:
    """Batches of small and large records, with one byte of their streams set, in zstd with another block's kind."""
    first = FIRST[codec]
    before = KINDS_OF_BLOCK if codec == "zstd" else KINDS_OF_BLOCK[:1]
    for size, kind, place, byte in product((5, 272, 2100), before, range(first, first + 14), (0, 2, 16, 200)):
        yield {"records": [[0, 0, size], [1, 0, size]], "codec": codec, "payload": [*kind, ["set", place, byte]]}
    for size, kind, cut in product((5, 272, 2100), before, (1, 3, 4, 9, 40)):
        yield {"records": [[0, 0, size]], "codec": codec, "payload": [*kind, ["cut", cut]]}
        yield {"records": [[0, 0, size]], "codec": codec, "payload": [*kind, ["add", cut]]}


@pytest.mark.parametrize("codec", ["zstd", "snappy"])
def test_leaders_make_the_same_of_damaged_streams(codec, thorough):
    some = SIDES if thorough else SIDES[1::4]
    with scratch_directory() as scratch:
        lockstep = LogLockstep([JvmLog(release) for release in some], scratch)
        batches = list(damaged(codec))[:: 1 if thorough else 3]
        for start in range(0, len(batches), 20):
            lockstep.begin()
            try:
                lockstep.perform(OPEN)
                for batch in batches[start : start + 20]:
                    lockstep.perform(Operation("append_as_leader", ([batch], 0)))
                lockstep.settle()
            finally:
                lockstep.end()
        assert lockstep.statistics.exercised(some[-1])["LG-64"] > 20
