"""References that decompress with the codec libraries of those they are compared with."""

from __future__ import annotations

import struct

import pytest

from conformance.implementations.kidx.shared_dialect import SharedDialect
from kidx.dialect import dialect_of
from kidx.records import Codec, RecordStreamError, SimpleRecord, build_batch, iter_memory_batches
from kidx.records.codecs import MOST_LENT, Decompressed, Ending, Reading, compress, decompress, decompressed
from kidx.segment.file_records import FileRecords

DATA = build_batch([SimpleRecord(1000, None, b"value")], codec=Codec.ZSTD)
REFUSES = Decompressed(b"", Ending.REFUSAL)


def lending(answer):
    """Libraries that make the same of everything."""
    return lambda *_, **__: answer


@pytest.mark.parametrize(("magic", "codec"), [(1, Codec.SNAPPY), (2, Codec.SNAPPY), (2, Codec.ZSTD)])
def test_a_batch_is_read_with_the_library_that_is_lent(magic, codec):
    data = build_batch([SimpleRecord(1000, None, b"value")], codec=codec, magic=magic)
    other = build_batch([SimpleRecord(1000, None, b"other")], codec=codec, magic=magic)
    plain = plain_of(other, magic)
    (batch,) = iter_memory_batches(data, decompressor=lending(Decompressed(plain, Ending.END)))
    assert [record.value for record in batch] == [b"other"]
    (batch,) = iter_memory_batches(data, decompressor=lending(REFUSES))
    with pytest.raises(RecordStreamError, match="refuses"):
        list(batch)


def plain_of(data, magic):
    """What is compressed in a batch."""
    (batch,) = iter_memory_batches(data)
    return decompress(batch.codec, data[61:] if magic == 2 else batch.message.value, magic).read(1 << 10)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Decompressed(b"", Ending.DAMAGE), "Failed to decompress record stream"),
        (Decompressed(b"", Ending.FAILURE, "-5"), "-5"),
    ],
)
def test_how_reading_ends_is_told_as_kafka_tells_it(answer, text):
    (batch,) = iter_memory_batches(DATA, decompressor=lending(answer))
    with pytest.raises(RecordStreamError) as raised:
        list(batch)
    assert raised.value.kafka_message == text


def test_what_is_too_much_to_be_lent_and_other_codecs_are_read_with_libraries_of_kidx():
    (batch,) = iter_memory_batches(DATA, decompressor=lending(None))
    assert [record.value for record in batch] == [b"value"]
    for codec in (Codec.NONE, Codec.GZIP):
        data = build_batch([SimpleRecord(1000, None, b"value")], codec=codec)
        (batch,) = iter_memory_batches(data, decompressor=lending(REFUSES))
        assert [record.value for record in batch] == [b"value"]


def test_a_log_is_read_with_the_libraries_of_its_dialect(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    dialect = dialect_of("2.6.3").with_libraries(None, lending(REFUSES))
    log = FileRecords(path, file_already_exists=True, dialect=dialect)
    with pytest.raises(RecordStreamError):
        log.search_for_timestamp(0, 0, 0)
    log.close_handlers()


def test_what_libraries_of_kidx_make_of_a_stream():
    assert decompressed(Codec.ZSTD, compress(Codec.ZSTD, b"plain")) == Decompressed(b"plain", Ending.END)
    assert decompressed(Codec.ZSTD, compress(Codec.ZSTD, b"plain")[:-3]) == Decompressed(b"plain", Ending.DAMAGE)
    assert decompressed(Codec.ZSTD, compress(Codec.ZSTD, b"")) == Decompressed(b"", Ending.END)
    assert decompressed(Codec.SNAPPY, b"") == REFUSES
    negative = compress(Codec.SNAPPY, b"plain") + struct.pack(">i", -5)
    failure = "snappy: chunkSize is too big or negative : -5"
    assert decompressed(Codec.SNAPPY, negative) == Decompressed(b"", Ending.FAILURE, failure)
    assert decompressed(Codec.GZIP, compress(Codec.GZIP, bytes(MOST_LENT + 1))) is None


def test_releases_whose_libraries_read_otherwise_leave_and_no_others():
    damaged = lending(Decompressed(b"plain", Ending.DAMAGE))
    same, odd, own, last = (
        dialect_of(release).with_libraries(None, library)
        for release, library in (("2.7.2", damaged), ("3.1.2", lending(REFUSES)), ("3.2.3", None), ("4.4.0", damaged))
    )
    shared = SharedDialect([same, odd, own, last])
    cut = compress(Codec.ZSTD, b"plain")[:-3]
    assert shared.decompressor is not None
    assert shared.decompressor(Codec.ZSTD, cut, 2, reading=Reading.FIELDS) == Decompressed(b"plain", Ending.DAMAGE)
    assert shared.take_left() == [odd]
    assert shared.members == [same, own, last]
    assert SharedDialect([dialect_of("2.7.2"), dialect_of("4.4.0")]).decompressor is None
