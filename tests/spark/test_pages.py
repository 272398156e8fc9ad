"""The examples of the documentation for Spark run."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import deltalake
import pytest
from pages import the_block
from streaming_query import begin

from kidx.layout import RECORD_BATCH
from kidx.records import SimpleRecord, build_batch
from kidx.records.builder import write_checksum

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_querying_page_runs(spark, capsys, tmp_path):
    block = the_block("python", page="docs/querying.md", containing="kidx.spark")
    golden = str(ROOT / "tests" / "golden" / "3.9.2")
    block = block.replace("/var/lib/kafka/data", golden).replace("orders", "create-time")
    names = {}
    exec(block, names)  # noqa: S102
    assert names["spark"].sparkContext is spark.sparkContext
    printed = capsys.readouterr().out
    assert "|partition|count|" in printed
    assert re.search(r"\| +hour\|count\|", printed)
    hour = the_block("python", page="docs/querying.md", containing="hour.write")
    exec(hour.replace("hour.parquet", str(tmp_path / "hour.parquet")), names)  # noqa: S102
    assert spark.read.parquet(str(tmp_path / "hour.parquet")).count() == names["hour"].count() > 0


def test_the_example_with_json_separates_what_is_not_json(spark, tmp_path, capsys):
    (log := tmp_path / "orders-0" / f"{0:020d}.log").parent.mkdir()
    values = (b'{"id": 1, "price": 2.5}', b'{"id": 1, "price": 4}', b'{"id": "x"}', b"\xff", None, b'{"id": 2}')
    log.write_bytes(build_batch([SimpleRecord(-1, None, value) for value in values]))
    names = {"records": spark.read.format("kafka_segments").load(str(tmp_path))}
    exec(the_block("python", page="docs/querying.md", containing="from_json"), names)  # noqa: S102
    decoded = names["decoded"].sort("offset").select("id", "price").collect()
    assert [tuple(row) for row in decoded] == [(1, 2.5), (1, 4.0), (None, None), (None, None), (None, None), (2, None)]
    assert [row.offset for row in names["decoded"].where("broken IS NOT NULL").collect()] == [2, 3]
    assert re.search(r"\| +1\| +6\.5\|", capsys.readouterr().out)


def test_the_example_of_docs_with_metrics_runs(spark, tmp_path, capsys):
    text = (ROOT / "docs" / "spark.md").read_text("utf-8")
    (block,) = (block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "metrics" in block)
    stream = spark.read.format("kafka_segments").options(pushDown=True, metrics=str(tmp_path / "metrics"))
    rows = stream.load(str(ROOT / "tests" / "golden" / "3.9.2")).where("offset > 20")
    assert rows.count()
    block, count = re.subn(r'json\(".*?"\)', f'json("{tmp_path / "metrics"}")', block)
    assert count == 1
    exec(block, {"spark": spark})  # noqa: S102
    assert "offset > 20" in capsys.readouterr().out


TIMES = (-62_135_596_800_000, -1, 1_700_000_000_000, 9_223_372_036_854_774, 1 << 62)
"""Times of records: the year 1, before 1970, the last one that Spark has, and one that it does not have."""
MICROSECONDS = [*(1000 * time for time in TIMES[:-1]), None]


def write_orders(root, values, first=0):
    """Write records with all times, headers, and null keys in turn, each in its own batch."""
    (log := root / "orders-0" / f"{first:020d}.log").parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(batch_at(first + n, TIMES[n % len(TIMES)], value) for n, value in enumerate(values)))


def batch_at(offset, time, value):
    """Return a batch of one record, whose time no builder of a client accepts."""
    headers = (("a", b"1"), ("a", None))
    batch = bytearray(build_batch([SimpleRecord(0, b"k" if offset % 2 else None, value, headers)], base_offset=offset))
    for name in ("base_timestamp", "max_timestamp"):
        RECORD_BATCH.set(batch, name, time)
    write_checksum(batch)
    return bytes(batch)


@pytest.mark.thorough
def test_the_example_with_delta_adds_each_record_once(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = the_block("python", page="docs/querying.md", containing="deltalake")
    block = block.replace("/var/lib/kafka/data", str(tmp_path)).replace('"checkpoint"', f'"{tmp_path}/checkpoint"')
    block, again = re.subn(r"(\S+)\.start\(\)\.awaitTermination\(\)", r'begin(\1, "awaitTermination")', block)
    assert again == 1
    write_orders(tmp_path, [b"v", None, b"", b"v", b"v"])
    exec(block, {"spark": spark, "begin": begin})  # noqa: S102
    shutil.rmtree(committed := tmp_path / "checkpoint" / "commits")  # as if the driver had died after the merge
    write_orders(tmp_path, [b"w"] * 5, first=5)
    exec(block, {"spark": spark, "begin": begin})  # noqa: S102
    assert len(list(committed.glob("[0-9]*"))) == 2

    table = deltalake.DeltaTable("records").to_pyarrow_table().sort_by("offset")
    assert table["offset"].to_pylist() == list(range(10))
    assert table["timestamp"].cast("int64").to_pylist() == 2 * MICROSECONDS
    assert table["key"].to_pylist() == [None, b"k"] * 5
    assert table["value"].to_pylist() == [b"v", None, b"", b"v", b"v", *[b"w"] * 5]
    assert table["headers"].to_pylist() == [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}]] * 10


def decode(spark, tmp_path, containing, values):
    """Run a block of the page for some values; return its rows without partition and offset, by offset."""
    write_orders(tmp_path, values)
    names = {"records": spark.read.format("kafka_segments").load(str(tmp_path))}
    exec(the_block("python", page="docs/querying.md", containing=containing), names)  # noqa: S102
    rows = names["decoded"].selectExpr("offset", "unix_micros(timestamp) as at", "read.*").sort("offset").collect()
    assert [row["at"] for row in rows] == [MICROSECONDS[n % len(TIMES)] for n in range(len(values))]
    return [(row["id"], row["price"], row["broken"] and row["broken"].partition("(")[0]) for row in rows]


@pytest.mark.thorough
def test_the_example_with_avro_separates_what_it_cannot_decode(spark, tmp_path):
    def framed(schema, *fields):
        return b"\0" + schema.to_bytes(4, "big") + b"".join(fields)

    price = b"\2" + struct.pack("<d", 2.5)
    values = (
        framed(8, b"\2", price), framed(8, b"\1", b"\0"), framed(7, b"\6"), None,
        framed(8, b"\2", price, b"\0"), framed(8, b"\2", price[:-1]), b"\1" + framed(8, b"\2", price)[1:],
        framed(9, b"\2"), b"\0\0", b"",
    )  # fmt: skip
    nothing = [(None, None, f"{name}Error") for name in ("Value", "EOF", "Value", "Key", "")]
    assert decode(spark, tmp_path, "fastavro", values) == [
        (1, 2.5, None), (-1, None, None), (3, None, None), (None, None, None),
        *[(*row[:2], row[2] if row[2] != "Error" else "error") for row in [*nothing, nothing[-1]]],
    ]  # fmt: skip


@pytest.mark.thorough
def test_the_example_with_protobuf_separates_what_it_cannot_decode(spark, tmp_path):
    from google.protobuf import descriptor_pb2

    schema = descriptor_pb2.FileDescriptorProto(name="orders.proto", syntax="proto3")
    order = schema.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate((("id", kinds.TYPE_INT64), ("price", kinds.TYPE_DOUBLE)), 1):
        order.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    module = tmp_path / "orders_pb2.py"  # what protoc makes
    module.write_text(
        "from google.protobuf import descriptor_pool, message_factory\n"
        f"file = descriptor_pool.Default().AddSerializedFile({schema.SerializeToString()!r})\n"
        "Order = message_factory.GetMessageClass(file.message_types_by_name['Order'])\n",
        "utf-8",
    )
    spark.sparkContext.addPyFile(str(module))
    head, price = b"\0\0\0\0\x08\0", b"\x11" + struct.pack("<d", 2.5)
    values = (
        head + b"\x08\1" + price, head + b"\x08" + b"\xff" * 9 + b"\1", head, None,
        head + price[:-1], b"\1" + head[1:] + price, head[:5] + b"\2" + price, head[:3], b"",
    )  # fmt: skip
    assert decode(spark, tmp_path, "orders_pb2", values) == [
        (1, 2.5, None), (-1, 0.0, None), (0, 0.0, None), (None, None, None),
        (None, None, "DecodeError"), *[(None, None, "ValueError")] * 2, *[(None, None, "error")] * 2,
    ]  # fmt: skip
