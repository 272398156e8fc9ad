"""The on-disk formats: the tables say what the bytes are, and the codecs follow the tables (AI-1, OI-1, TI-1, TX-1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx.layout import ABORTED_TXN, OFFSET_INDEX, PAGE_BYTES, TIME_INDEX, WARM_SECTION_BYTES, Field, Layout

LAYOUTS = pytest.mark.parametrize("layout", [OFFSET_INDEX, TIME_INDEX, ABORTED_TXN], ids=lambda layout: layout.name)


def values_of(layout: Layout) -> st.SearchStrategy[tuple[int, ...]]:
    """Return a strategy for numbers that the fields can hold."""
    return st.tuples(
        *(st.integers(-(2 ** (8 * field.size - 1)), 2 ** (8 * field.size - 1) - 1) for field in layout.fields)
    )


@pytest.mark.parametrize(("layout", "size"), [(OFFSET_INDEX, 8), (TIME_INDEX, 12), (ABORTED_TXN, 34)])
def test_an_entry_has_its_size(layout, size):
    """8 bytes of .index (OI-1), 12 of .timeindex (TI-1), 34 of .txnindex (TX-1)."""
    assert layout.size == size


@pytest.mark.parametrize(
    ("layout", "values", "hexadecimal"),
    [
        (OFFSET_INDEX, (7, 300), "00000007 0000012c"),
        (OFFSET_INDEX, (-1, -2), "ffffffff fffffffe"),
        (TIME_INDEX, (1, 2), "0000000000000001 00000002"),
        (ABORTED_TXN, (0, 1, 2, 3, 4), "0000 0000000000000001 0000000000000002 0000000000000003 0000000000000004"),
    ],
)
def test_the_bytes_are_big_endian_and_signed(layout, values, hexadecimal):
    """Written out by hand (AI-1, AI-9)."""
    assert layout.struct.pack(*values) == bytes.fromhex(hexadecimal)


@LAYOUTS
@given(data=st.data())
def test_bytes_survive_a_round_trip_field_by_field(layout, data):
    """The codec of each field reads and writes the same bytes at that field's offset as the whole codec."""
    values = data.draw(values_of(layout))
    packed = layout.struct.pack(*values)
    assert layout.struct.unpack(packed) == values
    again = bytearray(layout.size)
    for field, value in zip(layout.fields, values, strict=True):
        assert layout.codec(field.name).unpack_from(packed, field.offset) == (value,)
        layout.codec(field.name).pack_into(again, field.offset, value)
    assert again == packed


@LAYOUTS
def test_a_table_explains_every_field_and_its_source(layout):
    """A reader who has only the table knows what each byte means and where Kafka says so."""
    assert all(field.meaning for field in layout.fields)
    assert ".java" in layout.source
    assert layout.size == layout.fields[-1].offset + layout.fields[-1].size


def test_an_unknown_field_is_rejected():
    """The error names the structure and the field."""
    with pytest.raises(KeyError, match=r"\.index has no field 'timestamp'"):
        OFFSET_INDEX.field("timestamp")


@pytest.mark.parametrize("second", [3, 5])
def test_a_table_with_a_hole_or_an_overlap_is_rejected(second):
    """Fields stand end to end: the second of two cannot start anywhere but where the first ends."""
    with pytest.raises(ValueError, match=f"broken: field b starts at {second}, not at 4"):
        Layout("broken", (Field(0, 4, "a", "first"), Field(second, 4, "b", "second")), "none")


def test_the_warm_section_in_entries_and_pages():
    """8192 bytes are two pages, 1,024 entries of .index, 682 of .timeindex (AI-30)."""
    assert WARM_SECTION_BYTES == 2 * PAGE_BYTES
    assert (WARM_SECTION_BYTES // OFFSET_INDEX.size, WARM_SECTION_BYTES // TIME_INDEX.size) == (1024, 682)
