"""Records as columns, which equal the readable reference, errors included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kidx.errors import KidxError
from kidx.records import (
    Codec,
    DefaultRecordBatch,
    InvalidRecordError,
    SimpleRecord,
    TimestampType,
    build_batch,
    iter_memory_batches,
)
from kidx.records.varint import write_varint
from kidx.scan import RecordColumns, decode_batch, decode_records

GOLDEN = Path(__file__).parents[1] / "golden"
LOGS = [path for path in sorted(GOLDEN.glob("*/*/*.log")) if path.stat().st_size]
MODERN = [path for path in LOGS if path.read_bytes()[16] == 2]
MADE = [SimpleRecord(5, None, b""), SimpleRecord(9, b"", None), SimpleRecord(7, b"k" * 200, b"v", (("h", None),))]


def read(data: bytes) -> tuple[list, str | None]:
    """Return the records of the reference, batch by batch up to the first error, and its text; only v2 is accepted."""
    found: list = []
    try:
        for batch in iter_memory_batches(data):
            if not isinstance(batch, DefaultRecordBatch):
                where = f"the batch at position {batch.position} has format v{batch.magic}"
                raise InvalidRecordError(f"{where}; only v2 can be read as columns")
            found += [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in list(batch)]
    except KidxError as error:
        return found, repr(error)
    return found, None


def read_columns(data: bytes) -> tuple[list, str | None]:
    """Return the same from columns."""
    found: list = []
    try:
        for columns in decode_records(data):
            found += columns.tuples()
    except KidxError as error:
        return found, repr(error)
    return found, None


@pytest.mark.parametrize("release", sorted({path.parts[-3] for path in MODERN}))
def test_records_of_brokers(release):
    """All logs that brokers of a release wrote are read, concatenated as in one fetch, and each batch alone."""
    paths = [path for path in MODERN if path.parts[-3] == release]
    data = b"".join(path.read_bytes() for path in paths)
    assert read_columns(data) == read(data)
    for batch in iter_memory_batches(data):
        expected = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch]
        assert list(decode_batch(batch).tuples()) == expected


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("kind", [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])
def test_nulls_empties_and_both_kinds_of_time(codec, kind):
    data = build_batch(MADE, base_offset=2**40, codec=codec, timestamp_type=kind)
    (columns,) = decode_records(data)
    expected, problem = read(data)
    assert problem is None
    assert list(columns.tuples()) == expected
    assert columns.column("key").to_pylist() == [record.key for record in MADE]
    assert columns.column("value").to_pylist() == [record.value for record in MADE]


def test_small_batches_are_joined_and_large_ones_alone():
    """A thousand batches of one record make one set of columns; one of more records than these may have, its own."""
    small = b"".join(build_batch([SimpleRecord(n, b"%d" % n, b"v")], base_offset=n) for n in range(1000))
    large = build_batch([SimpleRecord(n, None, b"%d" % n) for n in range(5000)], base_offset=1000)
    found = list(decode_records(small + large + small))
    assert [len(columns.rows) for columns in found] == [1000, 5000, 1000]
    assert read_columns(small + large + small) == read(small + large + small)


def test_without_arrow_the_objects_are_the_same(monkeypatch):
    def missing(_: RecordColumns, name: str) -> None:
        raise ImportError(name)

    data = build_batch(MADE)
    (columns,) = decode_records(data)
    whole = list(columns.tuples())
    monkeypatch.setattr(RecordColumns, "column", missing)
    assert list(columns.tuples()) == whole == read(data)[0]


headers = st.lists(st.tuples(st.sampled_from(["", "h", "ключ"]), st.none() | st.binary(max_size=3)), max_size=3)
payloads = st.none() | st.binary(max_size=20)
records = st.builds(SimpleRecord, st.integers(-1, 2**62), payloads, payloads, headers.map(tuple))


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Return a strategy for a batch of some records, of any codec, anywhere among the offsets."""
    return build_batch(
        draw(st.lists(records, min_size=1, max_size=5)),
        base_offset=draw(st.sampled_from([0, 7, 2**63 - 2])),
        codec=draw(st.sampled_from(Codec)),
        timestamp_type=draw(st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])),
    )


@settings(max_examples=settings.default.max_examples * 2)
@given(st.lists(batches(), min_size=1, max_size=3), st.data())
def test_corrupt_batches_have_the_same_records_or_errors(made, data):
    """Some bytes changed, the end cut off: the same records, and the same words."""
    damaged = bytearray(b"".join(made))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(57, len(damaged) - 1))
        damaged[place] = data.draw(st.sampled_from([0, 1, 2, 3, 14, 127, 128, 129, 254, 255]))
    end = data.draw(st.sampled_from([len(damaged), len(damaged) - 1, len(damaged) // 2]))
    assert read_columns(bytes(damaged[:end])) == read(bytes(damaged[:end]))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_that_corruption_makes_old_is_an_error_after_the_records_before_it(magic):
    data = bytearray(build_batch(MADE) + build_batch(MADE))
    data[len(data) // 2 + 16] = magic
    found, error = read_columns(bytes(data))
    assert len(found) == len(MADE)
    assert f"the batch at position {len(data) // 2} has format v{magic}; only v2 can be read as columns" in error
    assert (found, error) == read(bytes(data))


def nearly(value: int) -> st.SearchStrategy[bytes]:
    """Return a strategy for a varint: mostly right, else slightly too large or small, longer than necessary, or cut."""
    wrong = st.sampled_from([value - 1, value + 1, -1, -2, 2**31 - 1, -(2**31)]).map(write_varint)
    longer = st.integers(1, 10).map(lambda more: _longer(write_varint(value), more))
    right = st.just(write_varint(value))
    return st.integers(0, 19).flatmap(lambda dice: wrong if dice == 0 else longer if dice == 1 else right)


def _longer(varint: bytes, more: int) -> bytes:
    """Encode the same number with ``more`` redundant bytes."""
    return varint[:-1] + bytes([varint[-1] | 0x80]) + b"\x80" * (more - 1) + b"\0"


@st.composite
def nearly_records(draw: st.DrawFn) -> bytes:
    """Return a strategy for a record whose sizes are mostly right."""
    content = draw(st.binary(max_size=3))
    count = draw(st.integers(0, 2))
    sized = [draw(nearly(len(content))) + content for _ in range(2 + 2 * count)]
    sized[1] = draw(st.sampled_from([sized[1], b"\x01"]))
    body = b"\0" + draw(nearly(5)) + draw(nearly(3)) + b"".join(sized[:2]) + draw(nearly(count)) + b"".join(sized[2:])
    return draw(nearly(len(body))) + body


def headed(content: bytes, count: int) -> bytes:
    """Prepend the header of a batch that claims this number of records."""
    head = bytearray(build_batch([SimpleRecord(5, b"key", b"value")])[:61])
    head[8:12] = (49 + len(content)).to_bytes(4)
    head[57:61] = count.to_bytes(4)
    return bytes(head) + content


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples * 5)
@given(st.lists(nearly_records(), min_size=1, max_size=3), st.sampled_from([0, 0, 0, 1, -1]), st.integers(0, 9))
def test_nearly_right_records_have_the_same_records_or_errors(made, too_many, trailing):
    """Numbers inside are slightly wrong, the number of records too, and a byte may follow the last one."""
    content = b"".join(made) + (b"\0" if trailing == 0 else b"")
    data = headed(content, len(made) + too_many)
    assert read_columns(data) == read(data)


@pytest.mark.parametrize("length", [-1, 0, 5, 7, 13])
def test_a_record_of_the_wrong_size_is_rejected_even_if_the_next_one_follows(length):
    """Six bytes each: no key, no value, no headers."""
    data = headed(write_varint(length) + b"\0\0\0\1\1\0" + write_varint(6) + b"\0\0\0\1\1\0", 2)
    assert read_columns(data) == read(data)
    assert read(data)[1] is not None


def test_bits_that_an_int_has_no_room_for_are_dropped():
    """An offset delta of 35 bits."""
    data = headed(write_varint(10) + b"\0\0\x86\x80\x80\x80\x7f\1\1\0", 1)
    assert read_columns(data) == read(data) == ([(0x78000003, 5, None, None, ())], None)


def test_only_v2_has_columns():
    data = build_batch(MADE) + build_batch([SimpleRecord(5, b"key", b"value")], magic=1)
    found, problem = read_columns(data)
    assert found == read(build_batch(MADE))[0]
    assert "has format v1" in str(problem)


@pytest.mark.parametrize("data", [b"", b"x" * 11, build_batch(MADE)[:-1]])
def test_a_partial_batch_is_skipped(data):
    assert list(decode_records(data)) == []


@pytest.mark.thorough
def test_without_numba_the_columns_are_the_same():
    code = "import sys; from kidx.scan import decode_records as d; data = open(sys.argv[1], 'rb').read()"
    code += "; print([(c.rows.tolist(), list(c.tuples())) for c in d(data)])"
    path = next(path for path in MODERN if "headers" in str(path) or path.parts[-3] == "4.4.0")
    outputs = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code, path],
            env=os.environ | {"KIDX_PLAIN": plain},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for plain in "01"
    ]
    assert outputs[0] == outputs[1]
