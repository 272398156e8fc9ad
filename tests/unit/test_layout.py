"""Layouts of files, and numbers of Java."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, parse_java, round_down, to_int, to_long
from kidx.layout import ABORTED_TXN, OFFSET_INDEX, PAGE_BYTES, TIME_INDEX, WARM_SECTION_BYTES, Field, Layout

# -- The on-disk formats: the tables say what the bytes are, and the codecs follow the tables (AI-1, OI-1, TI-1, TX-1)


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


# -- Java's arithmetic: sums wrap, division drops the fraction (what AI-3, AI-8 and AI-41 stand on) ----------------


around_everything = st.integers(-(2**70), 2**70)


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [(0, 0), (INT_MAX, INT_MAX), (INT_MAX + 1, INT_MIN), (INT_MIN - 1, INT_MAX), (2**32, 0), (-1, -1), (2**32 - 1, -1)],
)
def test_an_int_wraps_at_32_bits(value, wrapped):
    """One past the largest int is the smallest one."""
    assert to_int(value) == wrapped


@pytest.mark.parametrize(
    ("value", "wrapped"),
    [(LONG_MAX, LONG_MAX), (LONG_MAX + 1, LONG_MIN), (LONG_MIN - 1, LONG_MAX), (2**64, 0), (2**64 - 1, -1)],
)
def test_a_long_wraps_at_64_bits(value, wrapped):
    """One past the largest long is the smallest one."""
    assert to_long(value) == wrapped


@given(around_everything)
def test_wrapping_equals_that_of_the_machine(value):
    """C's own integers of these widths are the oracle."""
    assert to_int(value) == ctypes.c_int32(value & (2**32 - 1)).value
    assert to_long(value) == ctypes.c_int64(value & (2**64 - 1)).value


@pytest.mark.parametrize(
    ("number", "factor", "rounded"),
    [(67, 8, 64), (67, 12, 60), (64, 8, 64), (7, 8, 0), (0, 8, 0), (-1, 8, 0), (-8, 8, -8), (-67, 8, -64)],
)
def test_rounding_drops_the_rest_towards_zero(number, factor, rounded):
    """67 bytes are 64 of .index and 60 of .timeindex (AI-3); -1 is 0 (AI-15), not -8."""
    assert round_down(number, factor) == rounded


@given(st.integers(INT_MIN, INT_MAX), st.sampled_from([1, 8, 12, 34]))
def test_rounding_is_a_multiple_next_to_the_number(number, factor):
    """The result is a multiple, no further from zero than the number, and less than one factor away."""
    rounded = round_down(number, factor)
    assert rounded % factor == 0
    assert 0 <= abs(number) - abs(rounded) < factor
    assert rounded * number >= 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("00", 0),
        ("+1", 1),
        ("-0", 0),
        ("\u0663", 3),  # a digit of another script
        ("\uff11\uff12", 12),
        ("0" * 5000 + "2147483647", INT_MAX),
        ("-2147483648", INT_MIN),
        ("2147483648", None),
        ("9" * 5000, None),
        *((text, None) for text in ("", "+", "-", "+-1", " 1", "1 ", "1_0", "x", "\u00b2", "\U0001d7d8")),
    ],
)
def test_an_int_is_read_as_java_reads_it(text, number):
    """Java 17 reads the same 370 characters as digits below U+10000."""
    assert parse_java(text, INT_MAX) == number
