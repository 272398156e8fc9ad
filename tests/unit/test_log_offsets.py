"""Results of ``ListOffsets`` from a log and from a broker."""

from __future__ import annotations

import pytest

from kidx.errors import InvalidArgumentError
from kidx.log import (
    EpochEntry,
    LeaderEpochCache,
    LogConfig,
    OffsetNotAvailableError,
    UnifiedLog,
    UnsupportedTargetError,
    list_offset,
    read_epochs,
)
from kidx.records import build_batch

CONFIG = LogConfig(segment_bytes=300, segment_index_bytes=120, index_interval_bytes=0)


def filled(path, release: str, *batches: tuple[int, ...]) -> UnifiedLog:
    log = UnifiedLog(path / release, CONFIG, clock=lambda: 10_000, dialect=release)
    for timestamps in batches:
        log.append_as_leader(build_batch([(timestamp, None, b"") for timestamp in timestamps]), 5)
    return log


@pytest.mark.parametrize(
    ("release", "answers"),
    [
        ("2.8.2", {-1: (-1, 6, 5), -2: (-1, 0, 5), -3: (100, 0, 5), -4: (100, 0, 5), -5: (100, 0, 5)}),
        ("3.4.1", {-3: (300, 1, 5), -4: (100, 0, 5)}),
        ("3.7.2", {-3: (300, 2, 5), -4: (-1, 0, 5), -5: (100, 0, 5)}),
        ("3.8.1", {-3: (300, 1, 5), -5: (100, 0, 5)}),
        ("3.9.2", {-5: (-1, -1, -1), -6: (100, 0, 5)}),
        ("4.2.1", {-3: (300, 1, 5), -5: (-1, -1, -1), -6: (-1, -1, -1), -7: (100, 0, 5)}),
    ],
)
def test_special_targets_release_by_release(tmp_path, release, answers):
    log = filled(tmp_path, release, (100, 300, 200), (150, 160, 170))
    assert {target: tuple(log.fetch_offset_by_timestamp(target)) for target in answers} == answers


@pytest.mark.parametrize(("target", "offset"), [(0, 0), (101, 1), (300, 1), (301, None)])
def test_ordinary_targets(tmp_path, target, offset):
    log = filled(tmp_path, "4.3.1", (100, 300, 200), (150, 160, 170))
    found = log.fetch_offset_by_timestamp(target)
    assert (None if found is None else found.offset) == offset


def test_deleted_records_are_not_found(tmp_path):
    log = filled(tmp_path, "4.3.1", (100, 300, 200), (150, 160, 170))
    log.update_high_watermark(6)
    log.delete_records(2)
    assert log.fetch_offset_by_timestamp(1).offset == 2
    assert log.fetch_offset_by_timestamp(201) is None


@pytest.mark.parametrize(("release", "watermark"), [("2.4.1", 2), ("3.9.2", 2), ("4.0.0", 0), ("4.4.0", 0)])
def test_a_fetch_looks_up_its_high_watermark(tmp_path, release, watermark):
    """LG-67: from 4.0 it is then the base offset of its batch."""
    log = filled(tmp_path, release, (100, 300, 200))
    log.update_high_watermark(2)
    assert log.offset_snapshot() == (0, 3, watermark, watermark)
    assert log.high_watermark == watermark
    log.update_high_watermark(3)
    assert log.offset_snapshot() == (0, 3, 3, 3)


@pytest.mark.parametrize(("release", "start"), [("3.4.1", 1), ("3.5.2", None), ("3.6.2", 1)])
def test_3_5_searches_from_where_the_log_once_began(tmp_path, release, start):
    log = filled(tmp_path, release, (100,), (200,))
    log.update_high_watermark(2)
    log.delete_records(2)
    log.truncate_to(1)
    log.append_as_leader(build_batch([(300, None, b"")]), 5)
    found = log.fetch_offset_by_timestamp(300)
    assert (None if found is None else found.offset) == start


@pytest.mark.parametrize(("release", "answer"), [("3.0.2", (-1, 0, None)), ("3.7.2", (-1, 0, None)), ("3.8.1", None)])
def test_the_largest_timestamp_of_an_empty_log(tmp_path, release, answer):
    found = filled(tmp_path, release).fetch_offset_by_timestamp(-3)
    assert found == answer


# -- the broker's filter ---------------------------------------------------------------------------------------------


def test_consumers_see_up_to_the_high_watermark_and_replicas_everything(tmp_path):
    log = filled(tmp_path, "4.3.1", (100,), (200,), (300,))
    log.update_high_watermark(2)
    assert list_offset(log, -1, leader_epoch=7) == (-1, 2, 7)
    assert list_offset(log, -1, leader_epoch=7, isolation_level=None) == (-1, 3, 7)
    assert list_offset(log, 300, leader_epoch=7) is None
    assert list_offset(log, 300, leader_epoch=7, isolation_level=None).offset == 2
    assert list_offset(log, 200, leader_epoch=7).offset == 1
    assert list_offset(log, -3, leader_epoch=7) is None, "the largest one is not replicated, and no other is offered"


def test_committed_readers_see_up_to_the_last_stable_offset(tmp_path):
    log = filled(tmp_path, "4.3.1", (100,))
    log.append_as_follower(
        build_batch(
            [(200, None, b"")],
            base_offset=1,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
            partition_leader_epoch=5,
        )
    )
    log.update_high_watermark(2)
    assert list_offset(log, -1, leader_epoch=7, isolation_level="read_committed").offset == 1
    assert list_offset(log, 200, leader_epoch=7, isolation_level="read_committed") is None
    assert list_offset(log, 200, leader_epoch=7).offset == 1


def test_a_new_leader_has_no_high_watermark_yet(tmp_path):
    log = filled(tmp_path, "4.3.1", (100,), (200,))
    log.update_high_watermark(1)
    for target in (-1, 200, -3):
        with pytest.raises(OffsetNotAvailableError):
            list_offset(log, target, leader_epoch=7, epoch_start_offset=2)
    assert list_offset(log, 100, leader_epoch=7, epoch_start_offset=2).offset == 0
    assert list_offset(log, -2, leader_epoch=7, epoch_start_offset=2).offset == 0
    assert list_offset(log, -4, leader_epoch=7, epoch_start_offset=2).offset == 0


def test_unknown_targets_are_rejected_from_3_9_on(tmp_path):
    assert list_offset(filled(tmp_path, "3.8.1", (100,)), -9, leader_epoch=0, isolation_level=None).offset == 0
    with pytest.raises(UnsupportedTargetError):
        list_offset(filled(tmp_path, "3.9.0", (100,)), -9, leader_epoch=0)


# -- leader epochs ---------------------------------------------------------------------------------------------------


def test_epochs_are_saved_in_a_file(tmp_path):
    path = tmp_path / "leader-epoch-checkpoint"
    cache = LeaderEpochCache(path)
    assert path.read_bytes() == b""
    cache.assign(2, 10)
    cache.assign(2, 12)
    cache.assign(4, 20)
    assert path.read_text() == "0\n2\n2 10\n4 20\n"
    assert LeaderEpochCache(path).entries == [EpochEntry(2, 10), EpochEntry(4, 20)]
    cache.assign(3, 15)
    assert cache.entries == [EpochEntry(2, 10), EpochEntry(3, 15)]
    cache.truncate_from_start(12)
    assert cache.entries == [EpochEntry(2, 12), EpochEntry(3, 15)]
    cache.truncate_from_end(15)
    assert cache.entries == [EpochEntry(2, 12)]
    cache.clear()
    assert (cache.latest_epoch, cache.earliest_entry) == (None, None)


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n2\n1 1\n", "x\n", "0\nx\n", "0\n-1\n", "0\n1\n1\n", "0\n1\n1 -1\n", "0\n1\nx 0\n"]
)
def test_an_invalid_checkpoint_is_rejected(tmp_path, text):
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    with pytest.raises(OSError, match="leader-epoch-checkpoint"):
        read_epochs(path)


@pytest.mark.parametrize(("text", "error"), [("0\n1\nx 0\n", "not a number"), ("0\n1\n-1 0\n", "invalid")])
def test_an_invalid_epoch_is_an_argument_error(tmp_path, text, error):
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=error):
        LeaderEpochCache(path)


def test_old_releases_take_epochs_as_they_are(tmp_path):
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\nx 0\n")
    with pytest.raises(OSError, match="Malformed"):
        LeaderEpochCache(path, numbers_escape=False)
    path.write_text("0\n2\n1 1\n0 0\n")
    assert LeaderEpochCache(path).entries == [EpochEntry(0, 0)]
    cache = LeaderEpochCache(path, are_checked=False)
    assert cache.entries == [EpochEntry(1, 1), EpochEntry(0, 0)]
    cache.truncate_from_end(1)
    assert cache.entries == [EpochEntry(1, 1), EpochEntry(0, 0)]
    cache.truncate_from_start(0)
    assert path.read_text() == "0\n2\n0 0\n1 1\n"
    cache.entries = [EpochEntry(2, 0), EpochEntry(0, 1)]
    cache.assign(1, 8)
    assert cache.entries == [EpochEntry(0, 1), EpochEntry(1, 8)]


@pytest.mark.parametrize("text", ["", "0", "0\n", "0\r0"])
def test_a_checkpoint_may_end_after_its_version(tmp_path, text):
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    assert read_epochs(path) == []


def test_no_checkpoint_is_an_empty_one(tmp_path):
    assert read_epochs(tmp_path / "none") == []
