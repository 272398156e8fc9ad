"""Tables of a fleet's verification under its directory or URL, for any number of runs.

===================================== ==============================================================================
``findings/run_id=…/topic=…``         the findings, with the same rows as ``kidx verify`` writes
``files/run_id=…/topic=…``            a verdict on every file, with broker, size and time
``partitions/run_id=…``               counts of every partition
``replicas/run_id=…``                 differences between replicas of a partition (:mod:`kidx.spark.fleet.replicas`)
``summary/run_id=…``                  counts by verdict, topic, release, broker and age (``by``, ``value``)
``listing/run_id=…``                  the partitions and segments that were found, as the last attempt listed them
``verdicts/run_id=…``                 a verdict on every segment, by a key of its inputs; later attempts add rows
``runs/…``                            options of a run, and its report
===================================== ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kidx.findings import COLUMNS, Finding, arrow_schema, in_order
from kidx.printable import encodable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FINDINGS: Final = pa.schema([field.with_nullable(True) for field in arrow_schema()])
FILES: Final = pa.schema([
    ("path", pa.string()),
    ("topic", pa.string()),  # null outside a partition directory, like the partition
    ("partition", pa.int32()),
    ("base_offset", pa.int64()),  # the number in the file's name; null without one
    ("file", pa.string()),  # the file's name
    ("verdict", pa.string()),
    ("releases", pa.string()),  # the releases that write this content, such as 2.4.0..3.6.2
    ("why", pa.string()),
    ("entries", pa.int64()),  # number of index entries; null for other files
    ("size", pa.int64()),  # bytes
    ("interval_least", pa.int64()),  # bounds of log.index.interval.bytes that explain the index; null if unknown
    ("interval_most", pa.int64()),
    ("broker", pa.string()),
    ("modified", pa.timestamp("us", "UTC")),
])  # fmt: skip
PARTITIONS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
    ("broker", pa.string()),
    ("segments", pa.int64()),  # number of segments
    ("batches", pa.int64()),  # number of record batches in all segments
    ("bytes_read", pa.int64()),
    ("topic_id", pa.string()),  # the topic's id in partition.metadata; null without one
])  # fmt: skip
REPLICAS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),  # directory of the replica that differs
    ("other", pa.string()),  # directory of the replica that it is compared with
    ("offset", pa.int64()),  # offset of the first difference
    ("expected", pa.string()),  # what the other replica has
    ("actual", pa.string()),
    ("message", pa.string()),
])  # fmt: skip
SUMMARY: Final = pa.schema([
    ("by", pa.string()),  # the property that files are grouped by, such as topic or release
    ("value", pa.string()),  # its value
    ("verdict", pa.string()),
    ("files", pa.int64()),  # number of files with this value and verdict
    ("bytes", pa.int64()),
])  # fmt: skip
LISTING: Final = pa.schema([
    ("place", pa.string()),  # the directory, as messages name it
    ("together", pa.string()),  # one name for all replicas of a partition; one task verifies them together
    ("raw", pa.binary()),  # path of the directory for system calls, or within the store
    ("root", pa.string()),  # the URL below which the directory was found; null on this machine
    ("resolved", pa.string()),  # the path without symbolic links: a directory that was given twice is verified once
    ("number", pa.int64()),  # number of the given path that contains the directory, from 0 in the order of the command
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("state", pa.string()),  # "delete", "future" or "stray" if the directory's name ends so; else empty
    ("broker", pa.string()),  # the broker's id, or its log directory if the id is not known
    ("cluster", pa.string()),  # the id of the broker's cluster; empty if it is not known
    ("clean", pa.bool_()),  # true if the broker shut down cleanly, so that no file is being written
    ("complete", pa.bool_()),  # false if single files of the directory were given, not the directory
    ("start_offset", pa.int64()),  # from the checkpoint files of the log directory, like the next three; null without
    ("recovery_point", pa.int64()),
    ("cleaned_to", pa.int64()),  # offset below which compaction has cleaned the log
    ("high_watermark", pa.int64()),
    ("earlier", pa.map_(pa.string(), pa.int64())),  # offsets of an earlier topic of the name, by checkpoint
    ("may_have_gaps", pa.bool_()),  # true if the topic is compacted, and no checkpoint says how far
    ("is_tiered", pa.bool_()),  # true if the topic has remote storage
    ("topic_id", pa.string()),  # as in the partitions
    ("epochs", pa.bool_()),  # true if a leader-epoch-checkpoint exists
    ("orphans", pa.list_(pa.binary())),  # names of index files without a .log
    ("leftovers", pa.list_(pa.binary())),  # names of files that end in .deleted, .cleaned or .swap
    ("modified", pa.map_(pa.string(), pa.int64())),  # microseconds since 1970, by file name
    ("segments", pa.list_(pa.struct([
        ("base_offset", pa.int64()),
        ("next_base_offset", pa.int64()),  # of the following segment; null for the last one
        ("log", pa.string()),  # name of the .log file
        ("existing", pa.list_(pa.string())),  # suffixes of the files that exist
        ("bytes", pa.int64()),  # estimated cost of its verification, in bytes
        ("key", pa.string()),  # hash of all inputs of its verdict
    ]))),
    ("problem", pa.string()),  # why the path could not be read; the other columns are null then
    ("clause", pa.string()),  # id of the clause that requires a readable path
    ("left_out", pa.bool_()),  # true if the path was skipped and this is not a fault
])  # fmt: skip
VERDICTS: Final = pa.schema([
    ("together", pa.string()),  # as in the listing
    ("key", pa.string()),  # as in the segments of the listing
    ("verdict", pa.string()),  # JSON: the fields of :class:`kidx.verify.SegmentVerdict`
])  # fmt: skip
SETTLED: Final = pa.schema([
    *PARTITIONS,
    ("files", pa.list_(pa.struct(list(FILES)))),
    ("findings", pa.list_(pa.struct(list(FINDINGS)))),
    ("differences", pa.list_(pa.struct(list(REPLICAS)))),
    ("counts", pa.list_(pa.struct(list(SUMMARY)))),
])  # fmt: skip
"""Rows with everything about one partition, from which the tables above are written; not written itself."""
TABLES: Final = {
    "findings": FINDINGS,
    "files": FILES,
    "partitions": PARTITIONS,
    "replicas": REPLICAS,
    "summary": SUMMARY,
    "listing": LISTING,
    "verdicts": VERDICTS,
}
_DDL: Final = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.timestamp("us", "UTC"): "timestamp",
}


def ddl(schema: Iterable[pa.Field]) -> str:
    """Return a schema as Spark's DDL."""
    return ", ".join(f"`{field.name}` {_type(field.type)}" for field in schema)


def _type(arrow: pa.DataType) -> str:
    if pa.types.is_map(arrow):
        return f"map<{_type(arrow.key_type)}, {_type(arrow.item_type)}>"
    if pa.types.is_list(arrow):
        return f"array<{_type(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return f"struct<{', '.join(f'`{field.name}`: {_type(field.type)}' for field in arrow)}>"
    return _DDL[arrow]


def to_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as an Arrow table; file names that are not UTF-8 have their bytes escaped."""
    try:
        return pa.Table.from_pylist(rows, schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([_escaped(row) for row in rows], schema)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {name: _escaped(each) for name, each in value.items()}
    return type(value)(_escaped(each) for each in value) if isinstance(value, list | tuple) else value


def findings_of(frame: DataFrame) -> list[Finding]:
    """Return the findings in a table, in the order of ``kidx verify``."""
    return in_order(Finding(**row.asDict()) for row in frame.select(*COLUMNS).collect())
