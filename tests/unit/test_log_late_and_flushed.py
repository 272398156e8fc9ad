"""Transactions that are late (LG-106), and appends that flush (LG-107)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kidx.log import LogConfig, UnifiedLog
from kidx.producers import LATE_MS
from kidx.records import build_batch

CONFIG = LogConfig(segment_bytes=1000, segment_index_bytes=120)
LONGEST = 60_000


def opened(directory, dialect="4.4.0", **settings):
    return UnifiedLog(directory / "t-0", replace(CONFIG, **settings), clock=lambda: 10_000, dialect=dialect)


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
    with opened(tmp_path, dialect) as log:
        log.append_as_follower(in_transaction(0, 7, 1000))
        log.append_as_follower(in_transaction(1, 8, 2000))
        at = 1000 + LONGEST + LATE_MS
        assert not log.has_late_transaction(at, LONGEST)
        assert log.has_late_transaction(at + 1, LONGEST) == knows
        log.truncate_to(1)
        assert log.has_late_transaction(at + 1, LONGEST) == knows
        log.truncate_to(0)
        assert not log.has_late_transaction(1 << 62, LONGEST)


def test_an_append_flushes_when_enough_records_are_not_on_disk(tmp_path):
    with opened(tmp_path, flush_messages=2) as log:
        points = []
        for _ in range(4):
            log.append_as_leader(build_batch([(100, None, b"")]), 0)
            points.append(log.recovery_point)
    assert points == [0, 2, 2, 4]
    assert LogConfig.of_topic({"flush.messages": "2"}).flush_messages == 2
