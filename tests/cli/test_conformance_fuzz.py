"""``conformance fuzz`` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MINE = "python:tests.adapters.python_index:open_index"


def fuzz(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from conformance.cli import main; main()", "fuzz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_somebodys_index_is_fuzzed_and_the_corpus_kept(tmp_path):
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
        (("-i", "broker"), "a broker opens no file it is handed"),
        (
            ("--corpus", "/dev/null/x", "-i", MINE),
            "the corpus /dev/null/x/offset cannot be used",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    done = fuzz(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
