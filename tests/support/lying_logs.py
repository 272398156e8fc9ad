"""Logs of any batches whose headers may state any largest timestamp, with the indexes that a recovery makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kidx import rebuild as rebuilding
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    SimpleRecord,
    TimestampType,
    build_batch,
    end_transaction_marker,
)

KINDS = ("plain", "zstd", "stamped", "single", "gap", "transaction", "abort", "v1", "wrapper", "stamped wrapper", "v0")
BEYOND = 4_600_000_000_000_000_000
"""Milliseconds that are too many for a column."""

TIMES = st.integers(-1, 40) | st.sampled_from([-1, 0, BEYOND])
LIES = st.none() | st.sampled_from([-1, 0, 1, 20, 1000, BEYOND])
BATCHES = st.tuples(st.sampled_from(KINDS), st.lists(TIMES, min_size=1, max_size=6), LIES)
SEGMENTS = st.lists(st.lists(BATCHES, min_size=1, max_size=8), min_size=1, max_size=3)


def batch_of(kind: str, times: list[int], lie: int | None, base: int) -> tuple[bytes, int]:
    """Return the bytes of a batch, and the offset after it."""
    records = [SimpleRecord(time, b"k%d" % time, b"v" * 20) for time in times]
    more: dict[str, Any] = {"base_offset": base, "max_timestamp": lie}
    end = base + len(records)
    if kind == "abort":
        marker = EndTransactionMarker(ControlRecordType.ABORT, 0)
        return end_transaction_marker(marker, producer_id=1, producer_epoch=0, offset=base), base + 1
    if kind == "gap":
        return build_batch(records, **more, last_offset=end + 4), end + 5
    if kind in ("v0", "v1"):
        return build_batch(records, base_offset=base, magic=int(kind[1])), end
    if kind == "single":
        return build_batch(records[:1], **more), base + 1
    if kind == "transaction":
        more |= {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    if "stamped" in kind:
        more |= {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": times[0], "max_timestamp": None}
    if "wrapper" in kind:
        more |= {"magic": 1, "codec": Codec.GZIP}
    elif kind == "zstd":
        more |= {"codec": Codec.ZSTD}
    return build_batch(records, **more), end


def write_log(directory: Path, segments: list[list[tuple[str, list[int], int | None]]]) -> None:
    """Write a partition."""
    directory.mkdir(parents=True)
    base = 0
    for batches in segments:
        log = directory / f"{base:020d}.log"
        pieces = []
        for batch in batches:
            data, base = batch_of(*batch, base)
            pieces.append(data)
        log.write_bytes(b"".join(pieces))
        made = rebuilding.rebuild(log, directory / "made", index_interval_bytes=100)
        for path in filter(None, (made.offset_index, made.time_index, made.txn_index)):
            path.replace(directory / path.name)
    shutil.rmtree(directory / "made")
