"""v2 batches: written and read again; flags, horizons and empty batches; every kind of corruption (RB-1 to RB-3)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError
from kidx.layout import RECORD_BATCH
from kidx.log.validation.partial_record import read_before_3_6, read_since_3_6
from kidx.records import (
    Codec,
    CorruptRecordError,
    DefaultRecordBatch,
    InvalidRecordError,
    RecordBatch,
    RecordStreamError,
    SimpleRecord,
    TimestampType,
    UnsupportedCodecError,
    build_batch,
    empty_batch,
    file_batches,
    iter_batches,
    iter_memory_batches,
    write_batch,
)
from kidx.records.codecs import ReadMode, compress
from kidx.records.record import increment_sequence, write_record

blobs = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3).map(tuple)
simple_records = st.builds(SimpleRecord, st.integers(-1, 2**63 - 1), blobs, blobs, headers)


def one(data: bytes) -> RecordBatch:
    (batch,) = iter_memory_batches(data)
    return batch


def patched(data: bytes, **fields: int) -> bytes:
    """Return ``data`` with changed header fields and the old checksum."""
    result = bytearray(data)
    for name, value in fields.items():
        RECORD_BATCH.set(result, name, value)
    return bytes(result)


@given(
    records=st.lists(simple_records, min_size=1, max_size=20),
    codec=st.sampled_from(Codec),
    base_offset=st.integers(0, 2**62),
    base_sequence=st.integers(0, 2**31 - 1),
)
@settings(max_examples=settings.default.max_examples * 2, deadline=None)
def test_built_batches_are_read_again(records, codec, base_offset, base_sequence):
    data = build_batch(
        records, base_offset=base_offset, codec=codec, producer_id=1, producer_epoch=2, base_sequence=base_sequence
    )
    batch = one(data)
    batch.ensure_valid()
    assert batch.to_bytes() == data
    assert (batch.size_in_bytes, batch.position, batch.magic) == (len(data), 0, 2)
    assert (batch.base_offset, batch.next_offset) == (base_offset, base_offset + len(records))
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert batch.count == len(records)
    read = list(batch)
    assert [SimpleRecord(r.timestamp, r.key, r.value, r.headers) for r in read] == records
    assert [r.offset for r in read] == list(range(base_offset, batch.next_offset))
    assert [r.sequence for r in read] == [(base_sequence + n) % 2**31 for n in range(len(records))]
    assert batch.last_sequence == read[-1].sequence
    assert list(batch.streaming_iterator()) == read
    if codec is Codec.NONE:
        assert sum(record.size_in_bytes for record in read) == len(data) - 61


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_is_the_timestamp_of_every_record(codec):
    """RB-3."""
    batch = one(
        build_batch([(1, None, b""), (9, None, b"")], codec=codec, timestamp_type=TimestampType.LOG_APPEND_TIME,
                    log_append_time=77)
    )  # fmt: skip
    assert [record.timestamp for record in batch] == [77, 77]
    assert batch.timestamp_type.label == "LogAppendTime"


def test_flags_describe_the_batch():
    plain = one(build_batch([(1, None, None)]))
    assert (plain.is_transactional, plain.is_control, plain.is_compressed) == (False, False, False)
    assert plain.delete_horizon_ms is None
    assert plain.timestamp_type is TimestampType.CREATE_TIME
    assert (plain.producer_id, plain.producer_epoch, plain.base_sequence, plain.last_sequence) == (-1, -1, -1, -1)
    full = one(
        build_batch([(1, b"\x00\x00\x00\x01", None)], is_transactional=True, is_control=True, producer_id=0,
                    producer_epoch=0, partition_leader_epoch=9, codec=Codec.ZSTD)
    )  # fmt: skip
    assert full.is_transactional
    assert full.is_control
    assert (full.partition_leader_epoch, full.codec.label) == (9, "zstd")


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp():
    batch = one(build_batch([(100, b"k", None), (90, b"l", None)], delete_horizon_ms=5000))
    assert batch.delete_horizon_ms == 5000
    assert [record.timestamp for record in batch] == [100, 90]
    assert batch.max_timestamp == 100


def test_an_empty_batch_keeps_its_offsets():
    """RB-2."""
    data = empty_batch(10, 19, timestamp=5, producer_id=3, producer_epoch=1, base_sequence=8)
    batch = one(data + b"")
    batch.ensure_valid()
    assert len(data) == 61
    assert (list(batch), list(batch.streaming_iterator()), batch.count) == ([], [], 0)
    assert (batch.base_offset, batch.last_offset, batch.last_sequence, batch.max_timestamp) == (10, 19, 17, 5)


def test_gaps_and_a_claimed_end_are_retained():
    batch = one(build_batch([(1, None, None)] * 3, base_offset=5, offsets=[7, 8, 20], last_offset=30, max_timestamp=99))
    assert [record.offset for record in batch] == [7, 8, 20]
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (5, 30, 99)


@pytest.mark.parametrize(
    ("sequence", "increment", "result"),
    [(0, 5, 5), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2), (5, -3, -(2**31) + 2), (0, 2**31 - 1, 2**31 - 1)],
)
def test_sequence_numbers_wrap(sequence, increment, result):
    assert increment_sequence(sequence, increment) == result


# Corruption of the batch.


def test_a_wrong_checksum_is_named():
    data = build_batch([(1, None, b"v")])
    batch = one(data[:-2] + b"w\x00")
    assert not batch.is_valid
    with pytest.raises(CorruptRecordError, match=r"^Record is corrupt \(stored crc = \d+, computed crc = \d+\)$"):
        batch.ensure_valid()
    assert [record.value for record in batch] == [b"w"], "only ensure_valid verifies the checksum"


def test_the_leader_epoch_is_outside_the_checksum():
    assert one(patched(build_batch([(1, None, b"v")]), partition_leader_epoch=12)).is_valid


def test_a_batch_too_short_for_its_header_is_corrupt():
    data = patched(build_batch([(1, None, b"v")])[:40], length=28)
    batch = one(data)
    assert not batch.is_valid
    with pytest.raises(CorruptRecordError, match=r"the size 40 is smaller than the minimum allowed overhead 61"):
        batch.ensure_valid()
    assert batch.last_offset == 0, "a field that is there is read"
    with pytest.raises(OutOfBoundsError):
        _ = batch.producer_id
    with pytest.raises(OutOfBoundsError):
        list(batch)
    with pytest.raises(InvalidArgumentError):
        batch.streaming_iterator()


def test_the_header_of_a_short_batch_in_a_file_is_read_into_the_next():
    short = patched(build_batch([(1, None, b"v")])[:40], length=28)
    follower = build_batch([(2, None, b"w")])
    first, _ = iter_batches(short + follower)
    assert first.producer_id == struct.unpack_from(">q", short + follower, 43)[0]
    (alone,) = iter_batches(short)
    with pytest.raises(RecordStreamError, match="Failed to load record batch at position 0"):
        _ = alone.producer_id


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_an_unknown_codec_is_an_invalid_argument(codec_id):
    batch = one(patched(build_batch([(1, None, b"v")]), attributes=codec_id))
    for action in (lambda: batch.codec, lambda: batch.is_compressed, lambda: list(batch)):
        with pytest.raises(UnsupportedCodecError, match=f"^Unknown compression type id: {codec_id}$") as caught:
            action()
        assert isinstance(caught.value, InvalidArgumentError)


def test_codecs_have_kafkas_names():
    assert [Codec.for_name(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == list(Codec)
    with pytest.raises(UnsupportedCodecError, match=r"^Unknown compression name: brotli$"):
        Codec.for_name("brotli")


def test_a_batch_whose_file_ends_too_early_cannot_be_loaded():
    data = build_batch([(1, None, b"v" * 50)])
    (batch,) = iter_batches(data[:-1], 0, len(data), source="x.log")
    assert batch.count == 1
    with pytest.raises(RecordStreamError, match=r"^Failed to load record batch at position 0 from x.log$"):
        list(batch)
    assert repr(batch) == f"DefaultRecordBatch(position=0, size_in_bytes={len(data)})"


def test_a_stream_failure_other_than_an_io_exception_keeps_its_text():
    body = compress(Codec.SNAPPY, b"")[:16] + b"\xff\xff\xff\xff"
    batch = one(write_batch(body, base_offset=0, last_offset=0, count=1, codec=Codec.SNAPPY))
    with pytest.raises(RecordStreamError, match=r"^snappy: chunkSize is too big or negative : -1$"):
        list(batch)
    batch = one(write_batch(body[:16] + b"\x00\x00\x00\x07", base_offset=0, last_offset=0, count=1, codec=Codec.SNAPPY))
    with pytest.raises(RecordStreamError, match=r"^Failed to decompress record stream: snappy: failed") as caught:
        list(batch)
    assert caught.value.kafka_message == "Failed to decompress record stream"


# Corruption of the records. Every case is the same with a codec, except for the text.

GOOD = write_record(0, 0, SimpleRecord(0, b"k", b"v"))


def record(*parts: bytes) -> bytes:
    """Make a record of these parts after a size that fits."""
    body = b"".join(parts)
    return bytes((len(body) * 2,)) + body


CASES = {
    # name: (count, records, text when uncompressed, text when compressed)
    "negative count": (-1, GOOD, "Found invalid record count -1 in magic v2 batch", None),
    "records missing": (2, GOOD, "Incorrect declared batch size, premature EOF reached", None),
    "records left": (1, GOOD * 2, "Incorrect declared batch size, records still remaining in file", None),
    "size beyond the end": (
        1,
        b"\x7e" + GOOD[1:],
        "Invalid record size: expected 63 bytes in record payload, but instead the buffer has only 8 remaining bytes",
        "Invalid record size: expected 63 bytes in record payload, but the record payload reached EOF.",
    ),
    "negative size": (
        1,
        b"\x01" + GOOD[1:],
        "Invalid record size: expected to read -1 bytes in record payload, but instead read 8",
        "Incorrect declared batch size, premature EOF reached",
    ),
    "size too small": (
        1,
        b"\x0e" + GOOD[1:],
        "Invalid record size: expected to read 7 bytes in record payload, but instead read 8",
        "Found invalid record structure",
    ),
    "size zero": (1, b"\x00" + GOOD[1:], "Invalid record size: expected to read 0", "Found invalid record structure"),
    "key beyond the end": (1, record(b"\x00\x00\x00\x7e", GOOD[5:]), "Found invalid record structure", None),
    "value beyond the end": (1, record(b"\x00\x00\x00\x01\x7e", b"abc"), "Found invalid record structure", None),
    "varlong too long": (1, record(b"\x00" + b"\xff" * 10 + b"\x00"), "Found invalid record structure", None),
    "varint too long": (1, record(b"\x00\x00" + b"\xff" * 5 + b"\x00"), "Found invalid record structure", None),
    "negative header count": (
        1, record(b"\x00\x00\x00\x01\x01\x01"), "Found invalid number of record headers -1", None,
    ),
    "too many headers": (
        1,
        record(b"\x00\x00\x00\x01\x01\x06"),
        "Found invalid number of record headers. 3 is larger than the remaining size of the buffer",
        None,
    ),
    "negative header key": (
        1, record(b"\x00\x00\x00\x01\x01\x02\x01\x01"), "Invalid negative header key size -1", None,
    ),
    "header key beyond the end": (1, record(b"\x00\x00\x00\x01\x01\x02\x7e"), "Found invalid record structure", None),
}  # fmt: skip


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("case", CASES)
def test_a_wrong_record_is_an_invalid_record(case, codec):
    count, body, plain_text, compressed_text = CASES[case]
    batch = one(write_batch(compress(codec, body), base_offset=0, last_offset=0, count=count, codec=codec))
    text = compressed_text if codec is not Codec.NONE and compressed_text else plain_text
    for iterate in (lambda: list(batch), lambda: list(batch.streaming_iterator())):
        with pytest.raises(InvalidRecordError) as caught:
            iterate()
        assert str(caught.value).startswith(text)
        assert caught.value.kafka_message == str(caught.value)


def test_an_endless_size_escapes_as_an_invalid_argument_when_uncompressed():
    body = b"\xff" * 6
    with pytest.raises(InvalidArgumentError, match=r"Varint is too long.*converted value: ffffffff$"):
        list(one(write_batch(body, base_offset=0, last_offset=0, count=1)))
    batch = one(write_batch(compress(Codec.GZIP, body), base_offset=0, last_offset=0, count=1, codec=Codec.GZIP))
    with pytest.raises(InvalidRecordError, match="Incorrect declared batch size, premature EOF reached"):
        list(batch)


def test_records_before_the_wrong_one_are_returned_unless_kafka_reads_all_first():
    body = GOOD + b"\x01"
    plain = iter(one(write_batch(body, base_offset=0, last_offset=1, count=2)))
    assert next(plain).value == b"v"
    with pytest.raises(InvalidRecordError):
        next(plain)
    batch = one(write_batch(compress(Codec.LZ4, body), base_offset=0, last_offset=1, count=2, codec=Codec.LZ4))
    with pytest.raises(InvalidRecordError):
        iter(batch)
    streamed = batch.streaming_iterator()
    assert next(streamed).value == b"v"
    with pytest.raises(InvalidRecordError):
        next(streamed)


def test_a_record_larger_than_the_limit_is_rejected_when_streamed():
    """FR-1 in 4.4."""
    batch = one(build_batch([(1, None, b"v" * 100)], codec=Codec.ZSTD))
    assert len(list(batch.streaming_iterator(200))) == 1
    with pytest.raises(InvalidRecordError, match="exceeds the configured maximum record size of 50"):
        list(batch.streaming_iterator(50))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_lying_size_costs_no_memory(codec):
    body = struct.pack(">5B", 0xFE, 0xFF, 0xFF, 0xFF, 0x0F) + b"x" * 100  # 2**31 - 1 bytes follow, it says
    batch = one(write_batch(compress(codec, body), base_offset=0, last_offset=0, count=2**31 - 1, codec=codec))
    with pytest.raises(InvalidRecordError):
        list(batch)


# Anything at all.


def exhaust(batch: RecordBatch) -> None:
    """Read everything of a batch; only KidxError may be raised."""
    for name in dir(type(batch)):
        if not name.startswith("_") and name not in ("streaming_iterator", "read_decompressed", "message"):
            try:
                value = getattr(batch, name)
                if callable(value):
                    value()
            except KidxError:
                pass
    ways = [lambda: list(batch), lambda: list(batch.streaming_iterator())]
    if isinstance(batch, DefaultRecordBatch) and batch.size_in_bytes >= RECORD_BATCH.size:
        ways.append(lambda: list(batch.read_decompressed(read_since_3_6, ReadMode.FIELDS)))
        ways.append(lambda: list(batch.read_decompressed(read_before_3_6, ReadMode.PIECES)))
    for iterate in ways:
        try:
            for item in iterate():
                repr(item)
        except KidxError:
            pass


def exhaust_all(data: bytes) -> None:
    for stream in (iter_batches(data), iter_memory_batches(data)):
        try:
            for batch in stream:
                exhaust(batch)
        except KidxError:
            pass


@given(data=st.binary(max_size=200), magic=st.integers(0, 255), fits=st.booleans())
@settings(max_examples=settings.default.max_examples * 4, deadline=None)
def test_random_bytes_raise_only_errors_of_kidx(data, magic, fits):
    if len(data) > 26 and fits:
        data = data[:8] + struct.pack(">i", len(data) - 12) + data[12:16] + bytes((magic,)) + data[17:]
    exhaust_all(data)


@pytest.mark.thorough
@given(
    data=st.data(),
    magic=st.sampled_from((0, 1, 2)),
    codec=st.sampled_from(Codec),
    records=st.lists(simple_records, min_size=1, max_size=4),
)
@settings(max_examples=settings.default.max_examples * 6, deadline=None)
def test_flipped_bits_raise_only_errors_of_kidx(data, magic, codec, records):
    if magic < 2:
        records = [item._replace(headers=()) for item in records]
        codec = Codec(codec % 4)
    batch = bytearray(build_batch(records, magic=magic, codec=codec, base_offset=1000))
    for bit in data.draw(st.lists(st.integers(0, len(batch) * 8 - 1), min_size=1, max_size=4)):
        batch[bit // 8] ^= 1 << bit % 8
    exhaust_all(bytes(batch))


def test_a_file_is_read_in_place(tmp_path: Path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"")
    assert list(file_batches(path)) == []
    first, second = build_batch([(1, None, b"a")]), build_batch([(2, None, b"b")], base_offset=1)
    path.write_bytes(first + second)
    assert [record.value for batch in file_batches(path) for record in batch] == [b"a", b"b"]
    assert [batch.position for batch in file_batches(path, len(first))] == [len(first)]
    assert [batch.position for batch in file_batches(str(path), 0, len(first))] == [0]
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(CorruptRecordError, match=f"Found record size 0 smaller than .* in file {path}"):
        list(file_batches(path))
