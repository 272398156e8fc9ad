"""Generator coverage: events of a run are counted, and required rows must be reached."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.attribution.tables import rows_of
from conformance.clauses.machines import DEFAULT_MACHINES, MACHINES
from conformance.errors import CoverageError
from conformance.events import RunFinished
from conformance.expectations import ExpectationTracker
from conformance.lockstep import Lockstep
from conformance.lockstep.generator_coverage import EXAMPLES, measured, missed_rows, name_of, rows_for, steps_of
from conformance.operations import Operation
from conformance.runs import verdicts
from conformance.runs.chunks import ChunkResult
from conformance.runs.machine_run import machine_run
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import load_regression_traces
from conformance.runs.runner import run as carry_out
from conformance.runs.runner import run_examples
from conformance.runs.verdicts import coverage_of, missing_coverage

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kinds(tmp_path):
    """Return the kinds of results of a few steps of an offset index."""
    lockstep = Lockstep([], tmp_path, releases=["2.4.1", "4.4.0"])
    lockstep.begin()
    for operation in (
        Operation("open", ("offset", "0.index", 0, 16, True)),
        Operation("append", (1, 5)),
        Operation("append", (1, 5)),
        Operation("append", (2, 5)),
        Operation("append", (3, 5)),
        Operation("close"),
        Operation("lookup", (1,)),
    ):
        lockstep.perform(operation)
    lockstep.end()
    return lockstep.statistics.kinds


def row_of(clause, operation, result="ok"):
    (row,) = (row for row in rows_for("offset") if row.clause == clause and row.is_about(operation, result))
    return row


def test_every_step_is_counted_once(kinds):
    """Not once for each dialect."""
    assert kinds.total() == 7
    assert steps_of(row_of("OI-3", "append"), kinds) == 2
    assert steps_of(row_of("OI-3", "append", "invalid_argument"), kinds) == 1
    assert steps_of(row_of("OI-7", "lookup"), kinds) == 0
    assert steps_of(row_of("AI-19a", "lookup", "closed"), kinds) == 1


def test_every_machine_has_rows_and_few_are_rare():
    assert set(EXAMPLES) == set(DEFAULT_MACHINES)
    for machine in DEFAULT_MACHINES:
        rare = [row for row in rows_for(machine) if row.rare]
        assert len(rows_for(machine)) > 20, machine
        assert len(rare) < len(rows_for(machine)) / 3, machine


def test_rows_have_unique_names():
    for machine in MACHINES:
        rows = rows_of(machine)
        assert len({name_of(row) for row in rows}) == len(rows), machine


def test_a_row_that_no_step_is_about_is_reported(kinds):
    missed = missed_rows("offset", kinds)
    assert "OI-7" in {row.clause for row in missed}
    assert not any(steps_of(row, kinds) or row.rare for row in missed)
    resizes = missed_rows("offset", kinds, supported={"resize"})
    assert resizes == [row for row in missed if "resize" in row.operations.split()]
    every = {(name, result, (row.clause,)): 1 for row in rows_for("offset") for name, result in pairs(row)}
    assert not missed_rows("offset", every)


def pairs(row):
    return [
        (name, None if result == "ok" else result) for name in row.operations.split() for result in row.results.split()
    ]


def test_the_rows_are_events_and_have_their_results(kinds):
    rows = {row.name: row for row in measured("offset", kinds, demanded=True)}
    appended, answered = (name_of(row_of(*row)) for row in (("OI-3", "append"), ("OI-7", "lookup")))
    assert (rows[appended].figures, rows[appended].passed) == ({"steps": 2}, True)
    assert (rows[answered].figures, rows[answered].passed) == ({"steps": 0}, False)
    assert {rows[name_of(row)].passed for row in rows_for("offset") if row.rare} == {None}
    assert all(row.table == "coverage of the offset machine" for row in rows.values())
    assert {row.passed for row in measured("offset", kinds, demanded=False)} == {None}


def test_regression_traces_do_not_count_as_generator_coverage(tmp_path):
    """A short run with many regression traces has not drawn enough for required rows."""
    plan = Plan(("4.4.0",), (), ("offset",), PROFILES["ci"], tmp_path, max_examples=3)
    with machine_run(plan, "offset", tmp_path / "scratch", ExpectationTracker(())) as run:
        evidence = run_examples(run, 0, None, lambda _: None)
    assert evidence.examples == 3 + len(load_regression_traces("offset"))
    assert evidence.drawn == 3
    assert 0 < evidence.drawn_kinds.total() < evidence.kinds.total()


@pytest.mark.parametrize("demand", [False, True])
def test_only_a_run_that_demands_it_answers_for_the_generator(tmp_path, demand):
    """A user's run of the ci profile reports nothing about the harness's own rows, whatever it has skipped."""
    plan = Plan(("4.4.0",), (), ("offset",), PROFILES["ci"], tmp_path, demand_coverage=demand)
    with machine_run(plan, "offset", tmp_path / "scratch", ExpectationTracker(())) as run:
        evidence = ChunkResult(drawn=EXAMPLES["offset"])
        assert bool(missing_coverage(run, evidence)) is demand
        assert {row.passed for row in coverage_of(run, evidence)} == ({False, None} if demand else {None})


@pytest.mark.thorough
def test_missed_rows_of_the_generator_are_reported_after_the_verdict(tmp_path, monkeypatch):
    """The events are complete: every row and the footer come before the error."""
    monkeypatch.setitem(verdicts.EXAMPLES, "transaction", 1)
    kafka = ("python:tests.adapters.python_index:open_index",)
    plan = Plan(("4.4.0",), kafka, ("transaction",), PROFILES["ci"], tmp_path, max_examples=1, demand_coverage=True)
    events = []
    with pytest.raises(CoverageError, match="the transaction machine never reached"):
        carry_out(plan, events.append)
    footer = events[-1]
    assert isinstance(footer, RunFinished)
    assert footer.verdict == "conforms"
    assert "never reached" in footer.details["uncovered"][0]
    carry_out(replace(plan, demand_coverage=False), events.append)
    assert "uncovered" not in events[-1].details


def test_ci_demands_it():
    runs = (ROOT / ".ci" / "run").read_text("utf-8").replace("\\\n", " ").splitlines()
    demanding = [line for line in runs if "--demand-coverage" in line]
    driven = re.findall(r"--machine (\w+)", " ".join(demanding))
    assert sorted(driven) == sorted(EXAMPLES)
    assert all("--profile ci" in line and "--kafka all" in line for line in demanding)
