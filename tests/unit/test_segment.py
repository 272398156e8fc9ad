"""A segment alone: its writes, release by release, without Kafka (clauses SEG)."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest

from kidx import AbortedTxn, OffsetPosition, TimestampOffset
from kidx.dialect import DIALECTS
from kidx.errors import InvalidArgumentError, InvalidOffsetError
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX
from kidx.records import Codec, RecordStreamError, TimestampType, build_batch
from kidx.segment import (
    AppendInfo,
    CompletedTxn,
    FetchDataInfo,
    FileRecords,
    LogOffsetPosition,
    LogSegment,
    RollParams,
    SegmentConfig,
    SegmentOffsetOverflowError,
    TimestampAndOffset,
    file_name,
    follower_append_info,
    leader_append_info,
    system_clock,
)

PER_CALL = ("2.4.1", "3.6.2", "3.9.0", "4.0.0")
PER_BATCH = ("3.9.1", "3.9.2", "4.0.1", "4.4.0")
EACH_CLOSE = ("2.5.1", "3.9.2", "4.0.0", "4.3.1", "4.4.0")
SMALL = SegmentConfig(index_interval_bytes=0, segment_index_bytes=96)


def batch(offset: int, *timestamps: int, **options) -> bytes:
    """Build a batch at an offset; its size is 70 bytes with one record."""
    return build_batch([(t, b"k", b"v") for t in timestamps], base_offset=offset, **options)


@pytest.fixture
def segment(tmp_path):
    """Open segments in one directory, and close them at the end without flushing."""
    opened = []

    def open_segment(release: str = "4.4.0", config: SegmentConfig = SMALL, base_offset: int = 0, **options):
        opened.append(LogSegment.open(tmp_path, base_offset, config, dialect=release, **options))
        return opened[-1]

    yield open_segment
    for each in opened:
        each.release_handles()


def sizes(directory) -> dict[str, int]:
    return {path.suffix: path.stat().st_size for path in sorted(directory.iterdir())}


def rolls(segment: LogSegment, **changes) -> bool:
    params = RollParams(LONG_MAX, INT_MAX, 0, 0, 0, 0)
    return segment.should_roll(params._replace(**changes))


# -- appending -------------------------------------------------------------------------------------------------


def test_index_files_appear_with_the_first_append(segment, tmp_path):
    """SEG-1: opening makes a log and nothing else; the two indexes come at full length, a .txnindex does not."""
    s = segment()
    assert sizes(tmp_path) == {".log": 0}
    s.append(batch(0, 100))
    assert sizes(tmp_path) == {".index": 96, ".log": 70, ".timeindex": 96}


@pytest.mark.parametrize("release", PER_CALL)
def test_a_call_gets_one_entry_before_kafka_806(segment, release):
    """SEG-3: the key is the last offset of the call, the position where the call began."""
    s = segment(release)
    for first in (0, 2, 4):
        s.append(batch(first, 100 + first) + batch(first + 1, 50))
    assert list(s.offset_index) == [OffsetPosition(3, 140), OffsetPosition(5, 280)]
    assert list(s.time_index) == [TimestampOffset(102, 2), TimestampOffset(104, 4)]


@pytest.mark.parametrize("release", PER_BATCH)
def test_every_batch_gets_an_entry_since_kafka_806(segment, release):
    """SEG-4, SEG-5: all but the first batch of the segment, whatever call it came in."""
    s = segment(release)
    s.append(batch(0, 100) + batch(1, 300) + batch(2, 200))
    assert list(s.offset_index) == [OffsetPosition(1, 70), OffsetPosition(2, 140)]
    assert list(s.time_index) == [TimestampOffset(300, 1)]


@pytest.mark.parametrize("release", sorted(DIALECTS))
def test_the_interval_must_be_exceeded(segment, release):
    """SEG-5: 70 bytes are not more than 70."""
    s = segment(release, SegmentConfig(index_interval_bytes=70, segment_index_bytes=96))
    for offset in range(4):
        s.append(batch(offset, 100 + offset))
    assert list(s.offset_index) == [OffsetPosition(2, 140)]
    assert s.bytes_since_last_index_entry == 140


@pytest.mark.parametrize(("release", "files"), [("2.4.1", True), ("3.6.2", True), ("3.7.2", False), ("4.4.0", False)])
def test_an_offset_out_of_range_is_rejected_before_anything_is_written(segment, tmp_path, release, files):
    """SEG-2: up to 3.6 the message of the error opens, and so creates, the time index."""
    s = segment(release, base_offset=10)
    with pytest.raises(SegmentOffsetOverflowError, match="Detected offset overflow at offset 9 in segment LogSegment"):
        s.append(batch(9, 100))
    with pytest.raises(OverflowError, match=str(10 + INT_MAX + 1)):
        s.append(batch(10, 100), largest_offset=10 + INT_MAX + 1, largest_timestamp=0, shallow_offset=0)
    assert s.size == 0
    assert (tmp_path / file_name(10, ".timeindex")).exists() == files
    s.append(batch(10, 100), largest_offset=10 + INT_MAX, largest_timestamp=0, shallow_offset=0)


def test_an_empty_append_does_nothing(segment, tmp_path):
    """SEG-2: not even the indexes are made."""
    segment().append(b"")
    assert sizes(tmp_path) == {".log": 0}


def test_offsets_out_of_order_are_noticed_when_an_entry_is_due(segment):
    """SEG-12: the bytes are in the log by then."""
    s = segment("3.9.0")
    s.append(batch(5, 100))
    s.append(batch(6, 100))
    with pytest.raises(InvalidOffsetError):
        s.append(batch(6, 100))
    assert s.size == 210


@pytest.mark.parametrize(("release", "first"), [("3.9.0", 900), ("4.0.0", 900), ("3.9.1", 100), ("4.4.0", 100)])
def test_the_age_counts_from_the_first_call_or_the_first_batch(segment, release, first):
    """SEG-10."""
    s = segment(release)
    assert s.first_batch_timestamp == LONG_MAX
    s.append(batch(0, 100) + batch(1, 900))
    assert s.first_batch_timestamp == first


def test_copying_from_a_file_stops_at_the_first_offset_out_of_range(segment, tmp_path):
    """SEG-13."""
    for release in ("3.9.0", "4.4.0"):
        path = tmp_path / f"{release}.source"
        path.write_bytes(batch(0, 100) + batch(1, 300) + batch(INT_MAX + 1, 200))
        source = FileRecords(path, dialect=release)
        s = segment(release, base_offset=0, file_suffix=f".{release}")
        assert s.append_from_file(source) == 140
        assert s.max_timestamp_so_far == (300, 1)
        assert s.append_from_file(source, 140) == 0
        source.close()


def test_copying_from_a_file_is_chunked(segment, tmp_path):
    """SEG-13: a chunk is below a mebibyte unless one batch is larger; up to 3.9.0 each chunk is one append."""
    value = bytes(600_000)
    batches = [build_batch([(100 + n, None, value)], base_offset=n) for n in range(3)]
    path = tmp_path / "source"
    path.write_bytes(b"".join(batches))
    source = FileRecords(path, dialect="3.9.0")
    s = segment("3.9.0")
    assert s.append_from_file(source) == sum(map(len, batches))
    assert [entry.offset for entry in s.offset_index] == [1, 2]
    source.close()


# -- what the log says of the records --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "offset"), [("2.4.1", 4), ("3.6.2", 4), ("3.7.2", 5), ("3.8.1", 5), ("3.9.0", 5), ("4.4.0", 5)]
)
def test_a_leader_names_the_record_up_to_3_6(release, offset):
    """SEG-8, SEG-9: batch 3..5 with timestamps 40, 60, 50. A follower indexes the batch's last offset."""
    records = batch(3, 40, 60, 50)
    assert leader_append_info(records, dialect=release) == AppendInfo(5, 60, offset)
    assert follower_append_info(records) == AppendInfo(5, 60, 5)


@pytest.mark.parametrize(
    ("release", "options", "rebuilt", "offset"),
    [
        ("3.6.2", {"codec": Codec.LZ4}, False, 5),
        ("3.6.2", {}, True, 5),
        ("3.6.2", {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": 60}, False, 5),
        ("3.6.2", {"magic": 1}, False, 4),
        ("3.6.2", {"magic": 1, "timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time": 60}, False, 3),
        ("3.7.2", {"magic": 1}, False, 4),
        ("3.9.0", {"magic": 1}, False, 4),
        ("3.9.0", {"magic": 1}, True, 4),
        ("3.9.0", {"magic": 0}, False, -1),
    ],
)
def test_the_offset_of_a_leaders_time_index_entry_differs(release, options, rebuilt, offset):
    """SEG-8: by codec, format, LogAppendTime and whether the leader rebuilt the batches."""
    info = leader_append_info(batch(3, 40, 60, 50, **options), dialect=release, rebuilt=rebuilt)
    assert info == AppendInfo(5, -1 if options.get("magic") == 0 else 60, offset)


def test_records_without_timestamps_or_without_batches():
    """SEG-8: without a timestamp there is no offset, except that up to 3.7 a rebuilt batch has its last offset."""
    nothing = batch(3, -1, -1)
    assert follower_append_info(b"") == leader_append_info(b"") == AppendInfo(-1, -1, -1)
    assert follower_append_info(nothing) == leader_append_info(nothing, dialect="3.6.2") == AppendInfo(4, -1, -1)
    assert leader_append_info(nothing, dialect="3.6.2", rebuilt=True) == AppendInfo(4, -1, 4)
    assert leader_append_info(nothing, dialect="3.8.1", rebuilt=True) == AppendInfo(4, -1, -1)


# -- rolling and closing ---------------------------------------------------------------------------------------


def test_when_a_segment_should_roll(segment):
    """SEG-20: size, age by timestamps, age by the clock, full indexes, an offset out of range."""
    s = segment(clock=lambda: 1000)
    assert not rolls(s, now=5000, max_segment_ms=100)
    s.append(batch(0, 100))
    assert not rolls(s, max_segment_bytes=100, messages_size=30)
    assert rolls(s, max_segment_bytes=100, messages_size=31)
    assert not rolls(s, max_timestamp_in_messages=200, max_segment_ms=100)
    assert rolls(s, max_timestamp_in_messages=201, max_segment_ms=100)
    assert rolls(s, max_offset_in_messages=INT_MAX + 1)
    s.roll_jitter_ms = 50
    assert rolls(s, max_timestamp_in_messages=151, max_segment_ms=100)
    s.on_become_inactive_segment()
    assert rolls(s)


def test_without_timestamps_the_clock_decides(segment):
    """SEG-20: a segment is as old as its object, or as its last emptying."""
    now = [1000]
    s = segment(clock=lambda: now[0])
    s.append(batch(0, -1))
    assert not rolls(s, now=1100, max_segment_ms=100)
    assert rolls(s, now=1101, max_segment_ms=100)
    now[0] = 1500
    s.truncate_to(0)
    s.append(batch(0, -1))
    assert not rolls(s, now=1600, max_segment_ms=100)


def test_jitter_is_below_its_limit():
    """SEG-21: none by default; below both limits; the smallest int, which has no positive counterpart, gives 0."""
    assert SegmentConfig().random_segment_jitter() == 0
    config = SegmentConfig(segment_jitter_ms=50, segment_ms=40)
    assert 0 <= config.random_segment_jitter() < 40
    assert [config.random_segment_jitter(lambda n=n: n) for n in (-45, 39, INT_MIN)] == [5, 39, 0]
    assert system_clock() > 1_600_000_000_000


def test_becoming_inactive_finishes_all_files(segment, tmp_path):
    """SEG-22: the last time entry is appended although no entry is due, and all files are trimmed."""
    s = segment(config=SegmentConfig(segment_index_bytes=96), init_file_size=500, preallocate=True)
    assert sizes(tmp_path) == {".log": 500}
    s.append(batch(0, 100))
    s.on_become_inactive_segment()
    s.on_become_inactive_segment()
    assert sizes(tmp_path) == {".index": 0, ".log": 70, ".timeindex": 12}
    assert list(s.time_index) == [TimestampOffset(100, 0)]


@pytest.mark.parametrize(
    ("release", "files"),
    [
        ("2.5.1", {".index": 0, ".log": 0, ".timeindex": 0}),
        ("2.6.3", {".log": 0}),
        ("4.3.1", {".log": 0}),
        ("4.4.0", {".log": 0}),
    ],
)
def test_closing_an_untouched_segment(segment, tmp_path, release, files):
    """SEG-24: up to 2.5 it opens its indexes to close them (KAFKA-9373)."""
    segment(release).close()
    assert sizes(tmp_path) == files


@pytest.mark.parametrize("release", EACH_CLOSE)
def test_files_after_a_close(segment, tmp_path, release):
    """SEG-24: before 4.4 as after a roll, in 4.4 with the preallocated tail, and without a last time entry."""
    s = segment(release)
    s.append(batch(0, 100))
    s.close()
    finished = release != "4.4.0"
    length = (0, 12) if finished else (96, 96)
    assert sizes(tmp_path) == {".index": length[0], ".log": 70, ".timeindex": length[1]}


@pytest.mark.parametrize("release", EACH_CLOSE)
def test_closing_twice(segment, release):
    """SEG-24: up to 4.0.0 the second close ignores its own error; from 4.0.1 on it has no effect."""
    s = segment(release)
    s.append(batch(0, 100))
    s.close()
    s.close()


def test_from_4_0_1_on_a_close_that_fails_raises(segment, monkeypatch):
    """KAFKA-19221: the first error, after all files have been closed."""

    def fail() -> None:
        raise OSError(28, "No space left on device")

    for release, fails in (("3.9.2", False), ("4.0.0", False), ("4.0.1", True), ("4.3.1", True)):
        s = segment(release, file_suffix=f".{release}")
        s.append(batch(0, 100))
        monkeypatch.setattr(s.log, "flush", fail)
        if fails:
            with pytest.raises(OSError, match="No space left"):
                s.close()
        else:
            s.close()


@pytest.mark.parametrize(("release", "raises"), [("2.4.1", False), ("4.0.0", False), ("4.0.1", True), ("4.4.0", False)])
def test_closing_after_the_directory_was_deleted(segment, tmp_path, release, raises):
    """SEG-24: an index cannot be trimmed then, and 4.4 does not trim."""
    s = segment(release)
    s.append(batch(0, 100))
    s.update_parent_dir(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) if raises else nullcontext():
        s.close()


def test_a_segment_is_a_context_manager(tmp_path):
    """It is closed at the end, and its files can be deleted through another object."""
    with LogSegment.open(tmp_path, 7, SMALL, dialect="2.4.1") as s:
        s.append(batch(7, 100))
        assert repr(s) == f"LogSegment('{tmp_path}/00000000000000000007.log', size=70, dialect='2.4.1')"
    assert sizes(tmp_path) == {".index": 0, ".log": 70, ".timeindex": 12}
    again = LogSegment.open(tmp_path, 7, SMALL)
    again.delete_if_exists()
    assert again.deleted
    again.delete_if_exists()


# -- the files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "names"), [("2.5.1", 3), ("2.6.3", 1), ("4.4.0", 1)])
def test_renaming(segment, tmp_path, release, names):
    """LZ-3: an index that was never opened may be missing; up to 2.5 it is created to be renamed."""
    s = segment(release)
    s.change_file_suffixes("", ".deleted")
    assert s.has_suffix(".deleted")
    assert len(sizes(tmp_path)) == 1
    assert len(list(tmp_path.iterdir())) == names
    with pytest.raises(InvalidArgumentError, match=r"Expected string to end with '.swap'"):
        s.change_file_suffixes(".swap", "")


def test_a_directory_that_moved(segment, tmp_path):
    """AI-22: only the names change; the open files are valid under the new names."""
    s = segment()
    s.append(batch(0, 100))
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    s.update_parent_dir(moved)
    s.set_last_modified(5_000)
    assert s.last_modified == 5_000
    s.flush()
    s.close_handlers()
    moved.rename(tmp_path)


def test_loading_checks_for_a_missing_index(segment):
    """SEG-35: the .index must exist; a new .timeindex is empty; both can be preallocated again."""
    s = segment()
    with pytest.raises(FileNotFoundError):
        s.sanity_check(time_index_file_newly_created=True)
    s.append(batch(0, -1))
    s.sanity_check(time_index_file_newly_created=True)
    assert s.time_index.length == 0
    s.resize_indexes(50)
    assert (s.offset_index.length, s.time_index.length) == (48, 48)


def test_a_log_that_is_too_large(tmp_path):
    """The size is a Java int: a larger file is rejected, and so is an append that would make it one."""
    path = tmp_path / file_name(0, ".log")
    with path.open("wb") as file:
        os.ftruncate(file.fileno(), INT_MAX)
    log = FileRecords(path)
    with pytest.raises(InvalidArgumentError, match="too large for segment"):
        log.append(b"x")
    with pytest.raises(RecordStreamError, match="Attempt to truncate log segment"):
        log.truncate_to(-1)
    log.truncate_to(5)
    log.close_handlers()
    with pytest.raises(OSError, match="the log is closed"):
        log.flush()
    with path.open("r+b") as file:
        os.ftruncate(file.fileno(), INT_MAX + 1)
    with pytest.raises(RecordStreamError, match="larger than the maximum"):
        FileRecords(path)


# -- reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", sorted(DIALECTS))
def test_where_an_offset_is(segment, release):
    """SEG-50: the batch that holds it or follows it; named by its last offset up to 3.9, by its base since."""
    s = segment(release)
    s.append(batch(0, 100, 101) + batch(5, 102, 103))
    base = release.startswith("4.")
    assert s.translate_offset(1) == LogOffsetPosition(0 if base else 1, 0, 79)
    assert s.translate_offset(3) == LogOffsetPosition(5 if base else 6, 79, 79)
    assert s.translate_offset(7) is None
    assert s.read_next_offset() == 7
    assert not s.has_overflow


def test_results_of_a_read(segment):
    """Sizes end at the limit; with min_one_message a batch is returned whole; a size of 0 returns no bytes."""
    s = segment()
    s.append(batch(0, 100, 101) + batch(5, 102, 103))
    assert s.read(6, 1000) == FetchDataInfo(5, 79, 79, first_entry_incomplete=False)
    assert s.read(0, 10) == FetchDataInfo(0, 0, 10, first_entry_incomplete=True)
    assert s.read(0, 10, min_one_message=True) == FetchDataInfo(0, 0, 79, first_entry_incomplete=False)
    assert s.read(0, 0) == FetchDataInfo(0, 0, 0, first_entry_incomplete=False)
    assert s.read(0, 1000, max_position=100) == FetchDataInfo(0, 0, 100, first_entry_incomplete=False)
    assert s.read(7, 1000) is None
    with pytest.raises(InvalidArgumentError, match="Invalid max size -1"):
        s.read(0, -1)
    with pytest.raises(InvalidArgumentError, match="Invalid size: -9"):
        s.read(5, 10, max_position=70)
    with pytest.raises(InvalidArgumentError, match="Invalid position: -1"):
        s.log.available_bytes(-1, 1)
    with pytest.raises(InvalidArgumentError, match="exceeds end position"):
        s.log.available_bytes(159, 1)


@pytest.mark.parametrize("release", ["2.4.1", "3.6.2", "4.4.0"])
def test_finding_an_offset_by_timestamp(segment, release):
    """SEG-52: the first record late enough, from the starting offset on; its batch's leader epoch, if it has one."""
    s = segment(release)
    for n in range(6):
        s.append(batch(2 * n, 100 + 10 * n, 95 + 10 * n, partition_leader_epoch=n - 1, codec=Codec.GZIP))
    assert s.find_offset_by_timestamp(0) == TimestampAndOffset(100, 0, None)
    assert s.find_offset_by_timestamp(111) == TimestampAndOffset(120, 4, 1)
    assert s.find_offset_by_timestamp(105) == TimestampAndOffset(110, 2, 0)
    assert s.find_offset_by_timestamp(105, 3) == TimestampAndOffset(105, 3, 0)
    assert s.find_offset_by_timestamp(151) is None
    assert s.fetch_upper_bound_offset(OffsetPosition(0, 0), 1) == 3
    assert s.fetch_upper_bound_offset(OffsetPosition(0, 0), INT_MAX) is None


def test_the_largest_timestamp(segment):
    """SEG-53: without a timestamp, the time of the last write to the log; without a log, 0."""
    s = segment()
    s.append(batch(0, -1))
    s.set_last_modified(7_000)
    assert (s.largest_timestamp, s.largest_record_timestamp) == (7_000, None)
    s.append(batch(1, 300))
    assert (s.largest_timestamp, s.largest_record_timestamp) == (300, 300)
    s.log.path.unlink()
    assert s.last_modified == 0


def test_a_large_log_is_read_on_demand(segment):
    """A log above a mebibyte is not read as a whole; results are right after a truncation and an append, too."""
    s = segment(config=SegmentConfig(index_interval_bytes=100_000))
    value = bytes(300_000)
    for n in range(6):
        s.append(build_batch([(100 + n, None, value)], base_offset=n))
    assert [b.base_offset for b in s.batches()] == list(range(6))
    assert s.find_offset_by_timestamp(104) == TimestampAndOffset(104, 4, None)
    s.truncate_to(5)
    s.append(build_batch([(200, None, value)], base_offset=5))
    assert s.find_offset_by_timestamp(104) == TimestampAndOffset(104, 4, None)
    assert s.read_next_offset() == 6


def test_aborted_transactions_given_by_the_log(segment):
    """TX-15: committed transactions are not written to the index."""
    s = segment()
    s.update_txn_index(CompletedTxn(1, 0, 4, is_aborted=False), 5)
    s.update_txn_index(CompletedTxn(2, 3, 6, is_aborted=True), 7)
    assert s.collect_aborted_txns(0, 10).aborted_transactions == (AbortedTxn(2, 3, 6, 7),)
