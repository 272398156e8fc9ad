"""Checks of files that a broker changes during the verification are repeated; hooks in the check replay each race."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from kidx.discovery import discover
from kidx.findings import LOSSES, Fault
from kidx.verify import guarded as looking_again
from kidx.verify import verify_segment
from kidx.verify.guarded import guarded_partition, verify_living
from kidx.verify.partition import verify_partition

GOLDEN = Path(__file__).parents[1] / "golden" / "4.4.0"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(looking_again, "_PAUSES", (0.0,) * 5)


@pytest.fixture
def partition(tmp_path):
    shutil.copytree(GOLDEN / "create-time-0", tmp_path / "create-time-0")
    (found,) = discover([tmp_path]).partitions
    assert len(found.segments) >= 3
    return found


def faults(verdict):
    return [finding for finding in verdict.findings if finding.verdict not in ("exact", "sound", "changing")]


def test_a_segment_deleted_between_two_others_is_no_gap(partition):
    """Retention deletes the first segments while the later ones are checked."""
    verdicts = [verify_segment(partition.segments[0])]
    for segment in partition.segments[:2]:
        for path in segment.paths:
            path.unlink(missing_ok=True)
    verdicts += [verify_segment(segment) for segment in partition.segments[1:]]
    verdict = verify_living(partition, verdicts)
    assert not faults(verdict)
    assert verdict.segments == len(partition.segments) - 2


def test_a_segment_that_remains_missing_is_a_gap(partition):
    for path in partition.segments[1].paths:
        path.unlink(missing_ok=True)
    (found,) = discover([partition.directory]).partitions
    verdict = verify_living(found, [verify_segment(segment) for segment in found.segments])
    assert [finding.clause for finding in faults(verdict)] == ["LG-5"]


def test_a_fault_next_to_a_change_is_still_a_fault(partition):
    """The log grows during every verification, and an index of a sealed segment is broken all the time."""
    index = partition.segments[0].path(".index")
    os.truncate(index, 11)
    verified = []

    def verify_one(segment):
        verified.append(segment.base_offset)
        return verify_segment(segment)

    last = partition.segments[-1].log
    verdicts = [verify_segment(segment) for segment in partition.segments]
    os.utime(last)
    verdict = verify_living(partition, verdicts, verify_one=verify_one)
    assert {finding.path for finding in faults(verdict)} == {str(index)}
    assert verified == [partition.segments[-1].base_offset]  # unchanged segments are not read again


def test_a_fault_that_differs_at_every_check_is_changing(partition):
    index = partition.segments[0].path(".index")
    whole = index.read_bytes()
    count = 0

    def break_slot(slot):
        place = 8 * slot + 7
        index.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])

    def verify_one(segment):
        nonlocal count
        count += 1
        verdict = verify_segment(segment)
        break_slot((count + 1) % 3)
        return verdict

    break_slot(0)
    verdicts = [verify_segment(segment) for segment in partition.segments]
    assert faults(guarded_partition(partition, verdicts))
    break_slot(1)
    verdict = verify_living(partition, verdicts, verify_one=verify_one)
    assert count > 5
    assert not faults(verdict)
    assert {file.verdict for file in verdict.files if file.path == str(index)} == {"changing"}


def test_a_partition_deleted_during_the_check_is_gone(partition):
    verdicts = [verify_segment(segment) for segment in partition.segments]
    assert partition.epochs is not None
    shutil.rmtree(partition.directory)
    verdict = verify_living(partition, verdicts)
    assert (verdict.files, verdict.findings, verdict.segments) == ((), (), 0)


def test_nothing_is_checked_twice_if_the_broker_was_stopped(partition, monkeypatch):
    (partition.directory.parent / ".kafka_cleanshutdown").touch()
    os.truncate(partition.segments[0].path(".index"), 11)
    (found,) = discover([partition.directory]).partitions
    monkeypatch.setattr(looking_again, "discover", None)
    assert faults(verify_living(found, [verify_segment(segment) for segment in found.segments]))


def test_segments_that_compaction_is_swapping_in_are_waited_for(partition, monkeypatch):
    """Between two renames a segment has neither name, so two verifications can agree although nothing is lost."""
    swapped = {path: path.with_name(f"{path.name}.swap") for path in partition.segments[1].paths if path.exists()}
    verdicts = [verify_segment(segment) for segment in (partition.segments[0], *partition.segments[2:])]
    for path, swap in swapped.items():
        path.rename(swap)
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            for path, swap in swapped.items():
                swap.rename(path)

    monkeypatch.setattr(looking_again.time, "sleep", pause)
    assert not faults(verify_living(partition, verdicts))


def test_segments_that_a_killed_broker_did_not_swap_in_are_verified(partition):
    for path in partition.segments[1].paths:
        if path.exists():
            path.rename(path.with_name(f"{path.name}.swap"))
    (found,) = discover([partition.directory]).partitions
    assert not faults(verify_living(found, [verify_segment(segment) for segment in found.segments]))
    swap = next(partition.directory.glob("*.log.swap"))
    content = bytearray(swap.read_bytes())
    content[100] ^= 0xFF
    swap.write_bytes(content)
    verdict = verify_living(found, [verify_segment(segment) for segment in found.segments])
    assert swap.name in {Path(finding.path).name for finding in faults(verdict)}


def test_a_checkpoint_that_is_written_after_a_roll_is_no_loss(partition):
    """The broker rolled after the segments were listed, and before the checkpoint was read."""
    end = max(verify_segment(segment).end_offset for segment in partition.segments)
    (partition.directory.parent / "recovery-point-offset-checkpoint").write_text(f"0\n1\ncreate-time 0 {end}\n")
    seen = dataclasses.replace(partition, segments=partition.segments[:-1], recovery_point=end)
    verdicts = [verify_segment(segment) for segment in seen.segments]
    assert Fault.END_BELOW_RECOVERY_POINT in {each.kind for each in verify_partition(seen, verdicts).findings}
    assert not {each.kind for each in verify_living(seen, verdicts).findings} & LOSSES


def test_a_loss_that_is_there_at_the_second_look_is_said(partition):
    for path in partition.segments[-1].paths:
        path.unlink(missing_ok=True)
    (partition.directory.parent / "recovery-point-offset-checkpoint").write_text("0\n1\ncreate-time 0 999\n")
    (found,) = discover([partition.directory.parent]).partitions
    verdicts = [verify_segment(segment) for segment in found.segments]
    found.segments[0].path(".index").touch()  # a change, so that a second look is made
    assert Fault.END_BELOW_RECOVERY_POINT in {each.kind for each in verify_living(found, verdicts).findings}


@pytest.mark.parametrize("is_written_since", [False, True])
def test_a_second_look_knows_the_topic(is_written_since, partition):
    """A checkpoint of an earlier topic is no loss, whatever else is wrong."""
    path = partition.directory.parent / "replication-offset-checkpoint"
    path.write_text(f"0\n1\ncreate-time 0 {888 if is_written_since else 999}\n")
    known = dataclasses.replace(partition, high_watermark=None, earlier=((path.name, 999),))
    os.truncate(partition.segments[0].path(".index"), 11)
    verdict = verify_living(known, [verify_segment(segment) for segment in known.segments])
    assert faults(verdict)
    kinds = {each.kind for each in verdict.findings}
    assert (Fault.END_BELOW_HIGH_WATERMARK in kinds, Fault.EARLIER_TOPIC in kinds) == (
        is_written_since,
        not is_written_since,
    )
