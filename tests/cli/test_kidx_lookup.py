"""``kidx lookup`` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PARTITION = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"


@pytest.fixture
def lookup(in_process, tmp_path):
    """Runs a command line here; one that is given something to read, in a process of its own."""

    def run(*arguments, given=None):
        if given is None:
            return in_process("kidx", "lookup", *arguments, work=tmp_path)
        command = [sys.executable, "-c", "from kidx.cli import main; main()", "lookup", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, input=given)

    return run


def test_one_object_a_line_with_nulls_for_none(lookup):
    done = lookup(PARTITION, "--kafka", "3.9.2", "--targets", "-", "--json", given="1700000000777\n\n1900000000000\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"target": 1700000000777, "offset": 61, "timestamp": 1700000000870, "leader_epoch": 0},
        {"target": 1900000000000, "offset": None, "timestamp": None, "leader_epoch": None},
    ]


def test_an_offset_and_the_names_of_times(lookup):
    found = json.loads(lookup(PARTITION, "--kafka", "3.9.2", "--offset", 77, "--json").stdout)
    assert found == {"target": 77, "offset": 77, "timestamp": 1700000000891, "leader_epoch": 0}
    assert lookup(PARTITION, "--kafka", "3.9.2", "--time", "latest").stdout.startswith("-1: offset 158,")
    assert lookup(PARTITION, "--kafka", "3.9.2", "--time", "earliest").stdout.startswith("-2: offset 0,")


def test_the_way_is_told_from_segment_to_record(lookup):
    told = lookup(PARTITION, "--kafka", "3.9.2", "--timestamp", 1700000000777, "--explain").stdout
    order = ["segments", "time index", "offset index", "log ", "answer        offset 61", "bytes touched"]
    assert [told.index(part) for part in order] == sorted(told.index(part) for part in order)
    explained = json.loads(lookup(PARTITION, "--timestamp", 1700000000777, "--explain", "--json").stdout)
    steps = explained["explanation"]
    assert steps["time_index"]["found"] == {"timestamp": 1700000000600, "offset": 55}
    assert steps["offset_index"]["target"] == 55
    assert [batch["opened"] for batch in steps["batches"]] == [False] * 5 + [True]
    assert all(probe["half"] == "hot" for probe in steps["time_index"]["probes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PARTITION,), "one of --offset, --timestamp, --time and --targets is needed, not none"),
        ((PARTITION, "--offset", 1, "--time", "latest"), "is needed, not --offset and --time"),
        ((PARTITION, "--time", "soon"), "there is no time 'soon'; there are latest, earliest, max-timestamp"),
        ((PARTITION, "--time", "max-timestamp", "--kafka", "2.8.2"), "Kafka 2.8.2 has no time 'max-timestamp'"),
        ((PARTITION, "--targets", "/nowhere"), "/nowhere cannot be read"),
        ((PARTITION, "--timestamp", 1 << 63), "--timestamp is not a timestamp in milliseconds"),
        ((PARTITION.parent, "--time", "latest"), "is not the directory of one partition"),
        (("/nowhere", "--time", "latest"), "/nowhere is missing"),
        ((PARTITION, "--time", "latest", "--kafka", "1.0"), "unknown Kafka release '1.0'"),
    ],
)
def test_bad_input_is_one_line(arguments, message, lookup):
    done = lookup(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_line_that_is_no_number_is_named(lookup):
    done = lookup(PARTITION, "--targets", "-", given="1\nnoon\n")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "kidx: line 2 of - is not a timestamp in milliseconds: 'noon'\n",
    )
