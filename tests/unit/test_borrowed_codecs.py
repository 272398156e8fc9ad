"""Codecs of another program."""

from __future__ import annotations

import struct

import pytest

from conformance.implementations.kidx.shared_dialect import SharedDialect
from kidx.dialect import dialect_of
from kidx.records import Codec, RecordStreamError, SimpleRecord, build_batch, iter_memory_batches
from kidx.records.codecs import (
    MAX_BORROWED_BYTES,
    DecompressedStream,
    ReadMode,
    StreamEnd,
    compress,
    decompress,
    decompress_all,
)
from kidx.segment.file_records import FileRecords

# -- Reference that compresses with the codec libraries of the implementation that it is compared with -------------


def other(codec: Codec, data: bytes, magic: int) -> bytes:
    """Return a library that compresses nothing where zstd may store bytes uncompressed."""
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + (len(data) << 3 | 1).to_bytes(3, "little") + data
    return frame if codec is Codec.ZSTD else compress(codec, data, magic)


def test_a_batch_has_the_bytes_of_the_borrowed_library():
    records = [SimpleRecord(0, b"key", b"value" * 9)]
    own, lent = (build_batch(records, codec=Codec.ZSTD, compressor=each) for each in (None, other))
    assert own != lent
    for data in (own, lent):
        (batch,) = iter_memory_batches(data)
        assert [record.value for record in batch] == [b"value" * 9]


def test_only_releases_with_other_compressed_bytes_drop_out():
    same, odd, last = (dialect_of(release) for release in ("2.7.2", "3.1.2", "4.4.0"))
    shared = SharedDialect(
        [same.with_libraries(compress, None), odd.with_libraries(other, None), last.with_libraries(compress, None)]
    )
    assert shared.compressor is not None
    assert shared.compressor(Codec.GZIP, b"x" * 40, 2) == compress(Codec.GZIP, b"x" * 40)
    assert shared.pop_split_off() == []
    assert shared.compressor(Codec.ZSTD, b"x" * 40, 2) == compress(Codec.ZSTD, b"x" * 40)
    assert [dialect.release for dialect in shared.pop_split_off()] == [odd.release]
    assert [dialect.release for dialect in shared.members] == [same.release, last.release]


def test_without_a_borrowed_library_that_of_kidx_is_used():
    assert SharedDialect([dialect_of("2.7.2"), dialect_of("4.4.0")]).compressor is None


# -- Reference that decompresses with the codec libraries of the implementation that it is compared with -----------


DATA = build_batch([SimpleRecord(1000, None, b"value")], codec=Codec.ZSTD)
REJECTED = DecompressedStream(b"", StreamEnd.REJECTED)


def lending(answer):
    """Return borrowed libraries that decompress everything to the same bytes."""
    return lambda *_, **__: answer


@pytest.mark.parametrize(("magic", "codec"), [(1, Codec.SNAPPY), (2, Codec.SNAPPY), (2, Codec.ZSTD)])
def test_a_batch_is_read_with_the_borrowed_library(magic, codec):
    data = build_batch([SimpleRecord(1000, None, b"value")], codec=codec, magic=magic)
    other = build_batch([SimpleRecord(1000, None, b"other")], codec=codec, magic=magic)
    plain = plain_of(other, magic)
    (batch,) = iter_memory_batches(data, decompressor=lending(DecompressedStream(plain, StreamEnd.END)))
    assert [record.value for record in batch] == [b"other"]
    (batch,) = iter_memory_batches(data, decompressor=lending(REJECTED))
    with pytest.raises(RecordStreamError, match="rejects"):
        list(batch)


def plain_of(data, magic):
    """Return the decompressed content of a batch."""
    (batch,) = iter_memory_batches(data)
    return decompress(batch.codec, data[61:] if magic == 2 else batch.message.value, magic).read(1 << 10)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (DecompressedStream(b"", StreamEnd.CORRUPT), "Failed to decompress record stream"),
        (DecompressedStream(b"", StreamEnd.FAILURE, "-5"), "-5"),
    ],
)
def test_the_end_of_a_read_is_reported_as_kafka_reports_it(answer, text):
    (batch,) = iter_memory_batches(DATA, decompressor=lending(answer))
    with pytest.raises(RecordStreamError) as raised:
        list(batch)
    assert raised.value.kafka_message == text


def test_too_large_batches_and_other_codecs_are_read_with_libraries_of_kidx():
    (batch,) = iter_memory_batches(DATA, decompressor=lending(None))
    assert [record.value for record in batch] == [b"value"]
    for codec in (Codec.NONE, Codec.GZIP):
        data = build_batch([SimpleRecord(1000, None, b"value")], codec=codec)
        (batch,) = iter_memory_batches(data, decompressor=lending(REJECTED))
        assert [record.value for record in batch] == [b"value"]


def test_a_log_is_read_with_the_libraries_of_its_dialect(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    dialect = dialect_of("2.6.3").with_libraries(None, lending(REJECTED))
    log = FileRecords(path, file_already_exists=True, dialect=dialect)
    with pytest.raises(RecordStreamError):
        log.search_for_timestamp(0, 0, 0)
    log.close_handlers()


def test_how_libraries_of_kidx_read_a_stream():
    assert decompress_all(Codec.ZSTD, compress(Codec.ZSTD, b"plain")) == DecompressedStream(b"plain", StreamEnd.END)
    assert decompress_all(Codec.ZSTD, compress(Codec.ZSTD, b"plain")[:-3]) == DecompressedStream(
        b"plain", StreamEnd.CORRUPT
    )
    assert decompress_all(Codec.ZSTD, compress(Codec.ZSTD, b"")) == DecompressedStream(b"", StreamEnd.END)
    assert decompress_all(Codec.SNAPPY, b"") == REJECTED
    negative = compress(Codec.SNAPPY, b"plain") + struct.pack(">i", -5)
    failure = "snappy: chunkSize is too big or negative : -5"
    assert decompress_all(Codec.SNAPPY, negative) == DecompressedStream(b"", StreamEnd.FAILURE, failure)
    assert decompress_all(Codec.GZIP, compress(Codec.GZIP, bytes(MAX_BORROWED_BYTES + 1))) is None


def test_only_releases_whose_libraries_read_differently_drop_out():
    damaged = lending(DecompressedStream(b"plain", StreamEnd.CORRUPT))
    same, odd, own, last = (
        dialect_of(release).with_libraries(None, library)
        for release, library in (("2.7.2", damaged), ("3.1.2", lending(REJECTED)), ("3.2.3", None), ("4.4.0", damaged))
    )
    shared = SharedDialect([same, odd, own, last])
    cut = compress(Codec.ZSTD, b"plain")[:-3]
    assert shared.decompressor is not None
    assert shared.decompressor(Codec.ZSTD, cut, 2, mode=ReadMode.FIELDS) == DecompressedStream(
        b"plain", StreamEnd.CORRUPT
    )
    assert shared.pop_split_off() == [odd]
    assert shared.members == [same, own, last]
    assert SharedDialect([dialect_of("2.7.2"), dialect_of("4.4.0")]).decompressor is None
