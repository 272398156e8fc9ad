"""All sequences are tried, and all states of the files that a crash can leave."""

from __future__ import annotations

import pytest

from conformance.errors import ToolError
from conformance.operations import KINDS
from conformance.studies import study
from conformance.studies.small_world.crashes import CRASHING, SETUP, crash_points
from conformance.studies.small_world.sequences import alphabet, sequences
from conformance.studies.small_world.study import EXHAUSTIVE, Options
from conformance.studies.study import KnownCauses, Request


def rows_of(directory, machine, releases, implementations=("jvm",)):
    """Return the results of a machine, with sequences of two operations."""
    request = Request((machine,), options=Options(2), releases=releases, implementations=implementations)
    return EXHAUSTIVE.search(request, releases[-1], directory)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_sequence_occurs_once(kind):
    letters = alphabet(kind)
    words = list(sequences(kind, 2))
    assert len(words) == len(set(words)) == len(letters) ** 2
    assert all(word[0].name == "open" for word in words)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_agrees_with_the_model_in_a_small_world(kind, tmp_path):
    (explored,) = rows_of(tmp_path, kind, ("2.4.1", "4.4.0"), ())
    assert explored["agree"]
    assert explored["sequences"] == len(alphabet(kind)) ** 2
    assert explored["steps"] > 2 * explored["sequences"]


def test_a_mutant_is_found_in_a_small_world(tmp_path):
    (explored,) = rows_of(tmp_path, "offset", ("4.4.0",), ("mutant:keeps-the-equal-offset",))
    assert not explored["agree"]
    assert len(explored["failure"]) <= 3


def test_a_file_that_grows_is_cut_at_every_byte():
    before, after = (b"ab", None, b"\0\0", b""), (b"abcdef", None, b"\1\2", b"")
    states = [(point.file, point.how, point.files[0], point.files[2]) for point in crash_points("x", before, after)]
    assert states == [
        (".log", "nothing", b"ab", b"\0\0"),
        (".log", "prefix", b"abc", b"\0\0"),
        (".log", "prefix", b"abcd", b"\0\0"),
        (".log", "prefix", b"abcde", b"\0\0"),
        (".log", "torn", b"ab\0\0ef", b"\0\0"),
        (".timeindex", "nothing", b"abcdef", b"\0\0"),
        (".timeindex", "prefix", b"abcdef", b"\1\0"),
        (".timeindex", "torn", b"abcdef", b"\0\2"),
        (".txnindex", "all", b"abcdef", b"\1\2"),
    ]


@pytest.mark.thorough
def test_a_segment_is_interrupted_in_each_of_its_operations(tmp_path):
    assert sum(operation.name == "append_records" for operation in SETUP) == 4
    crashed = rows_of(tmp_path, "segment", ("3.9.2",), ())
    assert [each["operation"] for each in crashed] == list(CRASHING)
    assert all(each["points"] > 2 and each["agree"] for each in crashed)


def test_a_recovery_that_forgets_is_found_by_a_crash(tmp_path):
    crashed = rows_of(tmp_path, "segment", ("4.4.0",), ("mutant:recovery-forgets-the-last-time-entry",))
    assert not all(row["agree"] for row in crashed)


def test_a_known_cause_without_a_clause_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(study.Path, "is_file", lambda _: True)
    monkeypatch.setattr(study.Path, "read_text", lambda *_: '[[known]]\nclause = "AI-999"\n')
    with pytest.raises(ToolError, match="no clause is called AI-999"):
        KnownCauses(EXHAUSTIVE)
