"""``--max-time`` ends a run between two examples, and does nothing else to it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import Phase, settings
from rich.console import Console
from thorough_params import thorough_param

from conformance.events import Replayed, Result
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep.lockstep import Observer
from conformance.machines import MACHINES
from conformance.report.combined import CombinedReport
from conformance.report.html import html
from conformance.report.stream import NdjsonWriter, read_streams
from conformance.report.terminal import TerminalWriter
from conformance.runs.chunks import CHUNK, chunks_of, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import load_regression_traces
from conformance.runs.runner import Plan, run
from conformance.scratch import scratch_directory

QUICK = settings(PROFILES["dev"].settings(CHUNK), phases=[Phase.generate])


def examples_before(machine: str, limit: int | None) -> list[list[str]]:
    """Return the examples of a run of 25, if time is up before the example with this number."""
    with scratch_directory() as scratch:
        lockstep = MACHINES[machine].new_lockstep([], scratch, releases=["4.4.0"])
        done: list[list[str]] = []

        class Noting(Observer):
            def begins(self) -> tuple[str, ...]:
                if lockstep.operations or done:
                    done.append([str(operation) for operation in lockstep.operations])
                return ()

        lockstep.observers.append(Noting())
        for chunk in chunks_of(machine, 25, 3):
            bound = MACHINES[machine].bind(lockstep)
            if not run_chunk(bound, QUICK, chunk.seed, chunk.examples, lambda: lockstep.statistics.examples == limit):
                break
        return [*done, [str(operation) for operation in lockstep.operations]]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("machine", "limit"), [("offset", 1), ("offset", 14), *(thorough_param("log", limit) for limit in (1, 14))]
)
def test_the_examples_up_to_the_limit_are_those_of_the_seed(machine, limit):
    whole, cut = examples_before(machine, None), examples_before(machine, limit)
    assert len(cut) == limit < len(whole)
    assert cut == whole[:limit]


def events_and_text(
    implementations, tmp_path, max_time: float | None, *, replays: bool = False
) -> tuple[list[Any], str]:
    implementations["sound"] = ReferenceIndex
    events: list[Any] = []
    plan = Plan(("4.4.0",), ("sound",), ("offset",), PROFILES["dev"], tmp_path, 1, 30, max_time, replays=replays)
    assert run(plan, events.append) == (max_time is None or max_time > 1000)
    text = io.StringIO()
    with TerminalWriter(Console(file=text, width=200)) as write:
        for event in events:
            write(event)
    return events, text.getvalue()


def results_of(implementations, tmp_path, max_time: float | None) -> list[Result]:
    events, text = events_and_text(implementations, tmp_path, max_time)
    results = [event for event in events if isinstance(event, Result)]
    assert ("of the offset machine not run (--max-time)" in text) == any(r.details.get("cut_by_time") for r in results)
    return results


def test_a_run_without_time_runs_one_example_and_reports_it(implementations, tmp_path):
    (result,) = results_of(implementations, tmp_path, 0.0)
    assert result.examples == 1
    assert result.details == {
        "cut_by_time": True,
        "not_executed": {"regression traces": [0, 0], "examples": [29, 30]},
    }


def test_the_limit_holds_for_regression_traces_and_the_text_says_what_was_not_executed(implementations, tmp_path):
    events, text = events_and_text(implementations, tmp_path, 0.0, replays=True)
    (replayed,) = [event for event in events if isinstance(event, Replayed)]
    (result,) = [event for event in events if isinstance(event, Result)]
    known = len(load_regression_traces("offset"))
    assert len(replayed.traces) == 1 < known
    assert result.examples == 2
    missing = f"{known - 1} of {known} regression traces and 29 of 30 examples"
    assert f"not compared: {missing} of the offset machine not run (--max-time)" in text
    assert text.splitlines()[-1].startswith("INCOMPLETE: no divergence, but ")
    with NdjsonWriter(tmp_path / "out") as writer:
        for event in events:
            writer(event)
    assert f"offset (stopped by --max-time: {missing} not executed)" in html(
        CombinedReport(read_streams([tmp_path / "out"]))
    )


@pytest.mark.thorough
@pytest.mark.parametrize("max_time", [thorough_param(None), 10_000.0])
def test_a_run_with_time_does_them_all(implementations, tmp_path, max_time):
    (result,) = results_of(implementations, tmp_path, max_time)
    assert result.examples >= 30
    assert result.details == {}
