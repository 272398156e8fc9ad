"""The mapped file alone: Java's cursor, its limits and its errors (the basis of AI-40, OI-13 and TI-5)."""

from __future__ import annotations

import os
import struct

import pytest

from kidx.errors import BufferOverflowError, InvalidArgumentError, OutOfBoundsError, ReadOnlyError
from kidx.index.mapped_buffer import MappedBuffer

INT = struct.Struct(">i")
LONG = struct.Struct(">q")


@pytest.fixture
def mapped(tmp_path):
    """Map a file with given bytes; the mapping is closed at the end of the test."""
    buffers = []

    def map_file(content: bytes, *, writable: bool = True) -> MappedBuffer:
        path = tmp_path / "a"
        path.write_bytes(content)
        descriptor = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            buffers.append(MappedBuffer(descriptor, len(content), writable=writable, name="a"))
        finally:
            os.close(descriptor)
        return buffers[-1]

    yield map_file
    for buffer in buffers:
        buffer.close()


def test_puts_follow_each_other(mapped, tmp_path):
    """The cursor moves past each field, and the bytes are immediately in the file, because the mapping is shared."""
    buffer = mapped(bytes(12))
    buffer.put(INT, 1)
    buffer.put(LONG, -1)
    assert buffer.position == 12
    assert (tmp_path / "a").read_bytes() == bytes.fromhex("00000001 ffffffffffffffff")


def test_a_put_without_room_writes_nothing(mapped, tmp_path):
    """Four bytes fit where eight do not: the eight are rejected completely, and the cursor does not move (TI-5)."""
    buffer = mapped(bytes(12))
    buffer.seek(8)
    with pytest.raises(BufferOverflowError, match="a: 5 takes 8 bytes at 8 and does not fit in 12") as refusal:
        buffer.put(LONG, 5)
    assert refusal.value.kafka_message is None
    assert buffer.position == 8
    assert (tmp_path / "a").read_bytes() == bytes(12)
    buffer.put(INT, 5)


def test_a_read_only_mapping_is_not_written(mapped):
    """The read-only error precedes the error for missing capacity, as in java.nio; the cursor does not move (OI-13)."""
    buffer = mapped(bytes(8), writable=False)
    for position in (0, 8):
        buffer.seek(position)
        with pytest.raises(ReadOnlyError, match="a is mapped read-only; 5 cannot be written"):
            buffer.put(INT, 5)
        assert buffer.position == position


def test_a_number_beyond_the_types_of_java_is_rejected(mapped):
    """If a value is too wide for the field, the error names file and value, and the cursor does not move."""
    buffer = mapped(bytes(8))
    with pytest.raises(InvalidArgumentError, match=f"a: {2**31} is not a signed number of 4 bytes"):
        buffer.put(INT, 2**31)
    assert buffer.position == 0


@pytest.mark.parametrize("position", [0, 3, 4])
def test_reads_do_not_move_the_cursor(mapped, position):
    """Any byte position will do, aligned or not."""
    buffer = mapped(bytes(range(8)))
    assert buffer.get(INT, position) == int.from_bytes(bytes(range(8))[position : position + 4])
    assert buffer.position == 0


@pytest.mark.parametrize("position", [-1, -4, 5, 8, 2**40])
def test_a_read_outside_the_file_is_rejected(mapped, position):
    """Also a negative position, which Python would count from the end (OI-8)."""
    with pytest.raises(OutOfBoundsError, match=f"a: 4 bytes at {position} are not within 0..8") as refusal:
        mapped(bytes(8)).get(INT, position)
    assert refusal.value.kafka_message is None


@pytest.mark.parametrize(("position", "text"), [(9, "newPosition > limit: (9 > 8)"), (-1, "newPosition < 0: (-1 < 0)")])
def test_the_cursor_remains_within_the_limit(mapped, position, text):
    """The limit itself is a position; the errors have java.nio's texts (AI-11)."""
    buffer = mapped(bytes(8))
    buffer.seek(8)
    with pytest.raises(InvalidArgumentError, match=f"a: position {position} is not within 0..8") as refusal:
        buffer.seek(position)
    assert refusal.value.kafka_message == text
    assert buffer.position == 8


@pytest.mark.parametrize("writable", [True, False])
def test_an_empty_mapping_has_nothing_to_read_or_write(mapped, writable):
    """POSIX has no empty mapping, Java has: it flushes and closes, and every access is out of bounds."""
    buffer = mapped(b"", writable=writable)
    buffer.seek(0)
    buffer.flush()
    with pytest.raises(OutOfBoundsError):
        buffer.get(INT, 0)
    with pytest.raises(BufferOverflowError if writable else ReadOnlyError):
        buffer.put(INT, 0)
    buffer.close()


@pytest.mark.parametrize("writable", [True, False])
def test_flush_keeps_the_content(mapped, writable, tmp_path):
    """A read-only mapping has nothing to write and says nothing."""
    buffer = mapped(b"\x01" * 8, writable=writable)
    buffer.flush()
    assert (tmp_path / "a").read_bytes() == b"\x01" * 8


def test_more_than_java_can_map_is_rejected(tmp_path):
    """2 GiB, sparse: Kafka cannot open such an index either, and says the same. One byte less is fine."""
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, 2**31)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(InvalidArgumentError, match=f"a: {2**31} bytes are more than the {2**31 - 1}") as refusal:
            MappedBuffer(descriptor, 2**31, writable=False, name="a")
        MappedBuffer(descriptor, 2**31 - 1, writable=False, name="a").close()
    finally:
        os.close(descriptor)
    assert refusal.value.kafka_message == "Size exceeds Integer.MAX_VALUE"
