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
