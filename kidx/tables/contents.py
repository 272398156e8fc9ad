"""The tables that ``kafka_segments`` has: their columns, by content.

``records`` has the columns and types of Spark's Kafka source; the option ``includeHeaders`` adds ``headers``. In all
others the first four columns say where a row comes from: ``path`` is the file that it was read from.

Times are Spark timestamps; a stored number of milliseconds that is too large for one is null. What is *as stored* is
the number in the file, whatever it means.
"""

from __future__ import annotations

from typing import Final

_WHERE: Final = "path string, topic string, partition int, segment bigint"

HEADERS: Final = "headers array<struct<key:string,value:binary>>"

CONTENTS: Final[dict[str, str]] = {
    # One row a record that a consumer would get: no control records, none before the log's start.
    "records": (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    ),
    # One row a batch, control batches too. The last row of a damaged segment has only position and error.
    "batches": (
        f"{_WHERE}, position bigint, size int, magic int, base_offset bigint, last_offset bigint, count int,"
        " timestamp_type int, max_timestamp timestamp, compression string, producer_id bigint, producer_epoch int,"
        " base_sequence int, last_sequence int, leader_epoch int, transactional boolean, control boolean, crc bigint,"
        " valid boolean, error string"
    ),
    # One row a used slot; offsets absolute, positions as stored.
    "offset_index": f"{_WHERE}, slot int, offset bigint, position int",
    # One row a used slot; timestamp_ms as stored.
    "time_index": f"{_WHERE}, slot int, timestamp timestamp, timestamp_ms bigint, offset bigint",
    # One row an aborted transaction.
    "txn_index": (
        f"{_WHERE}, slot int, version int, producer_id bigint, first_offset bigint, last_offset bigint,"
        " last_stable_offset bigint"
    ),
    # One row a segment, from the listing and the index files: no log is read. Sizes in bytes, null: no file.
    "segments": (
        f"{_WHERE}, next_segment bigint, size bigint, modified timestamp, offset_index_size bigint,"
        " time_index_size bigint, txn_index_size bigint, offset_entries int, time_entries int, aborted int,"
        " max_indexed_timestamp timestamp"
    ),
}


def columns_of(content: str, *, headers: bool = False) -> str:
    """The columns of a content, as Spark's DDL."""
    return CONTENTS[content] + (f", {HEADERS}" if headers else "")
