"""Text of files, names and other programs, as it is shown."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kidx.printable import counted, dated, encodable, json_text, printable, printable_lines

ANY_TEXT = st.text(st.characters(codec=None)) | st.binary().map(os.fsdecode)  # lone surrogates, too


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-0", "orders-0"),
        ("a\nEXACT: 7 files", r"a\nEXACT: 7 files"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),  # the C1 form of ESC [
        ("a\rb\tc", r"a\rb\tc"),
        ("\u202egol.0\u2066", r"\u202egol.0\u2066"),
        ("a\u2028b", r"a\u2028b"),
        ("\U000e0041", r"\U000e0041"),
        (os.fsdecode(b"top\xff-0"), r"top\xff-0"),
        ("Größe 大きさ 2.4.0 – 4.4.0 × 🙂", "Größe 大きさ 2.4.0 – 4.4.0 × 🙂"),
    ],
)
def test_control_sequences_of_a_terminal_are_escaped(text, shown):
    """Other text is unchanged."""
    assert printable(text) == shown


@given(ANY_TEXT)
def test_any_text_becomes_one_printable_line(text):
    """UTF-8 can encode the line, and printing it again does not change it."""
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    assert printable(shown) == shown


def test_lines_remain_lines():
    """Only line feeds end them."""
    assert printable_lines("a\n\x1bb\r\n\x0bc") == "a\n\\x1bb\\r\n\\x0bc"


@given(ANY_TEXT)
def test_only_text_without_utf8_is_changed_to_be_encoded(text):
    """Everything else, control characters included, is unchanged."""
    encodable(text).encode()
    assert [encodable(char) == char for char in text] == [not "\ud800" <= char <= "\udfff" for char in text]
    assert encodable(text) == "".join(map(encodable, text))


@given(
    st.recursive(st.integers() | st.none() | ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner))
)
def test_json_is_one_printable_line_with_the_same_value(value):
    """Only lone surrogates, which not every parser takes, are other text."""
    text = json_text(value)
    assert text.isprintable()
    text.encode()
    assert json.loads(text) == _encodable(value)


def _encodable(value):
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(each) for key, each in value.items()}
    return value


@pytest.mark.parametrize(
    ("noun", "none", "many"),
    [
        ("file", "0 files", "1,200 files"),
        ("batch", "0 batches", "1,200 batches"),
        ("entry", "0 entries", "1,200 entries"),
    ],
)
def test_singular_and_plural(noun, none, many):
    """Of each ending that a noun has here."""
    assert [counted(number, noun) for number in (0, 1, 1200)] == [none, f"1 {noun}", many]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-1, "-1"),
        (0, "0 (1970-01-01T00:00:00Z)"),
        (1_700_000_000_777, "1700000000777 (2023-11-14T22:13:20.777Z)"),
        (1_700_000_000, "1700000000 (1970-01-20T16:13:20Z, in seconds 2023-11-14T22:13:20Z)"),
        (253_402_300_799_999, "253402300799999 (9999-12-31T23:59:59.999Z)"),
        (300_000_000_000_000, "300000000000000 (in the year 11,476)"),
        (1 << 62, "4611686018427387904 (in the year 146,140,482)"),
    ],
)
def test_a_timestamp_is_shown_with_its_date(milliseconds, text):
    assert dated(milliseconds) == text
