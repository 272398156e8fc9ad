"""The oracle, which reads batches with its own code; kidx's builder, which shares no code with it, makes them."""

from __future__ import annotations

import pytest
import time_oracle

from conformance import oracle
from conformance.oracle import ConsumerRecord
from kidx.records import Codec, TimestampType, build_batch


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_every_codec_are_read(codec):
    data = build_batch(
        [(100, b"k", b"v" * 300), (90, None, None), (105, b"", b"x")],
        base_offset=7,
        offsets=[7, 9, 10],
        codec=codec,
        partition_leader_epoch=3,
    )
    assert list(oracle.records_of(data)) == [
        ConsumerRecord(7, 100, 3, 0),
        ConsumerRecord(9, 90, 3, 0),
        ConsumerRecord(10, 105, 3, 0),
    ]


def test_batches_with_log_append_time_have_one_timestamp():
    data = build_batch(
        [(1, None, b""), (2, None, b"")], timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=500
    )
    assert [record.timestamp for record in oracle.records_of(data)] == [500, 500]


def test_an_incomplete_batch_ends_the_log():
    data = build_batch([(1, None, b"")])
    assert len(list(oracle.records_of(data + data[:-1]))) == 1


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_batch_that_cannot_be_decompressed_ends_the_log(codec):
    sound, damaged = build_batch([(1, None, b"")]), bytearray(build_batch([(2, None, b"")], codec=codec))
    damaged[62:] = bytes(len(damaged) - 62)
    assert [record.timestamp for record in oracle.records_of(sound + damaged + sound)] == [1]


def test_a_batch_with_too_few_records_ends_the_log():
    sound = build_batch([(1, None, b"")])
    claims_two = sound[:57] + (2).to_bytes(4, "big") + sound[61:]
    assert len(list(oracle.records_of(sound + claims_two))) == 1


def test_only_visible_records_count(tmp_path):
    (tmp_path / f"{0:020d}.log").write_bytes(build_batch([(1, None, b""), (2, None, b"")]))
    (tmp_path / f"{2:020d}.log").write_bytes(build_batch([(3, None, b"")], base_offset=2))
    found = time_oracle.visible_records(tmp_path, 1, 2**63 - 1)
    assert [(record.offset, record.segment) for record in found] == [(1, 0), (2, 1)]
    assert [record.offset for record in time_oracle.visible_records(tmp_path, 0, 2)] == [0, 1]


RECORDS = [
    ConsumerRecord(5, 100, 0, 0),
    ConsumerRecord(6, 300, 0, 0),
    ConsumerRecord(7, 200, 0, 1),
    ConsumerRecord(8, 300, 1, 1),
]


@pytest.mark.parametrize(("timestamp", "offset"), [(0, 5), (100, 5), (101, 6), (300, 6), (301, None)])
def test_the_first_record_that_is_not_earlier(timestamp, offset):
    found = time_oracle.first_not_before(RECORDS, timestamp)
    assert (None if found is None else found.offset) == offset


def test_the_first_of_the_latest():
    assert time_oracle.first_of_the_latest(RECORDS) == RECORDS[1]
    assert time_oracle.first_of_the_latest([]) is None
    assert time_oracle.first_of_the_latest([ConsumerRecord(0, -1, 0, 0)]) is None


@pytest.mark.parametrize(
    ("right", "answer", "why"),
    [
        (RECORDS[1], (300, 6, 0), None),
        (RECORDS[1], (300, 6, 9), None),
        (None, None, None),
        (None, (-1, -1, -1), None),
        (RECORDS[1], None, "missing"),
        (None, (300, 6, 0), "surplus"),
        (None, (300, 2, 0), "deleted-record"),
        (RECORDS[1], (300, 2, 0), "deleted-record"),
        (RECORDS[0], (300, 6, 0), "later-record"),
        (RECORDS[1], (300, 8, 0), "newer-segment"),
        (RECORDS[1], (300, 7, 0), "wrong-offset"),
        (RECORDS[1], (100, 5, 0), "wrong-timestamp"),
    ],
)
def test_why_an_answer_is_wrong(right, answer, why):
    assert time_oracle.disagreement(right, answer, RECORDS) == why


def test_batches_of_the_old_formats_are_skipped():
    """Their values lie where a batch of magic 2 has its count, and anything may be in them."""
    new = build_batch([(1, None, b"")], base_offset=9)
    for magic in (0, 1):
        old = build_batch([(7, b"k" * 30, bytes([0x7F] * 60))], magic=magic)
        assert list(oracle.records_of(old + new)) == list(oracle.records_of(new))
        assert [batch.first_offset for batch in oracle.batches_of(old + new)] == [9]


def test_records_of_negative_sizes_end_the_log():
    """Else a few bytes are as many records as the count says, of which there may be 2,147,483,647."""
    sound = build_batch([(1, None, b"v" * 20)])
    hostile = sound[:57] + (2**31 - 1).to_bytes(4, "big") + bytes([5, 0, 0, 0, 0, 0, 0]) + sound[68:]
    assert list(oracle.records_of(hostile)) == []
