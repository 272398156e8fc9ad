"""Discovery of segments under a path, which reports everything that it skips."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kidx.discovery import DEPTH, discover
from kidx.repair import repair_paths
from kidx.verify import verify_paths

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"
FIRST = f"{0:020d}"


@pytest.fixture
def broken(tmp_path):
    """Make a log directory whose one partition has a broken index."""
    shutil.copytree(GOLDEN / "create-time-0", tmp_path / "root" / "create-time-0")
    (tmp_path / "root" / "meta.properties").touch()
    os.truncate(tmp_path / "root" / "create-time-0" / f"{FIRST}.index", 11)
    return tmp_path / "root"


def names(found):
    return [partition.directory.name for partition in found.partitions]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("name", [f"{FIRST}.index", f"{FIRST}.log", "leader-epoch-checkpoint"])
def test_a_file_in_the_wrong_place_hides_no_partition(broken, name, marked):
    (broken / name).touch()
    if not marked:
        (broken / "meta.properties").unlink()
    result = verify_paths([broken])
    assert (result.exit_code, result.partitions) == (1, 1)
    assert [str(each.path) for each in result.left_out] == [str(broken / name)]
    assert repair_paths([broken], dry_run=True).changes


def test_deeper_files_are_found_next_to_ones_that_are_not(broken, tmp_path):
    shutil.copytree(GOLDEN / "untouched-0", tmp_path / "mix" / "disk1" / "untouched-0")
    shutil.copytree(broken, tmp_path / "mix" / "disk2" / "a" / "b" / "kafka-logs")
    assert verify_paths([tmp_path / "mix"]).exit_code == 1
    assert names(discover([tmp_path / "mix"])) == ["untouched-0", "create-time-0"]


def test_a_directory_that_is_too_deep_is_reported(broken, tmp_path):
    deep = tmp_path.joinpath("deep", *"abcdefgh"[:DEPTH])
    shutil.copytree(broken, deep)
    found = discover([tmp_path / "deep"])
    assert not found.partitions
    assert [each.path for each in found.left_out] == [deep / "create-time-0"]
    assert "it contains no partition and no segment; skipped in it: 1 path" in found.problems[0].message
    shutil.copytree(GOLDEN / "untouched-0", tmp_path / "deep" / "untouched-0")
    result = verify_paths([tmp_path / "deep"])
    assert (result.exit_code, [each.path for each in result.left_out]) == (0, [deep / "create-time-0"])


def test_a_copy_within_a_partition_is_named_and_hides_nothing(broken):
    shutil.copytree(GOLDEN / "untouched-0", broken / "create-time-0" / "copy")
    found = discover([broken])
    assert (names(found), [each.path.name for each in found.left_out]) == (["create-time-0"], ["copy"])
    shutil.copytree(GOLDEN / "untouched-0", broken / "create-time-0" / "copy-1")
    found = discover([broken])
    assert names(found) == ["create-time-0", "copy", "copy-1"]


def test_an_empty_log_directory_is_no_success(tmp_path):
    (tmp_path / "meta.properties").touch()
    result = verify_paths([tmp_path])
    assert result.exit_code == 2
    assert [each.message for each in result.left_out] == ["is a log directory without any partition"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("meta.properties", "is a log directory without any partition"),
        ("lost+found/", "is empty: a new log directory, or a disk that is not mounted"),
        ("", "is empty: a new log directory, or a disk that is not mounted"),
    ],
)
def test_an_empty_disk_next_to_a_full_one_is_no_finding(tmp_path, name, message):
    disk = tmp_path / "empty"
    (disk / name if name.endswith("/") else disk).mkdir(parents=True)
    if name.endswith("s"):
        (disk / name).touch()
    result = verify_paths([disk, GOLDEN / "untouched-0"])
    assert (result.exit_code, [each.message for each in result.left_out]) == (0, [message])


def test_directories_are_no_files_of_a_partition(tmp_path):
    shutil.copytree(GOLDEN / "create-time-0", tmp_path / "create-time-0")
    (tmp_path / "create-time-0" / f"{150:020d}.log").mkdir()
    (tmp_path / "create-time-0" / f"{150:020d}.index").mkdir()
    assert verify_paths([tmp_path]).exit_code == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_directory_that_may_not_be_read_counts_by_its_name(broken):
    _check_unreadable(broken)


def _check_unreadable(broken):
    for name in ("lost+found", "orders-0"):
        (broken / name).mkdir(mode=0)
    found = discover([broken])
    assert [each.path.name for each in found.left_out] == ["lost+found"]
    assert [each.path.name for each in found.problems] == ["orders-0"]


def test_an_unreadable_directory_counts_by_its_name_for_root_too(broken, monkeypatch):
    scan = os.scandir

    def refused(path):
        if Path(path).name in {"lost+found", "orders-0"}:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    _check_unreadable(broken)


def test_a_partition_without_any_segment_is_named(broken):
    (broken / "orders-0").mkdir()
    (found,) = discover([broken]).left_out
    assert (found.path, "has no segment" in found.message) == (broken / "orders-0", True)
