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


def finished(tmp_path, **options):
    events = []
    plan = Plan(
        ("4.4.0",), (ADAPTER,), ("offset",), PROFILES["dev"], tmp_path / "traces", seed=1, kept=False, **options
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


IS_OWED = Expectation.must_not_be_stale


def as_of_a_subject(expectation, **where):
    return IS_OWED(replace(expectation, implementation="subject:mine"), **where)
