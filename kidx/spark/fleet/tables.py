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
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("base_offset", pa.int64()),
    ("file", pa.string()),
    ("verdict", pa.string()),
    ("releases", pa.string()),
    ("why", pa.string()),
    ("entries", pa.int64()),
    ("size", pa.int64()),
    ("interval_least", pa.int64()),
    ("interval_most", pa.int64()),
    ("broker", pa.string()),
    ("modified", pa.timestamp("us", "UTC")),
])  # fmt: skip
PARTITIONS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
    ("broker", pa.string()),
    ("segments", pa.int64()),
    ("batches", pa.int64()),
    ("bytes_read", pa.int64()),
])  # fmt: skip
REPLICAS: Final = pa.schema([
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("path", pa.string()),
    ("other", pa.string()),
    ("offset", pa.int64()),
    ("expected", pa.string()),
    ("actual", pa.string()),
    ("message", pa.string()),
])  # fmt: skip
SUMMARY: Final = pa.schema([
    ("by", pa.string()),
    ("value", pa.string()),
    ("verdict", pa.string()),
    ("files", pa.int64()),
    ("bytes", pa.int64()),
])  # fmt: skip
LISTING: Final = pa.schema([
    ("place", pa.string()),  # the directory, as messages name it
    ("together", pa.string()),  # one name for all replicas of a partition, which are settled together
    ("raw", pa.binary()),  # path of the directory for system calls, or within the store
    ("root", pa.string()),  # the URL below which the directory was found; null on this machine
    ("resolved", pa.string()),
    ("number", pa.int64()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("state", pa.string()),
    ("broker", pa.string()),
    ("cluster", pa.string()),  # the id of the broker's cluster; empty if it is not known
    ("clean", pa.bool_()),
    ("complete", pa.bool_()),
    ("start_offset", pa.int64()),
    ("recovery_point", pa.int64()),
    ("cleaned_to", pa.int64()),
    ("high_watermark", pa.int64()),
    ("epochs", pa.bool_()),
    ("orphans", pa.list_(pa.binary())),
    ("leftovers", pa.list_(pa.binary())),
    ("modified", pa.map_(pa.string(), pa.int64())),  # microseconds, by file name
    ("segments", pa.list_(pa.struct([
        ("base_offset", pa.int64()),
        ("next_base_offset", pa.int64()),
        ("log", pa.string()),
        ("existing", pa.list_(pa.string())),
        ("bytes", pa.int64()),
        ("key", pa.string()),
    ]))),
    ("problem", pa.string()),  # why the path could not be read; the other columns are null then
    ("clause", pa.string()),
    ("left_out", pa.bool_()),  # true if the path was skipped and this is not a fault
])  # fmt: skip
VERDICTS: Final = pa.schema([
    ("together", pa.string()),
    ("key", pa.string()),
    ("verdict", pa.string()),  # JSON: the fields of :class:`kidx.verify.SegmentVerdict`
])  # fmt: skip
SETTLED: Final = pa.schema([
    *PARTITIONS,
    ("files", pa.list_(pa.struct(list(FILES)))),
    ("findings", pa.list_(pa.struct(list(FINDINGS)))),
    ("differences", pa.list_(pa.struct(list(REPLICAS)))),
    ("counts", pa.list_(pa.struct(list(SUMMARY)))),
])  # fmt: skip
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
