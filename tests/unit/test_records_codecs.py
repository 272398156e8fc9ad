"""The framing of the codecs: output of Kafka's libraries, and accepted and rejected input of their readers."""

from __future__ import annotations

import hashlib
import struct
import zlib

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx.errors import InvalidArgumentError
from kidx.records import Codec, RecordStreamError
from kidx.records.codecs import compress, decompress, decompress_all, gzip, lz4, snappy, zstd
from kidx.records.codecs.streams import ChunkedStreamReader

LARGE = b"".join(b"%d," % number for number in range(40_000))  # several blocks of every codec


def read(codec: Codec, data: bytes, magic: int = 2) -> bytes:
    return decompress(codec, data, magic).read(1 << 30)


@given(data=st.binary(max_size=2000), codec=st.sampled_from(Codec), magic=st.sampled_from((0, 1, 2)))
@settings(deadline=None)
def test_compressed_bytes_are_read_again(data, codec, magic):
    if codec is Codec.ZSTD:
        magic = 2
    assert read(codec, compress(codec, data, magic), magic) == data


@pytest.mark.parametrize("codec", Codec)
def test_several_blocks_are_read_in_any_steps(codec):
    compressed = compress(codec, LARGE)
    source = decompress(codec, compressed)
    pieces = []
    while not source.at_end():
        pieces.append(source.read(len(pieces) * 7 + 1))
    assert b"".join(pieces) == LARGE
    assert source.read(5) == b""


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_truncated_stream_returns_its_bytes_and_then_fails(codec):
    compressed = compress(codec, LARGE)
    for keep in {1, 5, 20, len(compressed) // 2, len(compressed) - 1}:
        with pytest.raises(RecordStreamError):
            read(codec, compressed[:keep])


def test_varints_are_read_up_to_the_end():
    source = decompress(Codec.NONE, b"\x02\x80\x02\x80")
    assert source.read_varint() == 1
    assert source.read_varint() == 128
    with pytest.raises(EOFError):
        source.read_varint()


@pytest.mark.parametrize("trailing", [b"", b"more"])
def test_varints_end_within_five_bytes(trailing):
    with pytest.raises(InvalidArgumentError):
        decompress(Codec.NONE, b"\xff" * 5 + trailing).read_varint()


def test_zstd_requires_v2():
    with pytest.raises(InvalidArgumentError, match=r"^ZStandard compression is not supported for magic 1$"):
        compress(Codec.ZSTD, b"", 1)


# gzip


def test_gzip_is_one_member_without_name_or_time():
    assert gzip.compress(b"x")[:10].hex() == "1f8b08000000000000ff"
    assert zlib.decompress(gzip.compress(LARGE), 31) == LARGE


def test_gzip_reads_every_optional_field():
    member = gzip.compress(b"body")
    head = member[:3] + b"\x1e" + member[4:10] + b"\x02\x00ab" + b"name\x00" + b"comment\x00"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    assert read(Codec.GZIP, head + member[10:]) == b"body"
    with pytest.raises(RecordStreamError, match="Corrupt GZIP header"):
        read(Codec.GZIP, head[:-1] + b"\x00" + member[10:])
    for cut in range(len(head)):
        with pytest.raises(RecordStreamError):
            decompress(Codec.GZIP, head[:cut])


def test_concatenated_gzip_members_are_read_if_they_are_long_enough():
    assert read(Codec.GZIP, gzip.compress(b"a" * 9) + gzip.compress(b"b" * 9)) == b"a" * 9 + b"b" * 9
    assert read(Codec.GZIP, gzip.compress(b"a") + b"not another member, but long enough to be one") == b"a"
    assert read(Codec.GZIP, gzip.compress(LARGE) + gzip.compress(b"b" * 9)) == LARGE + b"b" * 9


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda data: b"\x00" + data[1:], "Not in GZIP format"),
        (lambda data: data[:2] + b"\x07" + data[3:], "Unsupported compression method"),
        (lambda data: data[:-8] + b"\x00" * 8, "Corrupt GZIP trailer"),
        (lambda data: data[:-8] + b"\x00" * 7, "Corrupt GZIP trailer"),  # the checksum is checked first
        (lambda data: data[:-3], "ends inside its trailer"),
        (lambda data: data[:-9], "Unexpected end of ZLIB input stream"),
        (lambda data: data[:10] + b"\xff" * 20, "invalid"),
    ],
)
def test_gzip_damage_is_named(damage, text):
    with pytest.raises(RecordStreamError, match=text):
        read(Codec.GZIP, damage(gzip.compress(LARGE[:500])))


# snappy


def test_snappy_has_xerials_header_and_blocks_of_32_kib():
    data = snappy.compress(LARGE)
    assert data[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    sizes, position = [], 16
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        sizes.append(len(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + size])))
        position += 4 + size
    assert set(sizes[:-1]) == {32 * 1024}


def test_snappy_takes_a_plain_block_too():
    assert read(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(LARGE))) == LARGE
    with pytest.raises(RecordStreamError, match="empty stream"):
        decompress(Codec.SNAPPY, b"")


def test_concatenated_snappy_streams_are_read():
    stream = snappy.compress(b"a")
    assert read(Codec.SNAPPY, stream + snappy.compress(b"b") + b"xyz") == b"ab"
    assert read(Codec.SNAPPY, stream + b"\x82SNAxxxxyyyyzzzz" + stream) == b"a"
    with pytest.raises(RecordStreamError, match="Insufficient header size"):
        read(Codec.SNAPPY, stream + stream[:9])
    with pytest.raises(RecordStreamError, match="incompatible codec version"):
        read(Codec.SNAPPY, stream + stream[:8] + b"\x00" * 8)


@pytest.mark.parametrize(
    "block", [b"\xff\xff\xff\xff", b"\x7f\x00\x00\x00", b"\x00\x00\x00\x09ab", b"\x00\x00\x00\x00"]
)
def test_snappy_blocks_that_cannot_be(block):
    with pytest.raises(RecordStreamError):
        read(Codec.SNAPPY, snappy.compress(b"a") + block)


def test_snappy_allocates_nothing_for_a_block_with_a_wrong_size():
    with pytest.raises(RecordStreamError, match="claims more bytes than it can hold"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"x" * 30)


# lz4


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32(data, digest):
    assert lz4.xxh32(data) == digest


def test_lz4_is_a_frame_that_others_read():
    data = lz4.compress(LARGE)
    assert data[:7].hex() == "04224d18604082"
    assert bytes(cramjam.lz4.decompress(data)) == LARGE
    assert lz4.compress(b"")[7:] == b"\x00" * 4
    assert lz4.compress(b"", broken_header=True)[6] == 0x1A


def test_lz4_stores_incompressible_data():
    incompressible = hashlib.shake_128(b"any").digest(1 << 16)
    data = lz4.compress(incompressible)
    assert struct.unpack_from("<I", data, 7)[0] == len(incompressible) | 1 << 31
    assert read(Codec.LZ4, data) == incompressible


def test_lz4_frames_of_others_are_read():
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    compressor.compress(LARGE)
    assert read(Codec.LZ4, bytes(compressor.finish()) + b"whatever follows") == LARGE


def frame(flags: int, descriptor: int, rest: bytes = b"", size: bytes = b"") -> bytes:
    head = struct.pack("<IBB", 0x184D2204, flags, descriptor) + size
    return head + bytes((lz4.xxh32(head[4:]) >> 8 & 0xFF,)) + rest


END = b"\x00" * 4


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x04\x22\x4d\x18\x60", "ended prematurely"),
        (b"\x00" * 20, "invalid magic bytes"),
        (frame(0x61, 0x40, END), "Reserved bits must be 0"),
        (frame(0x40, 0x40, END), "Dependent block stream is unsupported"),
        (frame(0xA0, 0x40, END), "Version 2 is unsupported"),
        (frame(0x60, 0x41, END), "invalid block descriptor"),
        (frame(0x60, 0xC0, END), "invalid block descriptor"),
        (frame(0x60, 0x30, END), "invalid block descriptor"),
        (frame(0x68, 0x40), "ended prematurely"),
        (frame(0x60, 0x40)[:6], "ended prematurely"),
        (frame(0x60, 0x40)[:6] + b"\x00" + END, "descriptor corrupted"),
        (frame(0x60, 0x40), "ended prematurely"),
        (frame(0x64, 0x40, END), "content checksum"),
        (frame(0x60, 0x40, b"\x01\x00\x01\x00"), "Block size 65537 exceeded max: 65536"),
        (frame(0x60, 0x40, b"\x05\x00\x00\x80abc"), "ended prematurely"),
        (frame(0x60, 0x40, b"\x03\x00\x00\x00\xff\xff\xff" + END), "lz4: "),
        (frame(0x70, 0x40, b"\x03\x00\x00\x80abc" + b"\x00" * 4 + END), "Block checksum mismatch"),
    ],
)
def test_lz4_damage_is_named(data, text):
    with pytest.raises(RecordStreamError, match=text):
        read(Codec.LZ4, data)


def test_lz4_checks_block_checksums_and_skips_the_content_size():
    checksum = struct.pack("<I", lz4.xxh32(b"abc"))
    block = b"\x03\x00\x00\x80abc" + checksum
    assert read(Codec.LZ4, frame(0x7C, 0x70, block + END + b"sum!", size=b"12345678")) == b"abc"


def test_lz4_blocks_may_not_outgrow_the_maximum():
    block = bytes(cramjam.lz4.compress_block(b"a" * 65537, store_size=False))
    with pytest.raises(RecordStreamError):
        read(Codec.LZ4, frame(0x60, 0x40, struct.pack("<I", len(block)) + block + END))
    assert read(Codec.LZ4, frame(0x60, 0x50, struct.pack("<I", len(block)) + block + END)) == b"a" * 65537


# zstd


def in_one_go(plain):
    """Compress to a frame whose last block is not empty, with the size of all in its header."""
    return bytes(cramjam.zstd.compress(plain, 3))


def test_zstd_is_written_as_a_stream_that_is_flushed_before_it_ends():
    """The bytes that Kafka's own builder makes of a record with a value of five bytes."""
    plain = bytes.fromhex("16000000010a000102030400")
    assert zstd.compress(plain).hex() == "28b52ffd005860000016000000010a000102030400010000"
    assert read(Codec.ZSTD, zstd.compress(LARGE)) == LARGE


def test_concatenated_zstd_frames_are_read():
    skippable = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert read(Codec.ZSTD, zstd.compress(b"a") + skippable + zstd.compress(b"b")) == b"ab"
    assert read(Codec.ZSTD, b"") == b""


@pytest.mark.parametrize("trailing", [b"\x28", in_one_go(b"ab")[:-1], b"\x5a\x2a\x4d\x18\x03\x00\x00\x00a"])
def test_zstd_detects_a_missing_end_of_a_later_frame(trailing):
    """``ZstdInputStream`` asks whether a frame has ended since it read compressed bytes for the last time."""
    given = decompress_all(Codec.ZSTD, trailing).plain
    assert read(Codec.ZSTD, zstd.compress(b"a") + trailing) == b"a" + given
    skippable = b"\x5a\x2a\x4d\x18\xfb\xff\x01\x00" + bytes(0x1FFFB)  # as many bytes as it reads at a time
    assert len(skippable) == 128 * 1024 + 3
    with pytest.raises(RecordStreamError, match="Truncated source"):
        read(Codec.ZSTD, skippable + trailing)
    assert read(Codec.ZSTD, skippable + zstd.compress(b"a") + trailing) == b"a" + given


@pytest.mark.parametrize("stray", [b"s", b"stray bytes"])
def test_zstd_frames_before_the_damage_are_given(stray):
    source = decompress(Codec.ZSTD, zstd.compress(b"a") + stray)
    assert source.read(1) == b"a"
    with pytest.raises(RecordStreamError):
        source.at_end()


@pytest.mark.parametrize("plain", [b"ab", b"ab" * 100, LARGE], ids=["raw", "one block", "several blocks"])
def test_zstd_gives_the_blocks_before_a_cut(plain):
    compressed = in_one_go(plain)
    # Without the last-block flag all bytes are present, but the end is missing.
    cut = compressed[:6] + bytes((compressed[6] & 0xFE,)) + compressed[7:] if plain != LARGE else compressed[:-10]
    source = decompress(Codec.ZSTD, cut)
    given = source.read(len(plain) if plain != LARGE else 128 * 1024)
    assert given
    assert plain.startswith(given)
    with pytest.raises(RecordStreamError):
        source.read(len(plain))


@pytest.mark.parametrize("byte", [4, 7])
def test_zstd_returns_nothing_of_a_corrupt_frame(byte):
    damaged = bytearray(in_one_go(b"ab"))
    damaged[byte] ^= 0xFF
    with pytest.raises(RecordStreamError):
        decompress(Codec.ZSTD, bytes(damaged)).read(1)


def test_zstd_rejects_a_frame_that_could_fill_the_memory():
    repeated = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"x"  # 128 KiB out of four bytes
    header = b"\x28\xb5\x2f\xfd\x00\x58"
    with pytest.raises(RecordStreamError, match="more than 2147483639"):
        read(Codec.ZSTD, header + repeated * 20_000)


def source(*blocks: bytes) -> ChunkedStreamReader:
    return ChunkedStreamReader(iter(blocks))


def frame_of(*blocks: bytes) -> bytes:
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
    found = decompress_all(Codec.LZ4, frame_of(b"ab", b"", b"cd"))
    assert found is not None
    assert (found.plain, found.blocks) == (b"abcd", (2, 0, 2))
    assert list(found.chunks()) == [b"ab", b"", b"cd"]
    read = decompress(Codec.LZ4, frame_of(b"ab", b"", b"cd"))
    assert [read.read(9), read.read(9)] == [b"ab", b"cd"]
    assert decompress(Codec.LZ4, frame_of(b"ab", b"", b"cd"), 1).read(9) == b"ab"
