"""End-to-end tests of ``kidx lookup``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CREATE_TIME = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"

PARTITION = Path(__file__).parents[1] / "golden" / "3.9.2" / "create-time-0"


@pytest.fixture
def lookup(in_process, tmp_path):
    """Run a command line in this process; one with input runs in a child process."""

    def run(*arguments, given=None):
        if given is None:
            return in_process("kidx", "lookup", *arguments, work=tmp_path)
        command = [sys.executable, "-c", "from kidx.cli import main; main()", "lookup", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, input=given)

    return run


def test_one_object_per_line_with_nulls_for_none(lookup):
    done = lookup(PARTITION, "--kafka", "3.9.2", "--targets", "-", "--json", given="1700000000777\n\n1900000000000\n")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"target": 1700000000777, "offset": 61, "timestamp": 1700000000870, "leader_epoch": 0},
        {"target": 1900000000000, "offset": None, "timestamp": None, "leader_epoch": None},
    ]


def test_a_file_and_a_disk_of_one_partition_select_it(tmp_path, in_process):
    """As verify, repair and dump take paths."""
    shutil.copytree(PARTITION, tmp_path / "disk" / PARTITION.name)
    log = next((tmp_path / "disk" / PARTITION.name).glob("*.log"))
    told = [
        in_process("kidx", "lookup", path, "--offset", 7, work=work)
        for path, work in ((PARTITION, tmp_path), (log, tmp_path), (log.name, log.parent), ("disk", tmp_path))
    ]
    assert {(done.returncode, done.stdout) for done in told} == {(0, told[0].stdout)}
    assert told[0].stdout.startswith("7: offset 7, ")


def test_an_offset_and_the_names_of_times(lookup):
    found = json.loads(lookup(PARTITION, "--kafka", "3.9.2", "--offset", 77, "--json").stdout)
    assert found == {"target": 77, "offset": 77, "timestamp": 1700000000891, "leader_epoch": 0}
    assert lookup(PARTITION, "--kafka", "3.9.2", "--time", "latest").stdout.startswith("-1: offset 158,")
    assert lookup(PARTITION, "--kafka", "3.9.2", "--time", "earliest").stdout.startswith("-2: offset 0,")


def test_the_steps_from_segment_to_record_are_shown(lookup):
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
        ((PARTITION,), "exactly one of --offset, --time and --targets is required, not none"),
        ((PARTITION, "--offset", 1, "--time", "latest"), "is required, not --offset and --time"),
        ((PARTITION, "--time", "soon"), "unknown time 'soon'; choose from latest, earliest, max-timestamp"),
        (
            (PARTITION, "--time", "max-timestamp", "--kafka", "2.8.2"),
            "Kafka 2.8.2 does not support the time 'max-timestamp'",
        ),
        ((PARTITION, "--targets", "/nowhere"), "cannot read /nowhere: "),
        ((PARTITION, "--timestamp", 1 << 63), "--timestamp is not a timestamp in milliseconds"),
        ((PARTITION.parent, "--time", "latest"), "contains 8 partitions; choose one, such as"),
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


def test_a_time_may_be_a_date(kidx_lookup_golden):
    by_number = kidx_lookup_golden("--timestamp", "1700000000060")
    for date in ("2023-11-14T22:13:20.060Z", "2023-11-14T23:13:20.060+01:00", "2023-11-14 22:13:20.0600"):
        assert kidx_lookup_golden("--timestamp", date).stdout == by_number.stdout
    assert by_number.returncode == 0
    day = kidx_lookup_golden("--timestamp", "2023-11-14")
    assert day.stdout == kidx_lookup_golden("--time", "1699920000000").stdout
    wrong = kidx_lookup_golden("--timestamp", "yesterday")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--timestamp is not a timestamp in milliseconds, nor a date such as 2026-11-22T10:30Z" in wrong.stderr


def test_an_index_that_points_past_its_log_is_a_warning_and_exit_code_1(tmp_path, in_process):
    partition = shutil.copytree(CREATE_TIME, tmp_path / "create-time-0")
    log = min(partition.glob("*.log"))
    words = ("lookup", partition, "--kafka", "3.9.2", "--offset", 2)
    assert in_process("kidx", *words, work=tmp_path).returncode == 0
    index = log.with_suffix(".index")
    data = bytearray(index.read_bytes())
    data[-4:] = log.stat().st_size.to_bytes(4, "big")
    index.write_bytes(data)
    told = in_process("kidx", *words, work=tmp_path)
    assert told.returncode == 1
    assert told.stdout
    assert told.stderr == (f"kidx: warning: {index} points past the end of its log; run kidx verify {partition}\n")
    later = in_process("kidx", "lookup", partition, "--kafka", "3.9.2", "--time", "latest", work=tmp_path)
    assert (later.returncode, later.stderr) == (0, "")


@pytest.fixture
def kidx_lookup_golden(in_process, tmp_path):
    return lambda *words: in_process("kidx", "lookup", CREATE_TIME, "--kafka", "3.9.2", *words, work=tmp_path)
