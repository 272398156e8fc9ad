"""The examples of the documentation for Spark run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import the_block

from kidx.records import SimpleRecord, build_batch

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_querying_page_runs(spark, capsys):
    block = the_block("python", page="docs/querying.md", containing="kidx.spark")
    golden = str(ROOT / "tests" / "golden" / "3.9.2")
    block = block.replace("/var/lib/kafka/data", golden).replace("orders", "create-time")
    names = {}
    exec(block, names)  # noqa: S102
    assert names["spark"].sparkContext is spark.sparkContext
    printed = capsys.readouterr().out
    assert "|partition|count|" in printed
    assert re.search(r"\| +hour\|count\|", printed)


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
