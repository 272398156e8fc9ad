"""Messages of v0 and v1: wrappers, relative offsets, inherited timestamps, and every kind of corruption."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx.errors import InvalidArgumentError, OutOfBoundsError
from kidx.records import (
    Codec,
    CorruptRecordError,
    InvalidRecordError,
    LegacyRecordBatch,
    RecordBatch,
    RecordStreamError,
    TimestampType,
    UnsupportedCodecError,
    build_batch,
    iter_batches,
    iter_memory_batches,
    write_message,
)
from kidx.records.codecs import compress

CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
RECORDS = [(10, b"k", b"v"), (30, None, b"w"), (20, b"", None)]

blobs = st.none() | st.binary(max_size=50)


def one(data: bytes) -> RecordBatch:
    (batch,) = iter_memory_batches(data)
    return batch


def wrapper(messages: bytes, *, magic: int = 1, offset: int = 2, codec: Codec = Codec.GZIP, **options) -> bytes:
    return write_message(offset, magic, 99, None, compress(codec, messages, magic), codec=codec, **options)


@given(
    records=st.lists(st.tuples(st.integers(-1, 2**62), blobs, blobs), min_size=1, max_size=10),
    magic=st.sampled_from((0, 1)),
    codec=st.sampled_from((Codec.NONE, *CODECS)),
    base_offset=st.integers(0, 2**62),
)
@settings(max_examples=settings.default.max_examples * 2, deadline=None)
def test_built_messages_are_read_again(records, magic, codec, base_offset):
    data = build_batch(records, base_offset=base_offset, magic=magic, codec=codec)
    batches = list(iter_memory_batches(data))
    assert len(batches) == (len(records) if codec is Codec.NONE else 1)
    for batch in batches:
        batch.ensure_valid()
        assert (batch.magic, batch.codec, batch.count) == (magic, codec, None)
        assert (batch.is_transactional, batch.is_control) == (False, False)
        assert (batch.producer_id, batch.last_sequence, batch.partition_leader_epoch) == (-1, -1, -1)
        assert batch.delete_horizon_ms is None
    read = [record for batch in batches for record in batch]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read] == [
        (base_offset + number, -1 if magic == 0 else timestamp, key, value)
        for number, (timestamp, key, value) in enumerate(records)
    ]
    assert (batches[0].base_offset, batches[-1].next_offset) == (base_offset, base_offset + len(records))
    assert max(batch.max_timestamp for batch in batches) == (-1 if magic == 0 else max(r[0] for r in records))


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
def test_timestamps_set_by_the_broker(codec):
    data = build_batch(RECORDS, magic=1, codec=codec, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77)
    for batch in iter_memory_batches(data):
        assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert batch.max_timestamp == 77
        assert {record.timestamp for record in batch} == {77}


def test_messages_inside_have_their_own_timestamp_unless_the_broker_set_the_wrappers():
    inside = b"".join(write_message(n, 1, 10 + n, None, b"v") for n in range(3))
    assert [r.timestamp for r in one(wrapper(inside))] == [10, 11, 12]
    stamped = one(wrapper(inside, timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert [r.timestamp for r in stamped] == [99, 99, 99]
    assert stamped.max_timestamp == 99
    assert {r.message.timestamp_type for r in stamped} == {TimestampType.LOG_APPEND_TIME}


def test_v0_has_no_timestamps():
    batch = one(build_batch(RECORDS, magic=0, codec=Codec.LZ4))
    assert batch.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert batch.timestamp_type.label == "NoTimestampType"
    assert batch.max_timestamp == -1


def test_relative_offsets_count_back_from_the_wrapper():
    inside = b"".join(write_message(n, 1, 1, None, b"v") for n in (0, 4, 7))
    assert [r.offset for r in one(wrapper(inside, offset=107))] == [100, 104, 107]
    assert [r.offset for r in one(wrapper(inside, offset=0))] == [0, 4, 7], "librdkafka wrote wrappers with offset 0"
    assert [r.offset for r in one(wrapper(inside, offset=107, magic=0))] == [0, 4, 7], "absolute in v0"


def test_the_header_checksum_of_lz4_does_not_matter_in_v0():
    data = bytearray(compress(Codec.LZ4, write_message(0, 0, -1, None, b"v"), 0))
    data[6] ^= 0xFF
    assert [r.value for r in one(write_message(0, 0, -1, None, bytes(data), codec=Codec.LZ4))] == [b"v"]
    with pytest.raises(RecordStreamError, match="frame descriptor corrupted"):
        list(one(write_message(0, 1, 1, None, bytes(data), codec=Codec.LZ4)))


def test_a_wrapper_may_claim_another_end_and_timestamp():
    batch = one(build_batch(RECORDS, magic=1, codec=Codec.GZIP, base_offset=10, last_offset=20, max_timestamp=500))
    assert (batch.last_offset, batch.max_timestamp) == (20, 500)
    assert [record.offset for record in batch] == [18, 19, 20]


# Corruption.


def test_a_wrong_checksum_is_named():
    batch = one(write_message(0, 1, 1, None, b"v")[:-1] + b"w")
    assert not batch.is_valid
    with pytest.raises(CorruptRecordError, match=r"^Record is corrupt \(stored crc = \d+, computed crc = \d+\)$"):
        batch.ensure_valid()


INSIDE = write_message(0, 1, 1, None, b"v")
CASES = {
    "no messages": (wrapper(b""), InvalidRecordError, "Found invalid compressed record set with no inner records"),
    "null value": (
        write_message(0, 1, 1, None, None, codec=Codec.GZIP),
        InvalidRecordError,
        "Found invalid compressed record set with null value (magic = 1)",
    ),
    "zstd": (
        write_message(0, 1, 1, None, b"", codec=Codec.ZSTD),
        InvalidRecordError,
        "Invalid wrapper compressionType found in legacy deep record iterator 1",
    ),
    "wrapper offset too small": (
        wrapper(write_message(5, 1, 1, None, b"v"), offset=3),
        InvalidRecordError,
        "Found invalid wrapper offset in compressed v1 message set, wrapper offset '3' is less than the last inner",
    ),
    "wrapper within": (
        wrapper(wrapper(INSIDE)), InvalidRecordError, "Inner messages must not be compressed",
    ),
    "size within too small": (
        wrapper(INSIDE[:8] + struct.pack(">i", 13) + INSIDE[12:]),
        CorruptRecordError,
        "Record size is less than the minimum record overhead (14)",
    ),
    "not compressed": (write_message(0, 1, 1, None, b"plain bytes", codec=Codec.GZIP), RecordStreamError, "gzip:"),
    "unknown codec": (
        INSIDE[:17] + b"\x05" + INSIDE[18:], UnsupportedCodecError, "Unknown compression type id: 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_corrupt_wrapper_is_rejected(case):
    data, error, text = CASES[case]
    with pytest.raises(error) as caught:
        list(one(data))
    assert str(caught.value).startswith(text)


def test_a_partial_message_at_the_end_of_a_wrapper_is_skipped():
    assert [r.value for r in one(wrapper(INSIDE + write_message(1, 1, 1, None, b"w")[:-1]))] == [b"v"]
    lying = INSIDE + struct.pack(">qi", 1, 2**31 - 1) + b"x" * 50
    assert [r.value for r in one(wrapper(lying))] == [b"v"]


def test_a_message_larger_than_the_limit_is_rejected_when_streamed():
    batch = one(wrapper(INSIDE))
    assert len(list(batch.streaming_iterator(len(INSIDE)))) == 1
    with pytest.raises(InvalidRecordError, match="exceeds the configured maximum record size of 20"):
        list(batch.streaming_iterator(20))


def test_key_and_value_fail_only_when_they_are_read():
    message = bytearray(write_message(0, 1, 42, b"key", b"value"))
    struct.pack_into(">i", message, 26, 1000)
    (record,) = one(bytes(message))
    assert (record.offset, record.timestamp) == (0, 42)
    with pytest.raises(InvalidArgumentError, match="newLimit > capacity"):
        _ = record.key
    with pytest.raises(OutOfBoundsError):
        _ = record.value
    struct.pack_into(">i", message, 26, 2**31 - 1)
    (record,) = one(bytes(message))
    with pytest.raises(OutOfBoundsError):
        _ = record.value


def test_a_v1_message_without_room_for_its_sizes():
    data = struct.pack(">qiIbbq", 5, 14, 0, 1, 0, 42)
    (batch,) = iter_batches(data)
    assert isinstance(batch, LegacyRecordBatch)
    (record,) = batch
    assert record.timestamp == 42
    with pytest.raises(OutOfBoundsError):
        _ = record.key


def test_a_negative_magic_wraps_nothing():
    data = bytearray(wrapper(INSIDE))
    data[16] = 0xFF
    (batch,) = iter_batches(bytes(data))
    with pytest.raises(InvalidRecordError, match="Invalid wrapper magic found in legacy deep record iterator -1"):
        list(batch)
