"""Advice before a start is a command: typed as it is printed, it does what its comment says, and is not repeated."""

import gc
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from startups import flip, log, start, stopped_broker, write_offsets

from kidx.dialect import DIALECTS
from kidx.records import build_batch
from kidx.records.builder import write_checksum
from kidx.startup.changes import cut, make_directory_view, write_number
from kidx.startup.readable import LoggedRecords
from kidx.startup.simulation import CheckpointedOffsets, try_load
from kidx.startup.views import ViewedRecords

_COMMAND = re.compile(
    r"^  (?:if another broker .*: )?((?:printf|sed|truncate|mkdir) .*?)  # (.*); then verify again$", re.MULTILINE
)


filled, data = stopped_broker(2)


def kill(data, recovery_point=0):
    (data / ".kafka_cleanshutdown").unlink()
    write_offsets(data / "recovery-point-offset-checkpoint", {0: recovery_point, 1: 48})


def append(path, content):
    path.write_bytes(path.read_bytes() + content)


def duplicated_last_batch(data):
    path = data / "orders-0" / log(36)
    append(path, path.read_bytes()[-239:])
    kill(data, 48)


def foreign_batch_at_the_tail(data):
    append(data / "orders-0" / log(36), build_batch([(1, None, b"x")] * 7, base_offset=0))
    kill(data)


def wrong_base_offset(data):
    flip(data / "orders-0" / log(12), 6)


def wrong_base_offset_after_a_kill(data):
    flip(data / "orders-0" / log(12), 3)
    kill(data)


def corrupt_batch_after_a_kill(data):
    flip(data / "orders-0" / log(12), 700)
    kill(data)


def foreign_log(data):
    shutil.copy(data / "orders-0" / log(0), data / "orders-0" / log(60))
    kill(data)


def zeros_behind_the_log(data):
    append(data / "orders-0" / log(36), bytes(4096))


def log_start_past_the_end(data):
    write_offsets(data / "log-start-offset-checkpoint", {0: 999, 1: 3})


DAMAGES = {
    duplicated_last_batch: "truncate -s 1434",
    foreign_batch_at_the_tail: "truncate -s 1434",
    wrong_base_offset: "printf",
    wrong_base_offset_after_a_kill: "printf",
    corrupt_batch_after_a_kill: "sed",
    foreign_log: " && mv -n ",
    zeros_behind_the_log: " && mv -n ",
    log_start_past_the_end: "sed",
}


def advised(data):
    """Return the commands before a start, with what each would lose, and the prediction."""
    found = start(data)
    return _COMMAND.findall("\n".join(found.lines())), found


@pytest.mark.parametrize(("damage", "program"), DAMAGES.items(), ids=[damage.__name__ for damage in DAMAGES])
def test_a_command_that_is_typed_as_printed_does_what_its_comment_says(damage, program, data):
    damage(data)
    ((command, cost),), _ = advised(data)
    assert program in command
    assert cost == "no readable record is lost"
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    again, after = advised(data)
    assert again == []
    assert after.starts
    assert not after.of("cut", "unknown")


def corrupt_batch(data):
    flip(data / "orders-0" / log(12), 700)


def control_batch_without_a_marker(data):
    """Append a batch with a right checksum from which no start can rebuild producers."""
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    batch = bytearray(build_batch([(1, None, b"x")], base_offset=48, **producer))
    batch[22] |= 0x20
    write_checksum(batch)
    append(data / "orders-0" / log(36), batch)
    kill(data)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("damage", "tried"),
    {
        corrupt_batch: "move .kafka_cleanshutdown out (as many are kept without it); cut {log} to 478 bytes (6 records "
        "fewer)",
        control_batch_without_a_marker: "set its line in recovery-point-offset-checkpoint to 49 (the log cannot be "
        "loaded then, either: a control record without a key)",
    }.items(),
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_changes_that_do_not_help_are_named_with_their_results(damage, tried, data):
    damage(data)
    lines = start(data).lines()
    (said,) = (line for line in lines if "was tried on a view" in line)
    assert said.endswith(f"no change that was tried on a view of it keeps more records: {tried.format(log=log(12))}")
    assert not advised(data)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["2.8.2", "4.3.1"])
def test_a_log_that_cannot_be_loaded_leaves_no_file_open(release, data):
    """Thousands of them would exhaust the files that a process may open, and be taken for unreadable."""
    control_batch_without_a_marker(data)
    path = data / "orders-0"
    gc.collect()
    before = len([*Path("/proc/self/fd").iterdir()])
    assert try_load(path, DIALECTS[release], CheckpointedOffsets(data).of(path)).fatal
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_trial_copies_no_log(data, tmp_path):
    """A view shows a changed log in a small file, whatever its size."""
    path = data / "orders-0" / log(12)
    before = path.read_bytes()
    for number, (change, bases) in enumerate(
        {cut(path, 239): [12], write_number(path, 239, 77): [12, 77, 16, 18, 20, 22]}.items()
    ):
        (scratch := tmp_path / f"{number}").mkdir()
        view = make_directory_view(path.parent, scratch)
        change.apply(view)
        assert (view / path.name).stat().st_size < 1000
        shown = ViewedRecords(view / path.name, dialect=DIALECTS["4.3.1"])
        assert [batch.base_offset for batch in shown.batches()] == bases
        shown.close()
        assert LoggedRecords(view).sizes[12] == (239 if number == 0 else 1434)
    assert path.read_bytes() == before
