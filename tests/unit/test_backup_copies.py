"""``kidx verify --backup``: the printed commands, run in a shell, make a copy that verifies as they said."""

import doctest
import hashlib
import json
import re
import shutil
import subprocess

import pytest
from pages import the_block
from startups import ID, RELEASE, fill, flip, log, partition_record, stop_cleanly, write_metadata
from startups import write_offsets as write

from kidx.records import build_batch

_STEP = re.compile(r"^  ((?:mkdir|sed|printf) .*  # .*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    directory = tmp_path_factory.mktemp("filled")
    for number in range(2):
        fill(directory / f"orders-{number}", segments=2)
    return directory


@pytest.fixture
def data(filled, tmp_path):
    data = stop_cleanly(filled, tmp_path / "my copy" / "data", {0: 24, 1: 24})
    write(data / "log-start-offset-checkpoint", {0: 0, 1: 0})
    write(data / "replication-offset-checkpoint", {0: 24, 1: 24})
    (data / ".lock").touch()
    return data


@pytest.fixture
def verify(in_process, tmp_path):
    def call(*words):
        return in_process("kidx", "verify", *words, "--kafka", RELEASE, "--backup", "-q", work=tmp_path)

    return call


def contents(directory):
    return {
        str(path.relative_to(directory)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def run(line):
    subprocess.run(["sh", "-c", line], check=True, capture_output=True)


def test_a_sound_copy_needs_nothing(data, verify):
    before = contents(data.parent)
    done = verify(data)
    assert done.returncode == 0
    assert done.stdout.endswith("USABLE: 2 partitions usable up to the end of their logs\n")
    assert not _STEP.search(done.stdout)
    assert contents(data.parent) == before


def torn_with_a_mark(data):
    path = data / "orders-0" / log(12)
    path.write_bytes(path.read_bytes() + build_batch([(1, None, b"x")], base_offset=24)[:-5])


def checkpoints_past_the_end(data):
    (data / ".kafka_cleanshutdown").unlink()
    write(data / "recovery-point-offset-checkpoint", {0: 60, 1: 24})
    write(data / "replication-offset-checkpoint", {0: 70, 1: 24})


def log_start_past_the_end(data):
    write(data / "log-start-offset-checkpoint", {0: 999, 1: 0})


def index_newer_than_its_log(data):
    """Give the offset index of a finished segment an entry past the end of its log."""
    path = (data / "orders-0" / log(0)).with_suffix(".index")
    path.write_bytes(path.read_bytes()[:-4] + (65_000).to_bytes(4, "big"))


def snapshot_past_the_end(data):
    shutil.copy(data / "orders-0" / f"{24:020}.snapshot", data / "orders-0" / f"{60:020}.snapshot")


def unreadable_checkpoint(data):
    (data / "replication-offset-checkpoint").write_text("0\n2\norders 0 24\n")


def half_copied_result_of_a_compaction(data):
    path = data / "orders-0" / log(12)
    path.with_suffix(".log.swap").write_bytes(path.read_bytes()[:700])


DAMAGES = {
    torn_with_a_mark: ([".kafka_cleanshutdown"], "USABLE AFTER THE STEPS", [24]),
    checkpoints_past_the_end: (["orders 0 24", "orders 0 24"], "RECORDS LOST", [24]),
    log_start_past_the_end: (["log-start-offset"], "USABLE AFTER THE STEPS", []),
    index_newer_than_its_log: (["0.index"], "USABLE AFTER THE STEPS", []),
    snapshot_past_the_end: (["60.snapshot"], "USABLE AFTER THE STEPS", []),
    half_copied_result_of_a_compaction: (["12.log.swap"], "USABLE AFTER THE STEPS", []),
    unreadable_checkpoint: (["replication-offset-checkpoint"], "USABLE AFTER THE STEPS", []),
}


@pytest.mark.parametrize(("damage", "expected"), DAMAGES.items(), ids=[damage.__name__ for damage in DAMAGES])
def test_the_printed_commands_make_a_copy_that_verifies_as_they_say(damage, expected, data, verify):
    named, verdict, ends = expected
    damage(data)
    before = contents(data.parent)
    done = verify(data)
    steps = _STEP.findall(done.stdout)
    assert contents(data.parent) == before
    assert done.returncode == 1
    assert len(steps) == len(named)
    assert all(name in step for name, step in zip(named, steps, strict=True))
    assert done.stdout.splitlines()[-1].startswith(verdict)
    assert [int(end) for end in re.findall(r"orders-\d'?: usable up to offset (\d+)", done.stdout)] == ends
    (after,) = re.findall(r"^after (?:it|them): (.*)$", done.stdout, re.MULTILINE)
    for step in steps:
        run(step)
    again = verify(data)
    assert again.returncode == 0
    assert not _STEP.search(again.stdout)
    assert again.stdout.splitlines()[-1].startswith("USABLE: ")
    assert after.startswith("may I start the broker? yes")
    assert "may I start the broker? yes" in again.stdout


def test_many_steps_are_tried_together(data, verify, monkeypatch):
    monkeypatch.setattr("kidx.startup.mounting._MANY", 2)
    checkpoints_past_the_end(data)
    snapshot_past_the_end(data)
    steps = _STEP.findall(verify(data).stdout)
    assert len(steps) == 3
    for step in steps:
        run(step)
    assert verify(data).returncode == 0


def test_the_page_shows_the_output(data, verify):
    torn_with_a_mark(data)
    write(data / "recovery-point-offset-checkpoint", {0: 30, 1: 24})
    write(data / "replication-offset-checkpoint", {0: 30, 1: 24})
    copy = data.rename(data.parents[1] / "data")
    expected = the_block("text", page="docs/operating.md", containing="RECORDS LOST:")
    printed = verify(copy).stdout
    printed = printed[printed.index("BROKEN, DO") :].replace(str(copy), "/mnt/copy/data")
    assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), printed


def test_json_has_the_steps_and_what_is_lost(data, verify):
    checkpoints_past_the_end(data)
    done = verify(data, "--json")
    found = json.loads(done.stdout)["backup"]
    (ending,) = found["endings"]
    assert (ending["usable_up_to"], ending["checkpoints_name"], ending["lost"]["records"]) == (24, 70, 0)
    assert found["after"]["answer"] == "yes"
    for step in found["steps"]:
        run(step["command"])
    assert verify(data).returncode == 0


@pytest.mark.thorough
def test_a_step_that_loses_records_is_not_printed(data, verify):
    """A corrupt batch is kept without a recovery, which would cut the log there."""
    flip(data / "orders-1" / log(0), 700)
    write(data / "recovery-point-offset-checkpoint", {0: 20, 1: 0})
    done = verify(data)
    assert done.returncode == 1
    assert "kafka_cleanshutdown" not in "".join(_STEP.findall(done.stdout))


@pytest.mark.thorough
def test_a_corrupt_log_after_a_kill_loses_what_is_behind(data, verify):
    flip(data / "orders-1" / log(0), 700)
    (data / ".kafka_cleanshutdown").unlink()
    write(data / "recovery-point-offset-checkpoint", {0: 24, 1: 0})
    done = verify(data)
    assert done.returncode == 1
    assert "orders-1" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("RECORDS LOST: 1 partition usable")
    assert re.search(r"[1-9]\d* readable records lost, 0 offsets not in the copy", done.stdout.splitlines()[-1])


def test_another_broker_gets_no_partition_that_the_metadata_assign(data, verify):
    write_metadata(data, partition_record(0, [1]), partition_record(1, [1]))
    (data / "meta.properties").write_text(f"version=1\ncluster.id=c1\nnode.id=1\ndirectory.id={ID}\n")
    (said,) = [line for line in verify(data).stdout.splitlines() if line.startswith("if another broker")]
    assert said.endswith("; but KRaft's metadata in the copy assign 2 partitions to node 1, not to it")
    command = said.partition(": ")[2].partition("; but")[0]
    run(command.replace("=ID/", "=7/"))
    assert (data / "meta.properties").read_text() == "version=1\ncluster.id=c1\nnode.id=7\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    {
        ("--engine", "spark"): "--backup cannot be given with --engine spark",
        ("--fail-on", "loss", "--format", "nagios"): "--backup cannot be given with --fail-on and --format nagios",
    }.items(),
)
def test_options_that_do_not_fit(words, expected, data, verify):
    done = verify(data, *words)
    assert done.returncode == 2
    assert done.stderr == f"kidx: {expected}\n"


@pytest.mark.parametrize("name", ["orders-0", "nothing"])
def test_what_is_no_log_directory_is_one_line(name, data, verify):
    done = verify(data / name)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_a_partition_with_a_missing_time_index_gets_both_indexes(tmp_path, verify):
    data = tmp_path / "data"
    fill(data / "orders-0", segments=3)
    data = stop_cleanly(data, tmp_path / "copy", {0: 36})
    path = data / "orders-0" / log(12)
    (path.with_suffix(".timeindex")).unlink()
    done = verify(data)
    steps = _STEP.findall(done.stdout)
    for step in steps:
        run(step)
    assert verify(data).returncode == 0
