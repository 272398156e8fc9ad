"""Remarks about undamaged partitions that answer badly; lookups with the same files show that they are right."""

import os
import time

import pytest

from kidx.dialect import DIALECTS
from kidx.findings import HARMLESS
from kidx.log import LogConfig, UnifiedLog
from kidx.lookup import ReadOnlyLog
from kidx.records import SimpleRecord, build_batch
from kidx.verify import verify_paths

FIRST = 1_700_000_000_000
DAY = 24 * 3_600_000


def partition(directory, stamps, **options):
    """Write a log with a segment for each timestamp; a segment of -1 has no timestamp."""
    config = LogConfig(index_interval_bytes=1, **options)
    with UnifiedLog(directory / "t-0", config, dialect="3.9.2", clock=lambda: FIRST) as log:
        for number, stamp in enumerate(stamps):
            if number:
                log.roll()
            log.append_as_follower(
                build_batch([SimpleRecord(stamp, b"k", b"v")], base_offset=number, partition_leader_epoch=0)
            )
    (directory / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return directory / "t-0"


def remarks(path):
    result = verify_paths([path])
    assert result.verdict in HARMLESS, result.findings
    return [(each.clause, each.file, each.message) for each in result.findings]


@pytest.mark.parametrize("release", ["2.4.1", "2.8.2", "3.9.2", "4.3.1", "4.4.0"])
def test_lookups_that_end_in_a_segment_without_a_timestamp(tmp_path, release):
    assert release in DIALECTS
    path = partition(tmp_path, [-1, FIRST, FIRST + 1])
    ((clause, file, message),) = remarks(path)
    assert (clause, file) == ("LO-23", f"{0:020d}.log")
    assert "a search for any time up to then ends in it and finds nothing" in message
    with ReadOnlyLog(path, release) as log:
        assert [log.fetch_offset_by_timestamp(stamp) for stamp in (FIRST, FIRST + 1)] == [None, None]


def test_a_segment_without_a_timestamp_that_is_old_hides_nothing(tmp_path):
    """It counts as old as its file, which is before the next records: the search continues."""
    path = partition(tmp_path, [FIRST, -1, FIRST + 5000])
    os.utime(path / f"{1:020d}.log", (FIRST / 1000 - 5, FIRST / 1000 - 5))
    assert remarks(path) == []
    with ReadOnlyLog(path, "3.9.2") as log:
        assert log.fetch_offset_by_timestamp(FIRST + 5000).offset == 2


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        (lambda: 1 << 62, "4611686018427387904 (in the year 146,140,482)"),
        (
            lambda: int(time.time() * 1000) + 30 * DAY,
            "until then, retention by time deletes neither this segment nor a later",
        ),
    ],
    ids=["far", "near"],
)
def test_a_timestamp_of_the_future_holds_retention_up(tmp_path, stamp, said):
    ((clause, file, message),) = remarks(partition(tmp_path, [FIRST, stamp(), FIRST + 1]))
    assert (clause, file) == ("SEG-53", f"{1:020d}.log")
    assert said in message


def test_timestamps_in_seconds(tmp_path):
    stamps = [FIRST // 1000 + number for number in range(3)]
    ((clause, file, message),) = remarks(partition(tmp_path, stamps))
    assert (clause, file) == ("SEG-53", f"{0:020d}.log")
    assert "1700000000 (1970-01-20T16:13:20Z, in seconds 2023-11-14T22:13:20Z)" in message


def test_a_usual_log_has_no_remark(tmp_path):
    assert remarks(partition(tmp_path, [FIRST, FIRST + 1, FIRST + 2])) == []


def test_the_record_that_holds_retention_up_is_named(tmp_path):
    config = LogConfig(index_interval_bytes=1)
    with UnifiedLog(tmp_path / "t-0", config, dialect="3.9.2", clock=lambda: FIRST) as log:
        for base, stamps in ((0, [FIRST, FIRST]), (2, [FIRST, 1 << 62, FIRST])):
            records = [SimpleRecord(stamp, b"k", b"v") for stamp in stamps]
            log.append_as_follower(build_batch(records, base_offset=base, partition_leader_epoch=0))
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    ((_, _, message),) = remarks(tmp_path / "t-0")
    assert message.startswith("its largest timestamp at offset 3 is in the future")


@pytest.mark.parametrize(("age", "is_told"), [(3_600_000, True), (60_000, False)], ids=["old", "young"])
def test_a_transaction_that_nothing_ends_is_told(tmp_path, age, is_told):
    """A coordinator ends a transaction after 15 minutes; one that is older than that hides all later records."""
    now = int(time.time() * 1000)
    config = LogConfig(index_interval_bytes=1)
    of_transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True, "partition_leader_epoch": 0}
    with UnifiedLog(tmp_path / "t-0", config, dialect="3.9.2", clock=lambda: now) as log:
        log.append_as_follower(build_batch([(now - age, b"k", b"v")], base_offset=0, partition_leader_epoch=0))
        log.append_as_follower(
            build_batch([(now - age, b"k", b"v")] * 2, base_offset=1, base_sequence=0, **of_transaction)
        )
        log.append_as_follower(build_batch([(now, b"k", b"later")], base_offset=3, partition_leader_epoch=0))
        log.update_high_watermark(log.end_offset)
        assert log.last_stable_offset == 1
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    found = remarks(tmp_path / "t-0")
    assert [(clause, file) for clause, file, _ in found] == [("FE-2", f"{0:020d}.log")] * is_told
    assert all("producer 7 is open from offset 1 on, since 1" in message for _, _, message in found)
