"""Settings that a repair takes from outside the logs: common intervals, topics' settings, epochs of batches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kidx.lookup import ReadOnlyLog
from kidx.records import SimpleRecord, build_batch
from kidx.repair import advice, repair_paths
from kidx.repair.interval import intervals_of_topics, likeliest, warning_of
from kidx.verify import verify_paths
from kidx.verify.verdicts import Interval

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"
RECORDED = bytes.fromhex("0104000206706c61696e15696e6465782e696e74657276616c2e62797465730435313200")
"""Values that Kafka 4.3.1 wrote for index.interval.bytes=512 of the topic ``plain``."""


@pytest.mark.parametrize(
    ("least", "most", "taken"),
    [(0, 1449, 1024), (508, 525, 512), (0, 8000, 4096), (5000, 9000, 8192), (9, 15, 10), (0, 0, 0), (5100, None, 5100)],
)
def test_the_likeliest_interval_is_a_common_setting(least, most, taken):
    assert likeliest(Interval(least, most)) == taken


def test_guesses_are_one_warning():
    assert warning_of(["", ""]) == []
    (said,) = warning_of(f"t-{number}: 512 of 508 to 525" for number in (1, 1, 2, 3, 4, 5))
    assert "in 5 partitions (t-1: 512 of 508 to 525; t-2" in said
    assert "and 2 more)" in said


def metadata(directory, name, *values, base=0):
    path = directory / "__cluster_metadata-0" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(build_batch([SimpleRecord(0, None, value) for value in values], base_offset=base))


def test_topic_settings_are_in_the_metadata_log(tmp_path):
    assert intervals_of_topics([tmp_path]) == {}
    metadata(tmp_path, f"{0:020d}.log", RECORDED)
    assert intervals_of_topics([tmp_path]) == {"plain": 512}
    other = RECORDED.replace(b"plain", b"other")
    metadata(tmp_path, f"{5:020d}-0000000001.checkpoint", RECORDED.replace(b"512", b"256"), other)
    assert intervals_of_topics([tmp_path]) == {"plain": 256, "other": 512}  # what the snapshot replaces is not read
    taken_back = other[: other.index(b"\x04512")] + b"\x00\x00"
    metadata(tmp_path, f"{5:020d}.log", taken_back, b"", b"\x01\x04\x00\x02\x7f", RECORDED[:9], base=5)
    assert intervals_of_topics([tmp_path]) == {"plain": 256}
    (tmp_path / "__cluster_metadata-0" / f"{6:020d}.log").write_bytes(b"nonsense" * 20)
    assert intervals_of_topics([tmp_path]) == {"plain": 256}


def test_a_repair_with_a_known_setting_has_no_warning(tmp_path):
    directory = Path(shutil.copytree(GOLDEN / "create-time-0", tmp_path / "plain-0"))
    for path in directory.glob("*.index"):
        path.unlink()
    metadata(tmp_path, f"{0:020d}.log", RECORDED)
    repair = repair_paths([directory])
    assert {change.index_interval_bytes for change in repair.changes} == {512}
    assert (repair.exit_code, repair.warnings) == (0, [])


@pytest.fixture
def partition(tmp_path):
    return Path(shutil.copytree(GOLDEN / "restarted-0", tmp_path / "restarted-0"))


@pytest.mark.parametrize("damage", ["nonsense", "0\n1\n7 3\n", None])
def test_leader_epochs_are_rebuilt_from_the_batches(partition, damage):
    path = partition / "leader-epoch-checkpoint"
    whole = path.read_text()
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    found = advice(verify_paths([partition]), [partition])
    assert found.reason == f"1 leader-epoch-checkpoint of {partition} can be rebuilt from its log"
    assert "replica" not in "\n".join(found.lines())
    repair = repair_paths([partition], dry_run=True)
    assert [change.path for change in repair.changes] == [str(path)]
    assert path.exists() == (damage is not None)
    repair = repair_paths([partition])
    assert (repair.exit_code, repair.remaining, path.read_text()) == (0, [], whole)
    old = partition / "leader-epoch-checkpoint.old"
    assert (old.read_text() if damage is not None else None) == damage
    assert not verify_paths([partition]).faults()


def test_leader_epochs_of_a_broken_log_remain(partition):
    (partition / "leader-epoch-checkpoint").write_text("nonsense")
    log = min(partition.glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data[:80] + bytes([data[80] ^ 1]) + data[81:])
    repair = repair_paths([partition])
    assert not repair.changes
    assert {fault.kind for fault in repair.remaining} == {"log"}


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_moved_away(partition, name):
    (partition.parent / name).write_text("nonsense")
    lines = "\n".join(advice(verify_paths([partition]), [partition]).lines())
    assert "move it away while the broker is stopped, which then begins a new one" in lines
    assert str(partition.parent / name) in lines
    assert "replica" not in lines


def test_a_mistyped_path_next_to_a_good_one_is_an_error(partition):
    lines = advice(verify_paths([partition, partition / "none"]), [partition]).lines()
    said = "name a log directory, a partition's directory or a segment's file that exists"
    assert lines == [f"next: 1 file at fault, and no index file whose log is sound: {said} ({partition / 'none'})"]


@pytest.mark.parametrize("by", ["epochs", "log start"])
def test_a_log_with_a_tiered_beginning_is_reported(partition, by):
    with ReadOnlyLog(partition) as log:
        assert log.begins_before is None
        first = log.segments[1].base_offset
    for path in partition.glob(f"{0:020d}.*"):
        path.unlink()
    (partition / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {0 if by == 'epochs' else first}\n")
    if by == "log start":
        (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\nrestarted 0 0\n")
    with ReadOnlyLog(partition) as log:
        assert (log.begins_before, log.start_offset) == (0, first)
