"""Texts as Java splits them: lines, fields, and entries of properties files."""

import pytest

from kidx.java_values import java_fields, java_lines, java_properties


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\rb\r\nc\x0bd\u2028e", ["a", "b", "c\x0bd\u2028e"]),
    ],
)
def test_only_three_ends_end_a_line(text, lines):
    assert java_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "fields"),
    [("", [""]), ("a b", ["a", "b"]), ("a\x0b\x0cb \t", ["a", "b"]), (" a", ["", "a"]), ("a\u2003b", ["a\u2003b"])],
)
def test_empty_fields_at_the_end_are_left_out(text, fields):
    assert java_fields(text) == fields


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1\nb:2\nc 3\nd\n", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("  a\t=  1 \n", {"a": "1 "}),
        ("# a=1\n! b=2\n\n \n", {}),
        ("a=1,\\\n   2\nb=\\\\\nc=3", {"a": "1,2", "b": "\\", "c": "3"}),
        ("a\\:b\\ c=d\\u0041\\te\\q", {"a:b c": "dA\teq"}),
        ("a=1\na=2\r\n", {"a": "2"}),
        ("a==1", {"a": "=1"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_have_the_entries_that_java_reads(text, entries):
    assert java_properties(text) == entries
