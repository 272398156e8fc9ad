"""kidx's own rules for corrupt frames of lz4, compared with the newest release.

In a lockstep, the reference reads them with the libraries of its release instead (LG-64).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.implementations.jvm.log import JvmLog
from conformance.strategies.leader import CLAIMED
from kidx.records import Codec
from kidx.records.codecs import ReadMode, compress, decompress_all

pytestmark = pytest.mark.jvm

PLAIN = [b"one record or two, or more of them: one record or two" * 3, bytes(range(256)) * 300, b"x"]
FLAGS = ((0x60, 130), *CLAIMED)
"""Flags of a frame, all but the first of which claim checksums, and the byte of the header's own that goes along."""
BITS = (0x01, 0x02, 0x10, 0x40, 0x80)
BLOCKS = (
    b"\x01\x00\x00\x00\x00",  # empty
    b"\x00\x00\x00\x80",  # stored, of no bytes: the end
    b"\x03\x00\x00\x80abc",
    b"\x03\x00\x00\x80ab",
    b"\x02\x00\x00\x00\x10a",
    b"\x04\x00\x00\x00\x10a\x05\x00",  # a match before the beginning
    b"\x00\x00\x01\x00",
    b"\x01\x00\x01\x00",
    b"\x01\x02\x03",
)


def damaged(stream: bytes) -> Iterator[bytes]:
    """Yield the frame with other flags or blocks, truncated, longer, or with one of its first bytes changed."""
    for flags, own in FLAGS:
        frame = stream[:4] + bytes((flags, stream[5], own)) + stream[7:]
        yield from (frame[: len(frame) - cut] for cut in range(min(len(frame), 30)))
        yield from (frame[:-4] + block + stream[-4:] for block in BLOCKS)
        yield from (frame + trailing for trailing in BLOCKS)
        for position in range(min(len(frame), 60)):
            yield from (frame[:position] + bytes((frame[position] ^ bits,)) + frame[position + 1 :] for bits in BITS)


@pytest.mark.parametrize("plain", PLAIN, ids=["repeated", "several blocks", "one byte"])
def test_damaged_frames_are_read_as_the_newest_release_reads_them(plain):
    newest = JvmLog("4.4.0")
    for stream in damaged(compress(Codec.LZ4, plain)):
        expected = newest.decompress(Codec.LZ4, stream, 2, mode=ReadMode.FIELDS)
        found = decompress_all(Codec.LZ4, stream)
        assert expected is not None
        assert found is not None
        assert found.ending is expected.ending, stream.hex()
        assert found.plain == expected.plain, stream.hex()
