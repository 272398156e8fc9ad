"""What a run has been through is counted, and what it should have been through is demanded."""

from __future__ import annotations

import pytest

from conformance.expectations import Ledger
from conformance.lockstep import Lockstep
from conformance.lockstep.generator_coverage import (
    Cell,
    cells_of,
    empty_cells,
    impossible_cells,
    load_demands,
    measured,
)
from conformance.machines import MACHINES
from conformance.operations import Operation, every_signature
from conformance.runs.machine_run import machine_run
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.regression_traces import kept_traces
from conformance.runs.rounds import play
from conformance.runs.verdicts import coverage_of


@pytest.fixture
def cells(tmp_path):
    """What a few steps of an offset index come to."""
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
    return cells_of(lockstep.statistics.cells)


def test_every_step_falls_into_one_cell(cells):
    """Counted once, not once for each dialect."""
    assert cells == {
        Cell("open", "nothing", "ok"): 1,
        Cell("append", "empty", "ok"): 1,
        Cell("append", "one entry", "invalid_offset"): 1,
        Cell("append", "one entry", "ok"): 1,
        Cell("append", "full", "invalid_argument"): 1,
        Cell("close", "full", "ok"): 1,
        Cell("lookup", "closed", "closed"): 1,
    }


def test_every_machine_has_demands_that_make_sense():
    demands = load_demands()
    assert set(demands) == set(MACHINES)
    for machine, demanded in demands.items():
        assert len(demanded.must) > 40, machine
        assert demanded.examples > 0
        assert {cell.operation for cell in demanded.must} <= set(every_signature())
        assert not impossible_cells(machine, dict.fromkeys(demanded.must, 1))
        assert all(reason for _, reason in demanded.cannot)


def test_a_cell_that_stays_empty_is_reported(cells):
    empty = empty_cells("offset", cells)
    assert Cell("append", "damaged", "invalid_argument") in empty
    assert Cell("append", "empty", "ok") not in empty
    assert empty_cells("offset", cells, supported=["flush"]) == [cell for cell in empty if cell.operation == "flush"]
    assert not empty_cells("offset", dict.fromkeys(load_demands()["offset"].must, 1))


def test_a_cell_that_cannot_be_and_was_is_reported(cells):
    assert not impossible_cells("offset", cells)
    ((cell, reason),) = impossible_cells("offset", {Cell("append", "full", "ok"): 1})
    assert cell.state == "full"
    assert reason


def test_the_histogram_is_an_event_a_row_and_says_what_holds(cells):
    rows = {row.name: row for row in measured("offset", cells, demanded=True)}
    assert rows["append × one entry"].figures == {"invalid_offset": 1, "ok": 1} | {
        cell.outcome: 0
        for cell in load_demands()["offset"].must
        if cell[:2] == ("append", "one entry") and cell.outcome not in ("ok", "invalid_offset")
    }
    assert rows["append × damaged"].holds is False
    assert all(row.table == "coverage of the offset machine" for row in rows.values())
    assert {row.holds for row in measured("offset", cells, demanded=False)} == {None}


def test_kept_traces_are_not_what_the_generator_reaches(tmp_path):
    """A short run with many kept traces has not drawn enough that cells could be demanded of it."""
    plan = Plan(("4.4.0",), (), ("offset",), PROFILES["ci"], tmp_path, max_examples=3)
    with machine_run(plan, "offset", tmp_path / "scratch", Ledger(())) as run:
        evidence = play(run, 0, None, lambda _: None)
        rows = list(coverage_of(run, evidence))
    assert evidence.examples == 3 + len(kept_traces("offset"))
    assert evidence.drawn == 3
    told = sum(count for row in rows for count in row.figures.values())
    assert 0 < told == evidence.drawn_cells.total() < evidence.cells.total()
