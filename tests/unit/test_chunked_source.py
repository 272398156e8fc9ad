"""Blocks of lz4 of which some are empty, read through Kafka's buffer of 2 KiB (LG-76)."""

from __future__ import annotations

import pytest

from kidx.errors import InvalidArgumentError
from kidx.records import Codec
from kidx.records.codecs import decompress, decompress_all
from kidx.records.codecs.streams import ChunkedStreamReader


def source(*blocks: bytes) -> ChunkedStreamReader:
    return ChunkedStreamReader(iter(blocks))


def frame(*blocks: bytes) -> bytes:
    """Build a frame of stored blocks and empty blocks."""
    sized = [(len(block) | 1 << 31).to_bytes(4, "little") + block if block else b"\1\0\0\0\0" for block in blocks]
    return bytes.fromhex("04224d18604082") + b"".join(sized) + bytes(4)


def test_a_read_ends_at_an_empty_block_and_continues_after_it():
    blocks = source(b"ab", b"", b"cd")
    assert [blocks.read(3), blocks.read(3), blocks.read(3)] == [b"ab", b"cd", b""]


def test_more_than_the_buffer_is_read_over_empty_blocks():
    assert source(b"ab", b"", b"", b"cd").read(5000) == b"abcd"
    assert source(bytes(3000), b"", b"cd").read(3003) == bytes(3000)  # three more are read through the buffer


def test_a_number_takes_an_empty_block_for_a_byte_of_minus_one():
    assert source(b"\x80", b"", b"\x01").read_varint() == 16320
    with pytest.raises(InvalidArgumentError):
        source(b"\x80").read_varint()


def test_a_skip_over_an_empty_block_changes_the_place_of_bytes():
    blocks = source(b"ab", b"", b"cdef", b"gh")
    assert blocks.skip(4) == 4  # a and b, c through the buffer, which keeps def, and g
    assert blocks.read(3) == b"def"
    assert blocks.read(3) == b"h"


def test_a_skip_ends_at_two_empty_blocks():
    blocks = source(b"ab", b"", b"", b"cd")
    assert blocks.skip(3) == 2
    assert blocks.at_end() is False
    assert blocks.skip(9) == 2
    assert blocks.at_end() is True


def test_kidx_reads_blocks_like_the_newest_release():
    found = decompress_all(Codec.LZ4, frame(b"ab", b"", b"cd"))
    assert found is not None
    assert (found.plain, found.blocks) == (b"abcd", (2, 0, 2))
    assert list(found.chunks()) == [b"ab", b"", b"cd"]
    read = decompress(Codec.LZ4, frame(b"ab", b"", b"cd"))
    assert [read.read(9), read.read(9)] == [b"ab", b"cd"]
    assert decompress(Codec.LZ4, frame(b"ab", b"", b"cd"), 1).read(9) == b"ab"
