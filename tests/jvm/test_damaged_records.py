"""Every corruption of a compressed batch, and the errors of releases on both sides of each change of rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from thorough_params import thorough_except

from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.machines.segment import SegmentMachine
from conformance.operations import Operation
from conformance.scratch import scratch_directory
from conformance.strategies.leader import CLAIMED
from kidx.layout import LOG_OVERHEAD, RECORD_BATCH, RECORD_BATCH_OVERHEAD
from kidx.records import Codec, SimpleRecord, build_batch, write_batch
from kidx.records.builder import write_checksum
from kidx.records.codecs import compress
from kidx.records.record import write_record

pytestmark = pytest.mark.jvm

SIDES = ("2.4.1", "2.6.3", "2.7.2", "2.8.2", "3.1.2", "3.5.2", "3.6.2", "4.4.0")
"""SEG-47 and SEG-54 end with 2.6, the search for headers beyond the record with 2.7, SEG-48 and SEG-49 with 3.5; 4.4
streams. Each has another version of zstd (LG-64)."""

OPEN = Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1000))
RECORDS = [SimpleRecord(1000, b"k", b"value", (("h", b"v"),)), SimpleRecord(1007, None, b"", ())]
BODY = b"".join(write_record(number, record.timestamp - 1000, record) for number, record in enumerate(RECORDS))
_BLOCKS = RECORD_BATCH_OVERHEAD + 17
"""Positions before it have the header, and the byte of a block's size that Kafka up to 3.4 allocates."""
ENDLESS = b"\x80" * 11
FRAME = bytes.fromhex("28b52ffd0058")
"""The header of a frame of zstd."""


def with_header(batch: bytes) -> bytes:
    """Return the batch with its present length, and a matching checksum."""
    changed = bytearray(batch)
    RECORD_BATCH.set(changed, "length", len(batch) - LOG_OVERHEAD)
    write_checksum(changed)
    return bytes(changed)


def flipped(data: bytes, position: int, bits: int) -> bytes:
    return data[:position] + bytes((data[position] ^ bits,)) + data[position + 1 :]


def batch_of(stream: bytes, codec: Codec = Codec.ZSTD, count: int = 2) -> bytes:
    """Return a batch of the stream whose records every search reads: its maximal timestamp exceeds theirs."""
    return write_batch(
        stream, base_offset=0, last_offset=1, count=count, codec=codec, base_timestamp=1000, max_timestamp=2000
    )


def block(kind: int, data: bytes, size: int | None = None, *, last: bool = False) -> bytes:
    """Build a block of a frame of zstd: raw (0), one byte repeated (1), compressed (2) or reserved (3)."""
    return (last | kind << 1 | (len(data) if size is None else size) << 3).to_bytes(3, "little") + data


def damaged_records(codec: Codec) -> Iterator[bytes]:
    """Yield sound streams of corrupt records: flipped bytes, endless numbers, truncations, wrong counts."""
    bodies = [flipped(BODY, position, bits) for position in range(len(BODY)) for bits in (0x01, 0x40, 0x80)]
    bodies += [BODY[:position] + ENDLESS + BODY[position + 1 :] for position in range(len(BODY))]
    bodies += [BODY[:position] for position in range(len(BODY))]
    for count, body in [(1, BODY), (3, BODY), (-1, BODY), *((2, body) for body in bodies)]:
        stream = compress(codec, body)
        yield batch_of(stream, codec, count)


def damaged_streams(codec: Codec) -> Iterator[bytes]:
    """Yield streams that are truncated anywhere, and with each byte flipped."""
    batch = build_batch(RECORDS, codec=codec)
    for position in range(RECORD_BATCH_OVERHEAD, len(batch)):
        yield batch[:position]
        if codec is not Codec.SNAPPY or position >= _BLOCKS:
            yield flipped(batch, position, 0x01)


def cut_raw_blocks() -> Iterator[bytes]:
    """Yield frames of zstd that end inside a raw block, corrupt in every place, or after a whole block."""
    for position in range(len(BODY)):
        yield batch_of(FRAME + block(0, flipped(BODY, position, 0x40), len(BODY) + 50))
    for cut in range(len(BODY)):
        for count in (1, 2, 3):
            whole = block(0, BODY[:cut]) if cut else b""
            yield batch_of(FRAME + whole + block(0, BODY[cut:] + BODY, 2 * len(BODY) + 50), count=count)


def claiming_frames() -> Iterator[bytes]:
    """Yield frames of lz4 that claim a content checksum, a block's or both, and end anywhere (LG-75)."""
    stream = compress(Codec.LZ4, BODY)
    for flags, own in CLAIMED:
        claiming = stream[:4] + bytes((flags, stream[5], own)) + stream[7:]
        for cut in range(12):
            yield batch_of(claiming[: len(claiming) - cut], Codec.LZ4)
            yield batch_of(claiming[: len(claiming) - cut], Codec.LZ4, 3)


def damaged_frames() -> Iterator[bytes]:
    """Yield frames of raw, repeated and compressed blocks; with each byte flipped, trailing bytes, or truncated."""
    raw, empty = block(0, BODY), block(0, b"", last=True)
    sequences = compress(Codec.ZSTD, BODY * 3)[6:]
    for stream in (FRAME + raw + empty, FRAME + block(0, BODY[:9]) + block(0, BODY[9:], last=True), FRAME + sequences):
        for trailing in (b"", b"\x01", b"\x28", b"\x01\x02\x03", b"123456789", FRAME[:5], FRAME + raw, FRAME + empty):
            yield stream + trailing
        for position in range(len(stream)):
            for bits in (0x01, 0x02, 0x40):
                yield flipped(stream, position, bits)
    for bad in (
        block(3, b"12345"),
        block(1, b"", 50),
        block(1, b"a", 50),
        block(2, b"12345"),
        block(0, b"123", 1 << 18),
    ):
        for head in (b"", block(0, BODY[:9]), raw):
            yield FRAME + head + bad
            yield FRAME + raw + empty + FRAME + head + bad


@pytest.fixture(scope="module")
def lockstep(thorough):
    some = SIDES if thorough else SIDES[-3:]
    with scratch_directory() as scratch:
        yield SegmentLockstep([SegmentMachine.subject("jvm", release) for release in some], scratch)


def hold(lockstep: SegmentLockstep, batches: Iterable[bytes]) -> None:
    """Search the batch with every participant for the first of its records and for one that it may have."""
    for batch in batches:
        lockstep.begin()
        try:
            lockstep.perform(OPEN)
            lockstep.perform(Operation("append_records", (with_header(batch).hex(), 1, 2000, 1)))
            for timestamp in (0, 1007):
                lockstep.perform(Operation("find_offset", (timestamp, 0, (1 << 31) - 9)))
        finally:
            lockstep.end()


@pytest.mark.thorough
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4], ids=lambda codec: codec.label)
def test_corrupt_records_raise_the_same_errors(lockstep, codec):
    hold(lockstep, damaged_records(codec))
    if codec is not Codec.NONE:
        assert lockstep.statistics.exercised("3.5.2")["SEG-48"]
        assert not lockstep.statistics.exercised("3.6.2")["SEG-48"]


def test_a_participant_without_enough_memory_is_not_compared(lockstep):
    """Kafka allocates the size that a record claims; here it is two gigabytes, more than Java has."""
    claims = b"\xfe\xff\xff\xff\x0f"
    stream = compress(Codec.LZ4, claims + BODY[1:])
    damaged = write_batch(stream, base_offset=0, last_offset=1, count=2, codec=Codec.LZ4, max_timestamp=2000)
    hold(lockstep, [damaged, build_batch(RECORDS)])


@pytest.mark.parametrize("codec", thorough_except([Codec.GZIP], list(Codec)[1:]), ids=lambda codec: codec.label)
def test_corrupt_streams_raise_the_same_errors(lockstep, codec):
    hold(lockstep, damaged_streams(codec))
    if codec is Codec.GZIP:
        assert lockstep.statistics.exercised("3.5.2")["SEG-49"]
        assert not lockstep.statistics.exercised("3.6.2")["SEG-49"]


def test_frames_without_their_claimed_checksums_raise_the_same_errors(lockstep):
    hold(lockstep, claiming_frames())


def test_corrupt_frames_have_the_same_results(lockstep):
    hold(lockstep, map(batch_of, damaged_frames()))


def test_truncated_raw_blocks_have_the_same_results(lockstep, thorough):
    hold(lockstep, cut_raw_blocks())
    if thorough:
        assert lockstep.statistics.exercised("2.6.3")["SEG-54"]
    assert not lockstep.statistics.exercised("4.4.0")["SEG-54"]
