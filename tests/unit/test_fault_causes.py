"""Faults by cause: a corrupt log is reported once, and its consequences are counted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kidx.verify import verify_paths
from kidx.verify.verdicts import alike, causes_of

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"


@pytest.fixture
def directory(tmp_path):
    shutil.copytree(GOLDEN / "create-time-0", tmp_path / "create-time-0")
    return tmp_path / "create-time-0"


def causes(directory):
    result = verify_paths([directory])
    found = causes_of(result.faults())
    assert sum(1 + len(cause.followers) for cause in found) == len(result.faults())
    return found


def zero(path, start, count=30):
    data = path.read_bytes()
    path.write_bytes(data[:start] + bytes(count) + data[start + count :])


def test_a_zeroed_batch_is_one_cause(directory):
    """The batch is the cause of the index entries that disagree with it."""
    log = min(directory.glob("*.log"))
    zero(log, 0, 1000)
    (cause,) = causes(directory)
    assert (cause.finding.file, cause.finding.clause) == (log.name, "RB-4")
    assert [finding.clause for finding in cause.followers] == ["SEG-5"] * 3


def test_batches_that_fail_their_checksums_are_causes_each(directory):
    log = min(directory.glob("*.log"))
    for position in (80, 200):
        zero(log, position, 2)
    found = causes(directory)
    assert [cause.finding.clause for cause in found] == ["RB-1", "RB-1"]


def test_causes_that_differ_in_files_and_numbers_only_are_a_group(directory, tmp_path):
    for number in range(1, 5):
        shutil.copytree(directory, tmp_path / f"create-time-{number}")
    for path in tmp_path.glob("*/leader-epoch-checkpoint"):
        path.unlink()
    log = min(directory.glob("*.log"))
    zero(log, 80, 2)
    found = causes(tmp_path)
    groups = alike(found)
    assert sorted(map(len, groups)) == [1, 5]
    assert [cause.finding.clause for group in groups for cause in group if len(group) == 5] == ["LG-4"] * 5
    assert len(alike(found[:3])) == 3, "a few are not folded"


def test_a_wrong_index_is_one_cause_for_any_number_of_entries(directory):
    index = min(directory.glob("*.index"))
    data = index.read_bytes()
    index.write_bytes(b"".join(data[place : place + 7] + b"\x01" for place in range(0, len(data), 8)))
    (cause,) = causes(directory)
    assert cause.finding.file == index.name
    assert cause.followers


def test_faults_of_other_partitions_and_files_stand_for_themselves(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "create-time-1")
    log, later = sorted(directory.glob("*.log"))[:2]
    zero(log, 80, 2)
    os.truncate(later.with_suffix(".index"), 11)
    os.truncate((tmp_path / "create-time-1" / log.name).with_suffix(".timeindex"), 13)
    (directory / "leader-epoch-checkpoint").write_text("nonsense")
    found = [cause.finding.path.removeprefix(f"{tmp_path}/") for cause in causes(tmp_path)]
    names = [log.name, later.with_suffix(".index").name, "leader-epoch-checkpoint"]
    assert found == [*(f"create-time-0/{name}" for name in names), f"create-time-1/{log.stem}.timeindex"]
