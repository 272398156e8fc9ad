"""Corrupt compressed records, which raise differently up to 3.5 (SEG-48, SEG-49) and 2.7 (SEG-47)."""

from __future__ import annotations

from random import Random

import pytest

from conformance.strategies.batches import BatchPlan, RecordDamage, record_damages
from kidx.errors import InvalidArgumentError, KidxError, OutOfBoundsError
from kidx.records import (
    Codec,
    InvalidRecordError,
    RecordSizeError,
    RecordStreamError,
    SimpleRecord,
    TruncatedStreamError,
    build_batch,
    iter_batches,
    iter_memory_batches,
    write_batch,
)
from kidx.records.codecs import compress
from kidx.records.record import write_record
from kidx.segment.file_records import FileRecords

BODY = write_record(0, 0, SimpleRecord(1000, None, b"value"))


def batch_of(body: bytes, codec: Codec = Codec.LZ4) -> bytes:
    return write_batch(
        compress(codec, body),
        base_offset=0,
        last_offset=0,
        count=1,
        codec=codec,
        base_timestamp=1000,
        max_timestamp=1000,
    )


@pytest.fixture
def searched(tmp_path):
    """Return the result of a search for the first record of a log."""

    def search(data: bytes, release: str):
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(data)
        log = FileRecords(path, file_already_exists=True, dialect=release)
        try:
            return log.search_for_timestamp(0, 0, 0)
        finally:
            log.close_handlers()

    return search


@pytest.mark.parametrize(
    ("size", "escaped"),
    [
        (b"\x01", r"capacity < 0: \(-1 < 0\)"),
        (b"\xff" * 5, "Varint is too long, the most significant bit in the 5th byte is set, converted value: ffffffff"),
    ],
)
def test_a_size_that_makes_no_sense(searched, size, escaped):
    data = batch_of(size + BODY[1:])
    with pytest.raises(RecordSizeError, match="premature EOF"):
        searched(data, "3.6.2")
    with pytest.raises(InvalidArgumentError, match=escaped) as raised:
        searched(data, "3.5.2")
    assert not isinstance(raised.value, InvalidRecordError)


def test_a_truncated_size_is_invalid_in_all_releases(searched):
    for release in ("3.5.2", "3.6.2"):
        with pytest.raises(InvalidRecordError, match="premature EOF"):
            searched(batch_of(b"\xff"), release)


def gzip_cut_by(count: int) -> bytes:
    data = build_batch([(1000, None, b"value")], codec=Codec.GZIP)[:-count]
    return data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]


def test_a_gzip_stream_that_ends_inside_a_record(searched):
    with pytest.raises(TruncatedStreamError):
        searched(gzip_cut_by(12), "3.6.2")
    with pytest.raises(InvalidRecordError):
        searched(gzip_cut_by(12), "3.5.2")


def test_a_gzip_stream_without_its_header_is_unreadable_in_all(searched):
    data = build_batch([(1000, None, b"value")], codec=Codec.GZIP)[: 61 + 5]
    data = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
    for release in ("3.5.2", "3.6.2"):
        with pytest.raises(RecordStreamError):
            searched(data, release)


def test_a_header_count_beyond_the_record_is_read_before_2_7(searched):
    """One of them is longer than the record, which was out of bounds then."""
    one = write_record(0, 0, SimpleRecord(1000, None, None, (("key", b""),)))
    assert one[6:8] == b"\x02\x06"  # one header, of a key of three bytes
    lying = one[:6] + b"\x28\x7e" + one[8:]
    assert len(list(iter_batches(batch_of(one)))) == 1
    with pytest.raises(OutOfBoundsError):
        searched(batch_of(lying), "2.6.3")
    with pytest.raises(InvalidRecordError, match="invalid number of record headers"):
        searched(batch_of(lying), "2.8.2")


@pytest.mark.parametrize(
    ("release", "refusal"), [("3.9.2", OutOfBoundsError), ("4.3.1", OutOfBoundsError), ("4.4.0", InvalidArgumentError)]
)
def test_the_first_bytes_that_are_read_of_a_batch_with_a_partial_header(searched, release, refusal):
    whole = bytearray(batch_of(BODY, Codec.NONE))
    whole[8:12] = (41).to_bytes(4, "big")
    with pytest.raises(refusal):
        searched(bytes(whole), release)


TWO = BatchPlan(steps=(0, 1), ages=(1, 2), leader_epoch=3)


def drawn(count=400):
    chance = Random(1)  # noqa: S311 -- nothing secret
    draw = record_damages()
    return {draw.pick(chance) for _ in range(count)}


def test_every_damage_meets_every_codec():
    found = {(damage.how, damage.codec) for damage in drawn(2000)}
    assert found == {(how, codec) for how, _ in found for codec in Codec}
    assert {how for how, _ in found} == {"claim", "endless", "flip", "cut", "stream", "count"}


def test_the_header_is_sound_and_claims_a_timestamp_beyond_all_others():
    for damage in drawn():
        (batch,) = iter_memory_batches(damage.of(TWO, 7, 1000))
        batch.ensure_valid()
        assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (7, 8, 3)
        assert batch.max_timestamp > 1002


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.label)
@pytest.mark.parametrize("how", ["claim", "endless", "cut", "stream"])
def test_the_records_cannot_be_read(how, codec):
    (batch,) = iter_memory_batches(RecordDamage(how, 0, 0x40, codec).of(TWO, 0, 1000))
    with pytest.raises((KidxError, OSError)):
        list(batch)
