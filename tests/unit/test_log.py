"""Logs, and their directory."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import replace

import pytest
from lying_logs import write_log

import kidx
from kidx.errors import InvalidArgumentError
from kidx.layout import ABORTED_TXN
from kidx.log import (
    LogConfig,
    LogError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
    UnifiedLog,
)
from kidx.log.errors import FailedLogError
from kidx.producers import LATE_MS
from kidx.records import CorruptRecordError, InvalidRecordError, build_batch, write_message
from kidx.storage import Store
from kidx.tables import splits
from kidx.tables.segments import PartitionLog, Segment, TopicPartition

# -- UnifiedLog alone; the log machine compares it with Kafka (tests/jvm/test_log_machine.py) ----------------------


NOW = 10_000
SMALL = LogConfig(segment_bytes=300, segment_index_bytes=120, index_interval_bytes=0, retention_ms=-1)


def opened(path, config=SMALL, **options) -> UnifiedLog:
    return UnifiedLog(path / "t-0", config, clock=lambda: NOW, **options)


def batch(*timestamps: int, base: int = 0, epoch: int = 0, **options) -> bytes:
    records = [(timestamp, None, b"") for timestamp in timestamps]
    return build_batch(records, base_offset=base, partition_leader_epoch=epoch, **options)


def bases(log: UnifiedLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def names(log: UnifiedLog) -> set[str]:
    return {file.name for file in log.directory.iterdir()}


# Transactions that are late (LG-106), and appends that flush (LG-107).


def in_transaction(offset, producer, timestamp):
    return build_batch(
        [(timestamp, None, b"")],
        base_offset=offset,
        partition_leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


@pytest.mark.parametrize(("dialect", "knows"), [("3.1.2", False), ("3.2.3", True), ("4.4.0", True)])
def test_the_oldest_transaction_is_late_after_the_longest_one_and_five_minutes(tmp_path, dialect, knows):
    with opened(tmp_path, dialect=dialect) as log:
        log.append_as_follower(in_transaction(0, 7, 1000))
        log.append_as_follower(in_transaction(1, 8, 2000))
        at = 1000 + 60_000 + LATE_MS
        assert not log.has_late_transaction(at, 60_000)
        assert log.has_late_transaction(at + 1, 60_000) == knows
        log.truncate_to(1)
        assert log.has_late_transaction(at + 1, 60_000) == knows
        log.truncate_to(0)
        assert not log.has_late_transaction(1 << 62, 60_000)


def test_an_append_flushes_when_enough_records_are_not_on_disk(tmp_path):
    with opened(tmp_path, replace(SMALL, flush_messages=2)) as log:
        points = []
        for _ in range(4):
            log.append_as_leader(build_batch([(100, None, b"")]), 0)
            points.append(log.recovery_point)
    assert points == [0, 2, 2, 4]
    assert LogConfig.of_topic({"flush.messages": "2"}).flush_messages == 2


# -- appending -------------------------------------------------------------------------------------------------------


def test_a_leader_assigns_offsets_epoch_and_the_largest_timestamp(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_leader(batch(100, 300, 200, max_timestamp=9999), 4)
        log.append_as_leader(batch(400), 5)
        found = [next(iter(segment.batches())) for segment in log.segments]
        assert (found[0].base_offset, found[0].last_offset, found[0].partition_leader_epoch) == (0, 2, 4)
        assert found[0].max_timestamp == 300
        assert found[0].is_valid
        assert log.end_offset == 4
        assert [tuple(entry) for entry in log.epochs.entries] == [(4, 0), (5, 3)]


def test_a_leader_sets_log_append_time_where_the_topic_requires_it(tmp_path):
    config = LogConfig.of_topic({"message.timestamp.type": "LogAppendTime"})
    with opened(tmp_path, config) as log:
        log.append_as_leader(batch(1, 2), 0)
        (found,) = next(iter(log.segments)).batches()
        assert [record.timestamp for record in found] == [NOW, NOW]
        assert found.is_valid


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (batch(1) + batch(2), InvalidRecordError),
        (batch(1, base=3), InvalidRecordError),
        (batch(1)[:-1] + b"\xff", CorruptRecordError),
    ],
)
def test_a_leader_rejects(tmp_path, records, error):
    with opened(tmp_path) as log:
        with pytest.raises(error):
            log.append_as_leader(records, 0)
        assert log.end_offset == 0


def test_an_empty_append_has_no_effect(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_leader(b"", 0)
        log.append_as_follower(b"")
        assert log.size == 0


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (batch(1, base=1), UnexpectedAppendOffsetError),
        (batch(1, base=5) + batch(1, base=5), OffsetsOutOfOrderError),
        (batch(*range(300), base=5), RecordTooLargeError),
        (batch(1, base=5, epoch=-1), InvalidArgumentError),
    ],
)
def test_a_follower_rejects(tmp_path, records, error):
    with opened(tmp_path) as log:
        log.append_as_follower(batch(1, 2, base=0))
        with pytest.raises(error):
            log.append_as_follower(records, 0)
        assert log.end_offset == 2


@pytest.mark.parametrize(("release", "end"), [("3.9.0", 6), ("3.9.1", 5), ("4.0.0", 6), ("4.0.1", 5)])
def test_a_follower_skips_newer_epochs(tmp_path, release, end):
    with opened(tmp_path, dialect=release) as log:
        log.append_as_follower(batch(1, base=4, epoch=1) + batch(1, base=5, epoch=2), 1)
        assert log.end_offset == end


def test_a_message_of_an_old_format_empties_the_epochs(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_follower(batch(1, epoch=3))
        log.append_as_follower(write_message(1, 1, 5, None, b""))
        assert log.epochs.entries == []
        assert log.end_offset == 2


def test_a_batch_larger_than_allowed_is_rejected(tmp_path):
    with opened(tmp_path, LogConfig(max_message_bytes=70)) as log, pytest.raises(RecordTooLargeError):
        log.append_as_leader(batch(1, 2), 0)


# -- segments --------------------------------------------------------------------------------------------------------


def test_full_segments_are_rolled(tmp_path):
    with opened(tmp_path) as log:
        for timestamp in range(100, 110):
            log.append_as_leader(batch(timestamp), 0)
        assert bases(log) == [0, 4, 8]
        assert log.recovery_point == 8


def test_rolling_an_empty_segment_recreates_it(tmp_path):
    with opened(tmp_path) as log:
        log.roll()
        assert bases(log) == [0]
        log.append_as_leader(batch(1), 0)
        assert log.roll().base_offset == 1
        assert names(log) >= {f"{0:020d}.log", f"{1:020d}.log"}


def test_a_segment_before_the_active_one_cannot_be_rolled(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_leader(batch(1), 0)
        log.segments.add(log.segments.first)
        log.end_offset = 0
        with pytest.raises(LogError):
            log.roll()


def test_truncation_removes_segments_and_cuts_one(tmp_path):
    with opened(tmp_path) as log:
        for timestamp in range(10):
            log.append_as_leader(batch(timestamp), timestamp)
        assert log.truncate_to(6)
        assert bases(log) == [0, 4]
        assert log.end_offset == 6
        assert log.epochs.latest_epoch == 5
        assert not any(name.endswith(".deleted") for name in names(log))
        assert not log.truncate_to(6)


def test_truncation_to_before_the_log_empties_it(tmp_path):
    with opened(tmp_path, log_start_offset=100) as log:
        log.append_as_leader(batch(1), 0)
        assert log.truncate_to(50)
        assert (log.start_offset, log.end_offset, bases(log)) == (50, 50, [50])


def test_a_negative_offset_is_rejected(tmp_path):
    with opened(tmp_path) as log, pytest.raises(InvalidArgumentError):
        log.truncate_to(-1)


def test_full_truncation(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_leader(batch(1), 3)
        log.truncate_fully_and_start_at(70)
        assert (log.start_offset, log.end_offset, log.high_watermark, bases(log)) == (70, 70, 70, [70])
        assert log.epochs.entries == []


# -- start, high watermark, retention --------------------------------------------------------------------------------


def test_deleting_records_moves_the_start_and_retention_removes_the_files(tmp_path):
    with opened(tmp_path) as log:
        for timestamp in range(10):
            log.append_as_leader(batch(timestamp), 0)
        with pytest.raises(OffsetOutOfRangeError):
            log.delete_records(5)
        assert log.update_high_watermark(99) == 10
        log.delete_records(5)
        log.delete_records(3)
        assert (log.start_offset, bases(log)) == (5, [0, 4, 8])
        assert log.delete_old_segments() == 1
        assert bases(log) == [4, 8]
        assert [tuple(entry) for entry in log.epochs.entries] == [(0, 5)]


@pytest.mark.parametrize("config", [{"retention.ms": "5000"}, {"retention.bytes": "0", "retention.ms": "-1"}])
def test_retention_can_remove_everything(tmp_path, config):
    settings = {"segment.bytes": 300, "segment.index.bytes": 120, "index.interval.bytes": 0}
    with opened(tmp_path, LogConfig.of_topic(settings | config)) as log:
        for timestamp in range(6):
            log.append_as_leader(batch(timestamp), 0)
        assert log.delete_old_segments() == 0, "nothing is replicated yet"
        log.update_high_watermark(6)
        assert log.delete_old_segments() == 2
        assert (bases(log), log.start_offset) == ([6], 6)
        assert log.delete_old_segments() == 0, "an empty segment is kept"


@pytest.mark.parametrize(("release", "stable"), [("3.9.2", 2), ("4.0.0", 1)])
def test_the_last_stable_offset_of_a_transaction_that_began_before_the_start(tmp_path, release, stable):
    with opened(tmp_path, dialect=release) as log:
        log.append_as_follower(batch(1, is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))
        log.append_as_follower(batch(1, 2, 3, base=1))
        assert log.last_stable_offset == 0
        log.update_high_watermark(4)
        log.delete_records(2)
        assert log.last_stable_offset == stable


# -- opening and closing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2.4.1", "3.6.2", "4.3.1", "4.4.0"])
def test_a_reopened_log_is_unchanged(tmp_path, release):
    with opened(tmp_path, dialect=release) as log:
        for timestamp in range(10):
            log.append_as_leader(batch(timestamp), 0)
    with opened(tmp_path, dialect=release) as log:
        assert (bases(log), log.end_offset) == ([0, 4, 8], 10)
        assert log.fetch_offset_by_timestamp(7).offset == 7


def test_recovery_starts_at_the_recovery_point(tmp_path):
    log = opened(tmp_path)
    for timestamp in range(10):
        log.append_as_leader(batch(timestamp), 0)
    log.release_handles()
    damaged = [f"{base:020d}.timeindex" for base in bases(log)]
    for name in damaged:
        (log.directory / name).write_bytes(b"\xff" * 12)
    with opened(tmp_path, clean=False, recovery_point=5) as log:
        contents = [(log.directory / name).read_bytes() for name in damaged]
        assert contents[0] == b"\xff" * 12, "below the recovery point nothing is read"
        assert contents[1][:8] == (5).to_bytes(8, "big")


def test_segments_after_a_corrupt_one_are_deleted(tmp_path):
    log = opened(tmp_path)
    for timestamp in range(10):
        log.append_as_leader(batch(timestamp), 0)
    log.release_handles()
    path = log.directory / f"{4:020d}.log"
    path.write_bytes(path.read_bytes()[:100])
    with opened(tmp_path, clean=False) as log:
        assert (bases(log), log.end_offset) == ([0, 4], 5)


def test_a_missing_index_is_rebuilt_and_an_orphan_removed(tmp_path):
    with opened(tmp_path) as log:
        for timestamp in range(6):
            log.append_as_leader(batch(timestamp), 0)
    index = log.directory / f"{0:020d}.index"
    content = index.read_bytes()
    index.unlink()
    (log.directory / f"{77:020d}.timeindex").touch()
    (log.directory / f"{0:020d}.log.deleted").touch()
    with opened(tmp_path) as log:
        assert index.read_bytes() == content
        assert not {f"{77:020d}.timeindex", f"{0:020d}.log.deleted"} & names(log)


def test_a_log_that_ends_before_its_start_begins_there(tmp_path):
    with opened(tmp_path) as log:
        log.append_as_leader(batch(1), 3)
    with opened(tmp_path, log_start_offset=50) as log:
        assert (bases(log), log.start_offset, log.end_offset) == ([50], 50, 50)
        assert log.epochs.entries == []


def test_4_4_keeps_its_indexes_unchanged_unless_prepared(tmp_path):
    for name, prepare, length in (("a", True, 0), ("b", False, 120)):
        log = opened(tmp_path / name, dialect="4.4.0")
        log.append_as_leader(batch(1), 0)
        log.close(prepare=prepare)
        assert (log.directory / f"{0:020d}.index").stat().st_size == length


def test_the_representation(tmp_path):
    with opened(tmp_path, dialect="3.9.2") as log:
        log.assign_epoch_start_offset(1, 0)
        log.flush(force_active=True)
        assert "0..0, 1 segments, dialect='3.9.2'" in repr(log)


@pytest.mark.parametrize("release", ["2.4.1", "4.4.0"])
def test_a_segment_with_an_offset_before_its_base_is_beyond_recovery(tmp_path, release):
    (tmp_path / "t-0").mkdir()
    written = b"".join(batch(100 + offset, base=offset) for offset in range(37, 45))
    (tmp_path / "t-0" / f"{40:020d}.log").write_bytes(written)
    with pytest.raises(InvalidArgumentError, match="Split operation is only permitted for segments with overflow"):
        opened(tmp_path, clean=False, dialect=release)


# -- Directory of a log: renamed, deleted, and on a disk that fails (LG-92 to LG-97) -------------------------------


BATCH = build_batch([(1, None, b"value")], base_offset=0, partition_leader_epoch=0)
FUTURE = "t-0.0123456789abcdef0123456789abcdef-future"
DELETED = "t-0.0123456789abcdef0123456789abcdef-delete"


def contents(path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_renamed_log_writes_all_its_files_to_the_new_directory(tmp_path):
    with UnifiedLog(tmp_path / "t-0") as log:
        log.append_as_leader(BATCH, 0)
        before = contents(tmp_path / "t-0")
        log.rename_directory(FUTURE)
        assert contents(tmp_path / FUTURE) == before
        log.append_as_leader(BATCH, 1)
        log.roll()
        assert log.end_offset_for_epoch(0) == (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == [FUTURE]
    assert {"00000000000000000002.log", "00000000000000000002.snapshot"} <= set(contents(tmp_path / FUTURE))
    with UnifiedLog(tmp_path / FUTURE) as log:
        assert (log.end_offset, log.end_offset_for_epoch(0)) == (2, (0, 1))


@pytest.mark.parametrize(("release", "epoch_end"), [("3.2.3", (0, 1)), ("3.3.2", None)])
def test_a_log_that_will_be_deleted_forgets_its_epochs_from_3_3_on(tmp_path, release, epoch_end):
    log = UnifiedLog(tmp_path / "t-0", dialect=release)
    log.append_as_leader(BATCH, 0)
    log.rename_directory(DELETED, deletes=True)
    assert log.end_offset_for_epoch(0) == epoch_end
    log.delete()
    assert not any(tmp_path.iterdir())


def test_a_log_on_a_failed_disk_rejects_everything_and_does_not_change(tmp_path):
    log = UnifiedLog(tmp_path / "t-0")
    log.append_as_leader(BATCH, 0)
    log.fail()
    before = contents(tmp_path / "t-0")
    for call in (
        lambda: log.append_as_leader(BATCH, 0),
        lambda: log.append_as_follower(BATCH, 0),
        log.roll,
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(5),
        lambda: log.delete_records(0),
        log.close,
    ):
        with pytest.raises(FailedLogError, match="t-0"):
            call()
    assert (contents(tmp_path / "t-0"), log.end_offset) == (before, 1)


@pytest.mark.parametrize(("release", "is_deleted"), [("4.3.1", False), ("4.4.0", True)])
def test_a_log_on_a_failed_disk_is_deleted_from_4_4_on(tmp_path, release, is_deleted):
    log = UnifiedLog(tmp_path / "t-0", dialect=release)
    log.append_as_leader(BATCH, 0)
    log.fail()
    with nullcontext() if is_deleted else pytest.raises(FailedLogError, match="t-0"):
        log.delete()
    assert (tmp_path / "t-0").exists() != is_deleted


# -- Plans of logs with many segments ------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
def test_a_transaction_that_ends_many_segments_later_is_hidden(tmp_path, monkeypatch, indexed):
    monkeypatch.setattr(splits, "LATER", 2)
    plain = [[("plain", [number], None)] for number in range(5)]
    write_log(tmp_path / "t-0", [[("transaction", [5, 6], None)], *plain, [("abort", [0], None)], *plain])
    for offset in range(2, 8):
        if indexed:  # transactions of another producer, and the transaction that began at offset 0
            entry = (0, 1, 0, 7, 8) if offset == 7 else (0, 9, offset, offset, 0)
            (tmp_path / "t-0" / f"{offset:020d}.txnindex").write_bytes(ABORTED_TXN.struct.pack(*entry))
    for path in () if indexed else [*(tmp_path / "t-0").glob("*.txnindex"), *(tmp_path / "t-0").glob("*0.index")]:
        path.unlink()
    found = kidx.read(tmp_path, columns=["offset"], isolation="read_committed").read_all()["offset"].to_pylist()
    assert found == [offset for offset in range(13) if offset not in (0, 1, 7)]


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [{"log": 100}, {"log": 100, "index": 8, "txnindex": 34}])
def test_a_split_does_not_grow_with_its_log(sizes):
    """Without the indexes of 8,000 segments, a split had all later ones: 300 KB, and nine seconds for the plan."""
    store, key = Store("/nowhere"), TopicPartition("t", 0)

    def largest(count):
        segments = [
            Segment(store, "/nowhere/t-0", *key, base, sizes, 1, base + 1 if base + 1 < count else None, identity=base)
            for base in range(count)
        ]
        log = PartitionLog(key, store, "/nowhere/t-0", segments)
        return max(len(pickle.dumps(each)) for each in splits._whole_splits(log, 0, None, committed=True))

    assert largest(2000) < largest(200) * 1.2
