"""What the README says about Spark runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_readme_runs(spark, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)
    block = next(block for block in blocks if "kidx.spark" in block)
    golden = str(ROOT / "tests" / "golden" / "3.9.2")
    block = block.replace("/var/lib/kafka/data", golden).replace("orders", "create-time")
    names = {}
    exec(block, names)  # noqa: S102
    assert names["spark"].sparkContext is spark.sparkContext
    assert "|partition|count|" in capsys.readouterr().out
