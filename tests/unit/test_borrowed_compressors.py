"""Reference that compresses with the codec libraries of the implementation that it is compared with."""

from __future__ import annotations

from conformance.implementations.kidx.shared_dialect import SharedDialect
from kidx.dialect import dialect_of
from kidx.records import Codec, SimpleRecord, build_batch, iter_memory_batches
from kidx.records.codecs import compress


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
