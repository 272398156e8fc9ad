"""Java's arithmetic: sums wrap, division drops the fraction (what AI-3, AI-8 and AI-41 stand on)."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx.java_numbers import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, parse_java, round_down, to_int, to_long

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
