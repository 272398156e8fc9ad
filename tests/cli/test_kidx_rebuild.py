"""End-to-end tests of ``kidx rebuild``."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kidx.dialect import NEWEST

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
LOG, INDEX, TIME_INDEX = (f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex"))


@pytest.fixture
def rebuild(in_process, tmp_path):
    def run(*words):
        return in_process(
            "kidx", "rebuild", *words, *(() if "--kafka" in words else ("--kafka", NEWEST)), work=tmp_path
        )

    return run


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.fixture
def partition(tmp_path):
    return Path(shutil.copytree(GOLDEN / "transactions-0", tmp_path / "data" / "transactions-0"))


def test_into_another_directory_with_the_transactions_of_earlier_segments(partition, tmp_path, rebuild):
    before = content(partition)
    logs = sorted(partition.glob("*.log"))
    done = rebuild(*logs, "--out", tmp_path / "new", "--kafka", "3.9.2", "--index-interval-bytes", 250, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert content(partition) == before
    assert [Path(json.loads(line)["log"]) for line in done.stdout.splitlines()] == logs
    new = content(tmp_path / "new" / "transactions-0")
    recorded = {name: data for name, data in before.items() if name.endswith(".txnindex") and data}
    assert recorded, "the corpus has aborted transactions"
    assert {name: new.get(name) for name in recorded} == recorded
    assert len([name for name in new if name.endswith(".index")]) == len(logs)


def test_in_place_keeps_backups_and_no_other_files(partition, rebuild):
    (partition / INDEX).write_bytes(b"\x00" * 16)
    before = content(partition)
    done = rebuild(partition / LOG, "--in-place", "--kafka", "3.9.2", "--index-interval-bytes", 250)
    assert (done.returncode, done.stderr) == (0, "")
    after = content(partition)
    assert after[f"{INDEX}.old"] == before[INDEX]
    assert after[f"{TIME_INDEX}.old"] == before[TIME_INDEX]
    assert after[INDEX] != before[INDEX]
    assert after[LOG] == before[LOG]
    assert not [path for path in partition.iterdir() if path.is_dir()]
    rebuild(partition / LOG, "--in-place", "--kafka", "3.9.2", "--index-interval-bytes", 250)
    assert content(partition)[f"{INDEX}.old"] == before[INDEX], "an older copy is never overwritten"


def test_existing_files_are_not_overwritten_without_force(partition, tmp_path, rebuild):
    """Nothing is done then, to no partition."""
    assert rebuild(partition, "--out", tmp_path / "new").returncode == 0
    index = tmp_path / "new" / "transactions-0" / INDEX
    index.write_bytes(b"kept")
    other = shutil.copytree(GOLDEN / "create-time-0", partition.parent / "create-time-0")
    done = rebuild(other, partition, "--out", tmp_path / "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"kidx: {index} exists already; --force overwrites it\n"
    assert index.read_bytes() == b"kept"
    assert not (tmp_path / "new" / "create-time-0").exists()
    done = rebuild(partition.parent, "--out", tmp_path / "new", "--force")
    assert (done.returncode, done.stderr) == (0, "")
    assert index.read_bytes() != b"kept"
    assert (tmp_path / "new" / "create-time-0" / INDEX).exists()


def test_partitions_of_one_name_are_rejected(partition, tmp_path, rebuild):
    """They may be on two disks: the files of one would overwrite the files of the other."""
    other = shutil.copytree(partition, tmp_path / "other" / "transactions-0")
    done = rebuild(partition / LOG, other / LOG, "--out", tmp_path / "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert "have the same name" in done.stderr
    assert not (tmp_path / "new").exists()


def test_backups_are_made_once(partition, rebuild):
    """However often the same file is replaced, and not at all where nothing changes."""
    for _ in range(3):
        (partition / INDEX).write_bytes(b"\x00" * 16)
        assert rebuild(partition / LOG, "--in-place").returncode == 0
        assert rebuild(partition / LOG, "--in-place").returncode == 0
    assert [path.name for path in sorted(partition.glob(f"{INDEX}.*"))] == [f"{INDEX}.old"]
    (partition / INDEX).write_bytes(b"\x01" * 8)
    assert rebuild(partition / LOG, "--in-place").returncode == 0
    assert (partition / f"{INDEX}.old2").read_bytes() == b"\x01" * 8


def test_in_place_is_rejected_while_a_broker_holds_the_lock(partition):
    lock = partition.parent / ".lock"
    before = content(partition)
    with lock.open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        command = [
            sys.executable,
            "-c",
            "from kidx.cli import main; main()",
            "rebuild",
            partition / LOG,
            "--in-place",
            "--kafka",
            NEWEST,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # a process keeps out others only
    assert done.returncode == 2
    assert "is in use: a broker holds" in done.stderr
    assert content(partition) == before


def test_a_torn_tail_is_reported_and_unchanged(partition, tmp_path, rebuild):
    log = partition / LOG
    log.write_bytes(log.read_bytes() + b"\x00" * 30)
    done = rebuild(log, "--out", tmp_path / "new")
    assert done.returncode == 0
    assert "a recovery would truncate 30 bytes" in done.stdout
    assert log.read_bytes().endswith(b"\x00" * 30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GOLDEN / "create-time-0" / LOG,), "either --out DIR or --in-place is required"),
        ((GOLDEN / "create-time-0" / LOG, "--out", "x", "--in-place"), "either --out DIR or --in-place is required"),
        (("/nowhere.log", "--out", "x"), "/nowhere.log is missing"),
        ((GOLDEN / "create-time-0" / INDEX, "--out", "x"), "is not the .log file of a segment"),
        ((GOLDEN / "create-time-0" / LOG, "--out", GOLDEN / "create-time-0"), "holds the log itself"),
        ((GOLDEN / "create-time-0" / LOG, "--out", "x", "--kafka", "0.8"), "unknown Kafka release '0.8'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(arguments, message, tmp_path, rebuild):
    done = rebuild(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_offset_is_bad_input(tmp_path, rebuild):
    (tmp_path / "mine.log").touch()
    done = rebuild(tmp_path / "mine.log", "--out", tmp_path / "new")
    assert done.returncode == 2
    assert "is not named after a base offset" in done.stderr
