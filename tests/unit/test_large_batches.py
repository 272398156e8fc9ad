"""Batches of megabytes that decompress to gigabytes: memory remains bounded, and results are right."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kidx.errors import KidxError
from kidx.records import Codec, LargeBatchError, OffsetTimestamp, SimpleRecord, build_batch, iter_batches
from kidx.records import offset_timestamps as offset_timestamps_module
from kidx.records.codecs import compress, decompress
from kidx.records.codecs import zstd as zstd_codec
from kidx.scan import decode_batch

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]

# Makes a segment with one gzip batch of 5 records whose values are 200 MiB of zeros each, piece by piece.
BOMB = """
import struct, sys, zlib
import google_crc32c
from kidx.records.varint import write_varint, write_varlong
size, count = 200 << 20, 5
deflate = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
parts = []
for number in range(count):
    head = b"\\0" + write_varlong(number) + write_varint(number) + write_varint(-1) + write_varint(size)
    parts.append(deflate.compress(write_varint(len(head) + size + 1) + head))
    for _ in range(size >> 20):
        parts.append(deflate.compress(bytes(1 << 20)))
    parts.append(deflate.compress(b"\\0"))
parts.append(deflate.flush())
records = b"".join(parts)
rest = struct.pack(">hiqqqhii", 1, count - 1, 1000, 1000 + count - 1, -1, -1, -1, count) + records
crc = google_crc32c.value(rest)
batch = struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, crc) + rest
open(sys.argv[1], "wb").write(batch)
"""
MEASURED = """
import sys
from pathlib import Path
from kidx.cli import main
try:
    main()
finally:  # of this program alone: what getrusage says begins with the size of the process that has started it
    (peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    print("peak", int(peak.split()[1]) >> 10, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    directory = tmp_path_factory.mktemp("bomb") / "t-0"
    directory.mkdir()
    subprocess.run([sys.executable, "-c", BOMB, str(directory / f"{0:020d}.log")], check=True)
    for suffix in (".index", ".timeindex"):
        (directory / f"{0:020d}{suffix}").touch()
    return directory


def measured(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    *_, last = done.stderr.splitlines()
    return done, int(last.removeprefix("peak "))


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
@pytest.mark.thorough
def test_a_search_by_timestamp_needs_little_memory_for_gigabytes(bomb, release):
    """That holds whether the release reads the whole batch before the first record, or only as far as necessary."""
    done, peak = measured("lookup", bomb, "--timestamp", 1002, "--kafka", release)
    assert (done.returncode, done.stdout) == (0, "1002: offset 2, timestamp 1002, leader epoch 0\n")
    assert peak < 400, f"{peak} MiB"


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
@pytest.mark.parametrize("held", [None, 100])
def test_offset_timestamps_equal_those_of_the_records(codec, held, monkeypatch):
    """The results are the same if no record fits in memory and every record is skipped."""
    records = [SimpleRecord(number * 7, b"key", b"v" * number * 90, [("h", b"x" * number)]) for number in range(50)]
    batch = next(iter_batches(build_batch(records, codec=codec, base_offset=5)))
    expected = [OffsetTimestamp(record.offset, record.timestamp) for record in batch]
    assert len(expected) == 50
    if held is not None:
        monkeypatch.setattr(offset_timestamps_module, "MAX_HELD", held)
        monkeypatch.setattr(offset_timestamps_module, "LARGE_RECORD", held)
        monkeypatch.setattr(zstd_codec, "_WHOLE", 0)
    for streaming in (False, True):
        assert list(batch.offset_timestamps(streaming=streaming)) == expected
    again = list(batch)
    assert [OffsetTimestamp(record.offset, record.timestamp) for record in again] == expected
    assert [record.value for record in again] == [record.value for record in records]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[:3], ids=lambda codec: codec.label)
def test_stamps_of_old_formats(magic, codec, monkeypatch):
    records = [SimpleRecord(number * 7, b"key", b"v" * number * 90) for number in range(50)]
    batch = next(iter_batches(build_batch(records, codec=codec, base_offset=5, magic=magic)))
    expected = [OffsetTimestamp(record.offset, record.timestamp) for record in batch]
    monkeypatch.setattr(offset_timestamps_module, "MAX_HELD", 100)
    assert list(batch.offset_timestamps()) == expected
    assert [record.value for record in batch] == [record.value for record in records]
    assert batch.base_offset == 5


def outcome(make):
    try:
        return list(make())
    except KidxError as error:
        return type(error), str(error), error.kafka_message


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.label)
def test_corruption_raises_the_same_error_for_any_way_of_reading(codec, monkeypatch):
    """Of every cut and every changed byte of the records: the same error, or the same numbers."""
    records = [SimpleRecord(number, b"k" * 3, b"v" * 40, [("head", b"x"), ("er", None)]) for number in range(3)]
    plain = decompress(codec, build_batch(records, codec=codec)[61:]).read(1 << 20)
    damaged = [plain[:end] for end in range(len(plain))]
    damaged += [plain[:at] + bytes([new]) + plain[at + 1 :] for at in range(len(plain)) for new in (0, 1, 0x7F, 0xFF)]
    header = build_batch(records, codec=codec)[:61]
    batches = []
    for content in damaged:
        data = compress(codec, content)
        length = (49 + len(data)).to_bytes(4)
        batches.append(next(iter_batches(header[:8] + length + header[12:] + data)))
    expected = [outcome(lambda b=batch: [OffsetTimestamp(r.offset, r.timestamp) for r in b]) for batch in batches]
    monkeypatch.setattr(offset_timestamps_module, "LARGE_RECORD", 0)
    assert [outcome(batch.offset_timestamps) for batch in batches] == expected
    assert len({each if isinstance(each, tuple) else "right" for each in expected}) > 4


@pytest.mark.parametrize("content", [b"", b"a", bytes(range(256)) * 3000])
def test_zstd_frames_in_pieces(content, monkeypatch):
    """The bytes are the same, and a truncated or corrupt frame raises."""
    data = compress(Codec.ZSTD, content) + compress(Codec.ZSTD, b"second")
    monkeypatch.setattr(zstd_codec, "_WHOLE", -1)
    assert decompress(Codec.ZSTD, data).read(1 << 30) == content + b"second"
    for broken in (compress(Codec.ZSTD, content)[:-3], data[:4] + b"\xff" + data[5:]):
        with pytest.raises(KidxError, match="zstd: "):
            decompress(Codec.ZSTD, broken).read(1 << 30)


def test_columns_of_a_batch_are_bounded(monkeypatch):
    """Larger columns raise their own error, and can be iterated over."""
    batch = next(iter_batches(build_batch([SimpleRecord(1, None, bytes(5000))], codec=Codec.GZIP)))
    assert len(decode_batch(batch).rows) == 1
    monkeypatch.setattr("kidx.scan.records._LARGEST", 4000)
    with pytest.raises(LargeBatchError, match="at position 0 has more than 4000 bytes of records"):
        decode_batch(batch)
