"""Fetches from a log: limits, places in files, aborted transactions, and the high watermark of a leader."""

from __future__ import annotations

import pytest

from kidx.errors import InvalidArgumentError, KidxError
from kidx.log import LogConfig, OffsetOutOfRangeError, UnifiedLog
from kidx.log.fetch import OffsetMetadata
from kidx.records import build_batch

CONFIG = LogConfig(segment_bytes=150, segment_index_bytes=120, index_interval_bytes=0)
BATCH = build_batch([(100, None, b"")])
SIZE = len(BATCH)


def replicated(offset: int, *records, **options) -> bytes:
    """Return a batch of one record as a follower gets it."""
    return build_batch(records or [(100, None, b"")], base_offset=offset, partition_leader_epoch=0, **options)


@pytest.fixture
def log(tmp_path):
    """Log with the offsets 0 to 4 in segments of two batches, of which 3 are replicated."""
    with UnifiedLog(tmp_path / "t-0", CONFIG, clock=lambda: 10_000) as log:
        for _ in range(5):
            log.append_as_leader(BATCH, 0)
        log.update_high_watermark(3)
        yield log


def test_a_fetch_has_a_place_and_at_most_the_requested_bytes_of_one_segment(log):
    assert log.fetch(0, 1000, whole_batch=True)[:3] == ((0, 0, 0), 2 * SIZE, False)
    assert log.fetch(1, 1000, whole_batch=True)[:3] == ((1, 0, SIZE), SIZE, False)
    assert log.fetch(0, 1, whole_batch=True)[:3] == ((0, 0, 0), SIZE, False)
    assert log.fetch(0, 1, whole_batch=False)[:3] == ((0, 0, 0), 1, True)


def test_a_consumer_reads_up_to_the_high_watermark_and_a_follower_up_to_the_end(log):
    assert log.fetch(2, 1000, "high_watermark", whole_batch=True).size == SIZE
    assert log.fetch(2, 1000, "log_end", whole_batch=True).size == 2 * SIZE
    assert log.fetch(3, 1000, "high_watermark", whole_batch=True)[:2] == ((3, 2, SIZE), 0)
    assert log.fetch(4, 1000, "high_watermark", whole_batch=True)[:2] == ((4, 4, 0), 0)
    assert log.fetch(5, 1000, "log_end", whole_batch=True)[:2] == ((5, 4, SIZE), 0)


@pytest.mark.parametrize("offset", [-1, 6])
def test_an_offset_that_the_log_does_not_have_is_out_of_range(log, offset):
    with pytest.raises(OffsetOutOfRangeError):
        log.fetch(offset, 1000, whole_batch=True)


def test_only_read_committed_lists_aborted_transactions_also_of_later_segments(tmp_path):
    with UnifiedLog(tmp_path / "t-0", CONFIG, clock=lambda: 10_000) as log:
        transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        log.append_as_follower(replicated(0, **transaction))
        for offset in (1, 2):
            log.append_as_follower(replicated(offset))
        log.append_as_follower(replicated(3, (100, b"\0\0\0\0", bytes(6)), is_control=True, **transaction))
        log.update_high_watermark(4)
        fetched = log.fetch(0, 1, "txn_committed", whole_batch=True)
        assert [(each.producer_id, each.first_offset) for each in fetched.aborted] == [(7, 0)]
        assert log.fetch(0, 1, "high_watermark", whole_batch=True).aborted is None
        assert log.fetch(4, 1, "txn_committed", whole_batch=True).aborted == ()


def test_bytes_between_offsets_are_known_within_a_segment():
    assert OffsetMetadata(3, 0, 140).bytes_from(OffsetMetadata(1, 0, 70)) == 70
    assert OffsetMetadata(3, 0, 140).is_on_older_segment(OffsetMetadata(4, 4, 0))
    assert not OffsetMetadata(3).is_on_older_segment(OffsetMetadata(4, 4, 0))
    for other in (OffsetMetadata(4, 4, 0), OffsetMetadata(4)):
        with pytest.raises(KidxError):
            OffsetMetadata(3, 0, 140).bytes_from(other)


def test_a_leader_raises_the_high_watermark_and_its_place(log):
    assert log.raise_high_watermark(OffsetMetadata(2, 2, 0)) is None
    assert log.raise_high_watermark(OffsetMetadata(4, 2, 2 * SIZE)) == (3, 2, SIZE)
    assert log.raise_high_watermark(OffsetMetadata(4, 4, 0)) == (4, 2, 2 * SIZE)
    assert log.raise_high_watermark(OffsetMetadata(4, 4, 0)) is None
    assert log.watermark_metadata() == (4, 4, 0)
    with pytest.raises(InvalidArgumentError):
        log.raise_high_watermark(OffsetMetadata(6))


def test_a_last_stable_offset_without_a_place_is_looked_up(log):
    log.watermark_metadata()
    log.first_unstable_offset, log.first_unstable_place = 1, None
    assert log.last_stable_metadata() == (1, 0, SIZE)
    assert log.first_unstable_place == (0, SIZE)


@pytest.mark.parametrize(("release", "size"), [("3.7.2", SIZE), ("3.8.1", 0)])
def test_a_limit_in_an_older_segment_ends_a_fetch_since_3_8(tmp_path, release, size):
    with UnifiedLog(tmp_path / "t-0", CONFIG, clock=lambda: 10_000, dialect=release) as log:
        log.append_as_follower(replicated(0))
        follower = log.fetch(1, 1, whole_batch=True).start
        log.roll()
        log.append_as_follower(replicated(5))
        log.raise_high_watermark(OffsetMetadata(6, follower.segment, follower.position))
        assert log.fetch(4, 1, "high_watermark", whole_batch=True).size == size
