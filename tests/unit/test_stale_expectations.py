"""Expectations that a run did not match: when they are errors, and when they are only reported."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from thorough_params import thorough_param

from conformance.expectations import Expectation, StaleExpectationError, load_expectations, read_expectations
from conformance.runs import runner
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

ADAPTER = shlex.join(["exec:" + sys.executable, str(Path(__file__).parents[1] / "adapters" / "line_index.py")])
ENTRY = """
[[expectation]]
{what}
machine = "offset"
implementation = "exec:*"
releases = ">=2.4.0"
reason = "a debt that was paid"
link = "https://example.org/7"
"""
SIGNATURE = ENTRY.format(what='signature = "append: outcome ok -> full"')
CLAUSE = ENTRY.format(what='clause = "OI-1"')


def finished(tmp_path, implementation=ADAPTER, **options):
    events = []
    plan = Plan(
        ("4.4.0",), (implementation,), ("offset",), PROFILES["dev"], tmp_path / "traces", seed=1, kept=False, **options
    )
    try:
        assert run(plan, events.append)
        return events[-1]
    except StaleExpectationError:
        return events[-1]


@pytest.fixture
def own(tmp_path):
    directory = tmp_path / "own"
    directory.mkdir()

    def written(text):
        (directory / "mine.toml").write_text(text)
        return directory

    return written


@pytest.mark.thorough
@pytest.mark.parametrize("text", [thorough_param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_users_own_file_it_is_an_error(tmp_path, own, text):
    told = finished(tmp_path, expectations=own(text), max_examples=9)
    assert (told.verdict, len(told.details["stale"]), "not seen" in told.details) == ("stale", 1, False)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [pytest.param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_users_own_file_it_is_an_error_in_a_run_cut_by_time_too(tmp_path, own, text):
    told = finished(tmp_path, expectations=own(text), max_time=2)  # a program has to start in this time
    assert (told.verdict, len(told.details["stale"]), "not seen" in told.details) == ("stale", 1, False)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [pytest.param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_catalogue_it_is_reported_and_no_error(tmp_path, monkeypatch, text):
    """Their versions are locked, and the user of a run has nothing to remove."""
    shipped = read_expectations("shipped.toml", text)
    monkeypatch.setattr(runner, "load_expectations", lambda directory=None: load_expectations(directory) + shipped)
    assert finished(tmp_path, max_examples=9).verdict == "stale"
    monkeypatch.setattr(Expectation, "must_not_be_stale", as_of_a_subject)
    told = finished(tmp_path, max_examples=9)
    assert (told.verdict, len(told.details["not seen"])) == ("conforms", 1)


PYTHON = """
from kidx import OffsetIndex


class Own:
    def __init__(self, *arguments):
        self._index = OffsetIndex(*arguments)

    def __getattr__(self, name):
        return getattr(self._index, name)


class Subclass(OffsetIndex):
    pass


def own(kind, path, base_offset, max_index_size, writable):
    return Own(path, base_offset, max_index_size, writable)


def subclass(kind, path, base_offset, max_index_size, writable):
    return Subclass(path, base_offset, max_index_size, writable)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("factory", ["own", "subclass"])
def test_it_is_an_error_for_every_kind_of_python_object(tmp_path, own, monkeypatch, factory):
    (tmp_path / "stale_objects.py").write_text(PYTHON)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = CLAUSE.replace("exec:*", "python:*")
    told = finished(tmp_path, f"python:stale_objects:{factory}", expectations=own(entry), max_examples=9)
    assert (told.verdict, len(told.details["stale"])) == ("stale", 1)


@pytest.mark.thorough
def test_an_excuse_of_a_must_clause_is_named_in_the_last_lines(in_process, tmp_path, own):
    entry = CLAUSE.replace("exec:*", "mutant:*").replace("OI-1", "AI-20")
    command = ("run", "-i", "mutant:forgets-to-delete", "--machine", "offset", "--kafka", "4.4.0", "--level", "must")
    few = ("--max-examples", "5", "-j", "1", "--expectations", str(own(entry)))
    done = in_process("conformance", *command, *few, work=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})
    *_, named, last = done.stdout.splitlines()
    assert done.returncode == 0
    assert named.startswith("expected, so it does not count: mine.toml, entry 1: AI-20, offset machine, mutant:*")
    assert last.startswith("conforms · ")
    assert " · 1 expectation used · " in last


IS_OWED = Expectation.must_not_be_stale


def as_of_a_subject(expectation, **where):
    return IS_OWED(replace(expectation, implementation="subject:mine"), **where)
