"""Output and errors of the builders, and the control records that they write for Kafka itself."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx.errors import InvalidArgumentError
from kidx.records import (
    Codec,
    ControlRecordType,
    EndTransactionMarker,
    InvalidRecordError,
    Record,
    SimpleRecord,
    TimestampType,
    build_batch,
    end_transaction_marker,
    iter_memory_batches,
    write_batch,
    write_message,
)
from kidx.records.varint import read_varint, read_varlong, size_of_varint, write_varint, write_varlong


def test_a_batch_byte_by_byte():
    """The smallest batch with everything in it, spelled out (RB-1)."""
    data = build_batch(
        [(1000, b"k", b"v"), (1001, None, None, [("h", b"x")])],
        base_offset=5,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        partition_leader_epoch=2,
    )
    assert data[:17] + data[21:61] == bytes.fromhex(
        "0000000000000005"  # base offset
        "00000045"  # length
        "00000002"  # partition leader epoch
        "02"  # magic; then the checksum
        "0000"  # attributes
        "00000001"  # last offset delta
        "00000000000003e8"  # base timestamp
        "00000000000003e9"  # largest timestamp
        "0000000000000007"  # producer id
        "0001"  # producer epoch
        "00000003"  # base sequence
        "00000002"  # records
    )
    assert data[61:] == bytes.fromhex("10 00 00 00 02 6b 02 76 00 14 00 02 02 01 01 02 02 68 02 78")


def test_a_message_byte_by_byte():
    data = write_message(5, 1, 1000, None, b"v")
    assert data[:12] == bytes.fromhex("0000000000000005 00000017")  # offset, length; then the checksum
    assert data[16:] == bytes.fromhex("01 00 00000000000003e8 ffffffff 00000001 76")
    assert len(write_message(5, 0, -1, None, None)) == 26


def test_no_records_make_no_bytes():
    assert build_batch([]) == b""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"magic": 3}, "Invalid magic value 3"),
        ({"magic": 1, "is_transactional": True}, "Transactional records are not supported for magic 1"),
        ({"magic": 0, "is_control": True}, "Control records are not supported for magic 0"),
        ({"magic": 1, "codec": Codec.ZSTD}, "ZStandard compression is not supported for magic 1"),
        ({"magic": 1, "delete_horizon_ms": 5}, "Delete horizon timestamp is not supported for magic 1"),
        ({"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE}, "TimestampType must be set for magic >= 0"),
        ({"is_transactional": True}, "Cannot write transactional messages without a valid producer ID"),
        ({"producer_id": 1, "base_sequence": 0}, "Invalid negative producer epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "Invalid negative sequence number used"),
        (
            {"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
            "Idempotent messages are not supported for magic 1",
        ),
        (
            {"offsets": [3, 3]},
            "Illegal offset 3 following previous offset 3 (Offsets must increase monotonically).",
        ),
        ({"offsets": [0, 2**31]}, "Maximum offset delta exceeded, base offset: 0, last offset: 2147483648"),
        ({"offsets": [0]}, "1 offsets for 2 records"),
        ({"base_offset": 2**63}, "a field of the batch header does not fit"),
        ({"base_offset": 2**63, "magic": 1}, "a field of the message does not fit"),
        ({"delete_horizon_ms": 2**63}, "a field of the batch header does not fit"),
    ],
)
def test_errors_of_kafkas_builder_are_raised(options, text):
    with pytest.raises(InvalidArgumentError) as caught:
        build_batch([(1, None, None), (2, None, None)], **options)
    assert str(caught.value).startswith(text)


def test_records_that_kafkas_builder_rejects():
    with pytest.raises(InvalidArgumentError, match=r"^Invalid negative timestamp -2$"):
        build_batch([SimpleRecord(-2)])
    with pytest.raises(InvalidArgumentError, match=r"^Magic v1 does not support record headers$"):
        build_batch([SimpleRecord(1, headers=[("h", b"")])], magic=1)


def test_raw_writers_reject_unrepresentable_values():
    with pytest.raises(InvalidArgumentError, match=r"^Invalid magic value 1$"):
        write_batch(b"", base_offset=0, last_offset=0, count=0, magic=1)
    with pytest.raises(InvalidArgumentError, match=r"^Invalid message timestamp -2$"):
        write_batch(b"", base_offset=0, last_offset=0, count=0, base_timestamp=-2)
    with pytest.raises(InvalidArgumentError, match=r"^Timestamp type must be provided"):
        write_batch(b"", base_offset=0, last_offset=0, count=0, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)
    with pytest.raises(InvalidArgumentError, match=r"^Invalid magic value 2$"):
        write_message(0, 2, 1, None, None)
    with pytest.raises(InvalidArgumentError, match=r"^Invalid message timestamp -5$"):
        write_message(0, 1, -5, None, None)


# Control records.


@pytest.mark.parametrize("control_type", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_a_marker_is_read_again(control_type):
    marker = EndTransactionMarker(control_type, 17)
    data = end_transaction_marker(marker, producer_id=9, producer_epoch=1, offset=40, timestamp=5)
    (batch,) = iter_memory_batches(data)
    assert batch.is_control
    assert batch.is_transactional
    (record,) = batch
    assert (record.offset, record.timestamp, record.sequence) == (40, 5, -1)
    assert EndTransactionMarker.parse(record) == marker
    assert ControlRecordType.parse(record.key) is control_type


def test_a_marker_needs_a_producer():
    with pytest.raises(InvalidArgumentError):
        end_transaction_marker(EndTransactionMarker(ControlRecordType.COMMIT), producer_id=-1, producer_epoch=0)


@pytest.mark.parametrize(
    ("key", "control_type"),
    [
        (b"\x00\x00\x00\x00", ControlRecordType.ABORT),
        (b"\x00\x00\x00\x01", ControlRecordType.COMMIT),
        (b"\x00\x05\x00\x01more", ControlRecordType.COMMIT),
        (b"\x00\x00\x00\x06", ControlRecordType.KRAFT_VOTERS),
        (b"\x00\x00\x00\x07", ControlRecordType.UNKNOWN),
        (b"\x00\x00\xff\xff", ControlRecordType.UNKNOWN),
        (b"\x00\x00\xff\xfe", ControlRecordType.UNKNOWN),
    ],
)
def test_the_key_names_the_type(key, control_type):
    assert ControlRecordType.parse(key) is control_type


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"])
def test_a_damaged_key_is_an_invalid_record(key):
    with pytest.raises(InvalidRecordError):
        ControlRecordType.parse(key)


def test_only_commit_and_abort_end_a_transaction():
    with pytest.raises(InvalidArgumentError, match="LEADER_CHANGE"):
        EndTransactionMarker(ControlRecordType.LEADER_CHANGE)
    with pytest.raises(InvalidArgumentError, match="UNKNOWN"):
        _ = ControlRecordType.UNKNOWN.record_key
    for value in (None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"):
        with pytest.raises(InvalidRecordError):
            EndTransactionMarker.parse(Record(0, 0, ControlRecordType.ABORT.record_key, value))


# Variable-length integers.


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_are_read_again(value):
    data = write_varint(value)
    assert read_varint(data, 0) == (value, len(data))
    assert len(data) == size_of_varint(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_are_read_again(value):
    data = write_varlong(value)
    assert read_varlong(data, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (2**31 - 1, "feffffff0f"),
     (-(2**31), "ffffffff0f")],
)  # fmt: skip
def test_varints_are_protocol_buffers_zigzag(value, encoded):
    assert write_varint(value).hex() == encoded


def test_long_forms_are_read_and_bits_that_do_not_fit_are_dropped():
    assert read_varint(b"\x82\x80\x80\x80\x00", 0) == (1, 5)
    assert read_varint(b"\x82\x80\x80\x80\x70", 0) == (1, 5)
    assert read_varlong(b"\x82" + b"\x80" * 8 + b"\x7e", 0) == (1, 10)


def test_varints_without_an_end():
    with pytest.raises(InvalidArgumentError, match=r"converted value: f0000000$"):
        read_varint(b"\x80\x80\x80\x80\xff", 0)
    with pytest.raises(InvalidArgumentError, match=r"10th byte is set, converted value: 8000000000000000$"):
        read_varlong(b"\x80" * 9 + b"\xff", 0)
    for read in (read_varint, read_varlong):
        with pytest.raises(IndexError):
            read(b"\x80", 0)


def test_equal_records_are_equal():
    first, second = Record(1, 2, b"k", b"v"), Record(1, 2, b"k", b"v")
    assert first == second
    assert hash(first) == hash(second)
    assert first != Record(1, 2, b"k", b"w")
    assert first != struct
    assert "offset=1" in repr(first)
