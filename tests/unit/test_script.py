"""``replay --export``: names in a hostile trace are text in the program, and unrepresentable values are rejected."""

from __future__ import annotations

import ast
import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance import cli
from conformance.errors import ToolError
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.reproducers import java_reproducer, python_reproducer, write_reproducer
from conformance.runs.reproducers.java import LONGEST, java_comment, java_long_string, java_string

INJECTION = 'a" + Runtime.getRuntime().exec("touch pwned") + "b'


def trace(path="0.index", *, machine="offset", **members):
    steps = (Operation("open", ("offset", path, 0, 64, True)), Operation("lookup", (1,)))
    return Trace(machine, "4.4.0", steps, **members)


def translated(source: str) -> str:
    """Return the source after Java's first step: an escape begins with an unpaired backslash."""
    return re.sub(r"(\\\\)|\\u+([0-9a-f]{4})", lambda found: found[1] or chr(int(found[2], 16)), source)


@given(st.text())
@example('\\u0022 + "')
@example("\\\\u000a")
@example("\\\n0\r\x7f\0é\u2028\ud800😀")
def test_a_java_literal_is_the_text_and_ascii(text):
    """A reader of Java's two steps gets the text back; no line break and no quote is left after the first one."""
    literal = java_string(text)
    assert literal.isascii()
    assert literal.isprintable()
    inside = translated(literal)[1:-1]
    assert not re.search(r"[\r\n]", inside)
    assert re.fullmatch(r'(?:[^"\\]|\\["\\]|\\[0-7]{3})*', inside, re.DOTALL)
    read = re.sub(r"\\([0-7]{3}|.)", lambda found: chr(int(found[1], 8)) if len(found[1]) == 3 else found[1], inside)
    assert read.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


@given(st.text())
@example("\\u002a/ class Evil {} /*")
@example("*/ */")
@example("\n System.exit(1);")
def test_a_java_comment_ends_where_it_should(text):
    comment = java_comment(text)
    assert comment.isascii()
    assert comment.isprintable()
    seen = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), comment)
    assert "*/" not in seen
    assert not re.search(r"[\r\n]", seen)


def test_a_long_text_is_split_into_literals():
    assert java_long_string("a" * LONGEST) == java_string("a" * LONGEST)
    assert java_long_string("a" * LONGEST + "b").endswith(', "b")')
    assert len(java_comment("a" * 5000)) < 500


@pytest.mark.parametrize("name", ["class", "int", "record", "OffsetIndex", "a-b", "ä", "1a"])
def test_a_name_that_no_class_of_the_test_can_have(name):
    with pytest.raises(ToolError, match="is not a valid name"):
        java_reproducer(trace(), "4.4.0", "jvm", name)


@pytest.mark.parametrize("hostile", [INJECTION, '"""\nimport os\n"""', "\\", "\0", "\udc80", "a\r\nb"])
def test_a_python_program_has_names_and_titles_as_text_only(hostile):
    """Its statements equal the statements of a harmless trace."""

    def shape(text):
        return [type(statement) for statement in ast.parse(text).body]

    harmless = python_reproducer(trace(), "4.4.0", "jvm", "ticket")
    text = python_reproducer(trace(title=hostile), "4.4.0", hostile, hostile)
    text.encode()
    assert shape(text) == shape(harmless)
    whole = python_reproducer(trace(machine="segment"), "4.4.0", "jvm", "ticket")
    text = python_reproducer(
        trace(machine=hostile, title=hostile, provenance={"x": hostile}), "4.4.0", hostile, hostile
    )
    text.encode()
    assert shape(text) == shape(whole)


def test_data_that_python_would_not_parse_is_rejected():
    with pytest.raises(ToolError, match="cannot export this trace to Python"):
        python_reproducer(trace(machine="log", provenance={"seed": float("inf")}), "4.4.0", "jvm", "ticket")


def test_a_step_that_cannot_be_executed_is_one_line(tmp_path):
    one = Trace("offset", "4.4.0", (*trace().operations[:1], Operation("write_file", ("no hexadecimal number",))))
    for suffix in (".py", ".java"):
        with pytest.raises(ToolError, match=r"^step 2 of the trace, write_file.*cannot be executed"):
            write_reproducer(tmp_path / f"Ticket{suffix}", one, "4.4.0", "jvm")
    assert list(tmp_path.iterdir()) == []


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["conformance", "replay", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["\ud800", "a\udc80", "a" * 5000, "a" * 256, "/".join(["a" * 250] * 5), "ä" * 128])
@pytest.mark.parametrize("name", ["Ticket.java", "ticket.py"])
def test_an_impossible_path_is_rejected_in_one_line(tmp_path, monkeypatch, capsys, path, name):
    file = trace(path).save(tmp_path)
    said = refused(monkeypatch, capsys, file, "--export", tmp_path / name)
    assert "not a path inside the directory of the replay that a file can have" in said
    assert len(said) < 600
    assert list(tmp_path.iterdir()) == [file]


def test_a_rejected_replay_writes_no_script(tmp_path, monkeypatch, capsys):
    file = trace().save(tmp_path)
    for name in ("ticket.py", "Ticket.java"):
        assert "bogus" in refused(monkeypatch, capsys, file, "-i", "bogus", "--export", tmp_path / name)
    assert list(tmp_path.iterdir()) == [file]


def test_half_a_surrogate_pair_in_a_log_trace_is_rejected(tmp_path, monkeypatch, capsys):
    one = Trace("log", "4.4.0", (Operation("damage_log_file", ("\ud800.log", "cut_file", [0])),))
    assert "is not text that UTF-8 can encode" in refused(monkeypatch, capsys, one.save(tmp_path))
