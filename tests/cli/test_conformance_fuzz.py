"""End-to-end tests of ``conformance fuzz``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

ADAPTER = Path(__file__).parents[1] / "adapters" / "python_index.py"
MINE = "python:python_index:open_index"


@pytest.fixture
def fuzz(typed):
    shutil.copy(ADAPTER, typed.work)
    return lambda *arguments: typed("fuzz", *arguments)


@pytest.mark.thorough
def test_a_users_index_is_fuzzed_and_the_corpus_saved(tmp_path, fuzz):
    options = ("-i", MINE, "--format", "txn", "--max-examples", 50, "--corpus", tmp_path / "corpus")
    done = fuzz(*options, "--report", tmp_path / "report", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads(done.stdout)
    assert result["findings"] == {}
    assert sum(result["flips"].values()) == 68 * 8
    assert len(list((tmp_path / "corpus" / "txn").iterdir())) == result["new"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "snapshot"), "Invalid value for '--format'"),
        (("--kafka", "1.1"), "Kafka 1.1 is not locked"),
        (("-i", "broker"), "a broker cannot open a given file"),
        (
            ("--corpus", "/dev/null/x", "-i", MINE),
            "cannot use the corpus /dev/null/x/offset",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, message, fuzz):
    done = fuzz(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
