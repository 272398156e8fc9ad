"""The end of the batches of a file or a payload (RB-4)."""

from __future__ import annotations

import mmap
import struct

import pytest

from kidx.errors import InvalidArgumentError
from kidx.records import CorruptRecordError, build_batch, iter_batches, iter_memory_batches

FIRST = build_batch([(1, b"k", b"v")])
SECOND = build_batch([(2, b"k", b"w")], base_offset=1)


def head(length: int, magic: int = 2) -> bytes:
    return struct.pack(">qiib", 0, length, 0, magic)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("batches", [iter_batches, iter_memory_batches])
def test_concatenated_batches_are_read(batches, wrap):
    found = list(batches(wrap(FIRST + SECOND)))
    assert [(batch.position, batch.size_in_bytes) for batch in found] == [
        (0, len(FIRST)),
        (len(FIRST), len(SECOND)),
    ]
    assert [batch.to_bytes() for batch in found] == [FIRST, SECOND]
    assert all(batch.is_valid for batch in found)
    assert [batch.base_offset for batch in batches(wrap(FIRST + SECOND), len(FIRST))] == [1]
    assert [batch.base_offset for batch in batches(wrap(FIRST + SECOND), 0, len(FIRST))] == [0]


def test_a_memory_map_is_read_in_place():
    with mmap.mmap(-1, len(FIRST)) as mapped:
        mapped[:] = FIRST
        assert [record.value for batch in iter_batches(mapped) for record in batch] == [b"v"]


@pytest.mark.parametrize("missing", range(1, len(SECOND) + 1))
def test_a_truncated_batch_is_skipped(missing):
    data = (FIRST + SECOND)[:-missing]
    assert [batch.position for batch in iter_batches(data)] == [0]
    assert [batch.position for batch in iter_memory_batches(data)] == [0]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_file_ends_17_bytes_early_and_a_payload_does_not(magic):
    """A length of 0 is only detected where a header is read."""
    data = head(0, magic)
    assert list(iter_batches(data)) == []
    with pytest.raises(CorruptRecordError, match=r"^Record size 0 is less than the minimum record overhead \(14\)$"):
        list(iter_memory_batches(data))
    assert list(iter_memory_batches(data[:11])) == []
    with pytest.raises(CorruptRecordError, match=r"^Record size 0 is less"):
        list(iter_memory_batches(data[:12]))
    with pytest.raises(
        CorruptRecordError, match=r"^Found record size 0 smaller than minimum record overhead \(14\) in file x.log\.$"
    ):
        list(iter_batches(data + b"\x00", source="x.log"))


def test_batches_before_the_damage_are_given():
    for batches in (iter_batches, iter_memory_batches):
        stream = batches(FIRST + head(-5) + b"\x00" * 50)
        assert next(stream).is_valid
        with pytest.raises(CorruptRecordError, match="-5"):
            next(stream)


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_an_unknown_magic_is_rejected_in_memory_and_read_from_a_file(magic):
    data = FIRST[:16] + struct.pack(">b", magic) + FIRST[17:]
    with pytest.raises(CorruptRecordError, match=f"^Invalid magic found in record: {magic}$"):
        list(iter_memory_batches(data))
    (batch,) = iter_batches(data)
    assert (batch.magic, batch.base_offset if magic > 0 else batch.last_offset) == (magic, 0)
    assert (batch.count is None) == (magic < 0)
    if magic > 0:
        assert [record.value for record in batch] == [b"v"]
    else:
        with pytest.raises(InvalidArgumentError, match=r"^Invalid magic used in LegacyRecord: -1$"):
            _ = batch.max_timestamp


def test_a_payload_may_limit_the_size():
    assert len(list(iter_memory_batches(FIRST, max_message_size=len(FIRST) - 12))) == 1
    with pytest.raises(CorruptRecordError, match="exceeds the largest allowable message size"):
        list(iter_memory_batches(FIRST, max_message_size=len(FIRST) - 13))


def test_a_length_at_the_end_of_an_int_overflows_in_memory():
    with pytest.raises(InvalidArgumentError, match=r"newLimit < 0: \(-2147483648 < 0\)"):
        list(iter_memory_batches(head(2**31 - 12)))
    assert list(iter_memory_batches(head(2**31 - 13))) == []


def test_bounds_are_checked():
    with pytest.raises(InvalidArgumentError, match="cannot be negative, but it is -1"):
        list(iter_batches(FIRST, -1))
    with pytest.raises(CorruptRecordError, match="Unexpected EOF while attempting to read the next batch"):
        list(iter_batches(b"", 0, 100))
    for start, end in ((-1, None), (5, 3), (0, 10_000)):
        with pytest.raises(InvalidArgumentError):
            list(iter_memory_batches(FIRST, start, end))
