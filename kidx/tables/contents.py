"""The tables of ``kafka_segments``: their columns, by content.

``records`` has the columns and types of Spark's Kafka source; the option ``includeHeaders`` adds ``headers``. In every
other content the first four columns locate the row: ``path`` is the file that it was read from.

Times are Spark timestamps; a stored number of milliseconds that is too large for one is null. *As stored* means the
number in the file, without interpretation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kidx.errors import ToolError

_WHERE: Final = "path string, topic string, partition int, segment bigint"

HEADERS: Final = "headers array<struct<key:string,value:binary>>"

CONTENTS: Final[dict[str, str]] = {
    # One row per record that a consumer would get: no control records, and none before the log start offset.
    "records": (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    ),
    # One row per batch, control batches included. The last row of a corrupt segment has only position and error.
    "batches": (
        f"{_WHERE}, position bigint, size int, magic int, base_offset bigint, last_offset bigint, count int,"
        " timestamp_type int, max_timestamp timestamp, compression string, producer_id bigint, producer_epoch int,"
        " base_sequence int, last_sequence int, leader_epoch int, transactional boolean, control boolean, crc bigint,"
        " valid boolean, error string"
    ),
    # One row per used slot; offsets are absolute, positions as stored.
    "offset_index": f"{_WHERE}, slot int, offset bigint, position int",
    # One row per used slot; timestamp_ms as stored.
    "time_index": f"{_WHERE}, slot int, timestamp timestamp, timestamp_ms bigint, offset bigint",
    # One row per aborted transaction.
    "txn_index": (
        f"{_WHERE}, slot int, version int, producer_id bigint, first_offset bigint, last_offset bigint,"
        " last_stable_offset bigint"
    ),
    # One row per segment, from the listing and the index files: no log is read. Sizes are in bytes; null means no file.
    # topic_id is null without a partition.metadata file, which brokers before 2.8 do not write.
    "segments": (
        f"{_WHERE}, next_segment bigint, size bigint, modified timestamp, offset_index_size bigint,"
        " time_index_size bigint, txn_index_size bigint, offset_entries int, time_entries int, aborted int,"
        " max_indexed_timestamp timestamp, topic_id string"
    ),
}


def columns_of(content: str, names: Iterable[str] | None = None, *, headers: bool = False) -> str:
    """Return the columns of a content, or some of them in the given order, as Spark's DDL.

    Raises:
        ToolError: the content has no such column.
    """
    ddl = CONTENTS[content] + (f", {HEADERS}" if headers else "")
    if names is None:
        return ddl
    known = {column.split(" ", 1)[0]: column for column in ddl.split(", ")}
    for name in (names := list(names)):
        if name not in known:
            raise ToolError(f"unknown column {name!r} of {content}; choose from {', '.join(known)}")
    return ", ".join(known[name] for name in names)
