"""A program that crashes: the run continues after the crash, reports it, and finds later defects."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from conformance.events import Diverged, Event, Result
from conformance.implementations.process.line_process import WAITED
from conformance.lockstep import Divergence
from conformance.lockstep.divergence import Decision
from conformance.machines import MACHINES
from conformance.operations import Operation, Outcome
from conformance.operations.outcomes import FAILURE
from conformance.report.remarks import describe_failures
from conformance.runs import machine_run
from conformance.runs.chunks import FAILURES, ChunkResult
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

CRASHING = "python:tests.adapters.crashing_index:open_index"
PROGRAM = f"exec:{sys.executable} {Path(__file__).parents[1] / 'adapters' / 'crashing_index.py'}"


def carried_out(implementation, directory, **options):
    events: list[Event] = []
    options = {"max_examples": 60, "replays": False, "shrink_time": 2.0} | options
    plan = Plan(("4.4.0",), (implementation,), ("offset",), PROFILES["dev"], directory, **options)
    assert not run(plan, events.append)
    (result,) = (event for event in events if isinstance(event, Result))
    return result, {event.signature.partition(":")[0]: event for event in events if isinstance(event, Diverged)}


def check(result, found, examples):
    assert {"append", "lookup"} <= {shape.removeprefix("bulk_") for shape in found}
    failures = result.details["failures"]
    assert result.examples >= examples
    assert failures["examples"] == result.examples
    assert failures["cut short"] > 3
    assert failures["not executed"] == 0
    line = describe_failures(result)
    assert (
        f"failed in {failures['cut short']} of {result.examples} examples of the offset machine, which ended there"
        in line
    )
    assert line.endswith("Fix this first: it may hide other divergences.")


@pytest.mark.thorough
def test_a_crash_does_not_hide_a_later_defect(tmp_path):
    result, found = carried_out(CRASHING, tmp_path, max_examples=30)
    check(result, found, 30)


@pytest.mark.thorough
def test_a_program_that_has_ended_is_started_again(tmp_path):
    result, found = carried_out(PROGRAM, tmp_path, max_examples=20, shrink_time=1.0)
    check(result, found, 20)


@pytest.mark.thorough
def test_a_budget_bounds_the_crashes_and_the_run_reports_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_run, "FAILURES", 4)
    result, found = carried_out(CRASHING, tmp_path)
    failures = result.details["failures"]
    assert failures["cut short"] >= 4
    assert result.examples < 60
    assert failures["not executed"] == 60 - result.examples
    assert (
        f"{failures['not executed']} of 60 examples were not executed: it dropped out of the run."
        in describe_failures(result)
    )
    assert any("append" in shape for shape in found)


def failure(text):
    outcome = Outcome(FAILURE, None, text)
    return Divergence(1, Operation("append"), "mine", "4.4.0", "kidx", ("outcome",), Outcome(None, None), outcome, ())


def test_a_slow_program_drops_out_with_its_third_failure():
    late = ChunkResult()
    for number in range(1, 4):
        late.note_failure(failure(f"{WAITED[0]} 10 s to …"))
        assert bool(late.gone(FAILURES)) is (number == 3)
    ended = ChunkResult()
    for _ in range(3):
        ended.note_failure(failure("ended (exit status 3) instead of replying to …"))
    assert not ended.gone(FAILURES)
    assert ended.failed == {"mine": Counter({"append: failure": 3})}


def test_results_after_it_dropped_out_do_not_count():
    total = ChunkResult()
    for number in range(3):
        chunk = ChunkResult(
            number, examples=10, steps=50, dropout_scores={"mine": 2}, failed={"mine": Counter({"a": 2})}
        )
        total.add(chunk, 4)
    assert total.examples == 30
    assert total.left == {"mine": (20, 100)}
    assert total.failed == {"mine": Counter({"a": 4})}


def test_what_crashes_without_an_effect_is_left_out_of_later_examples_and_named(tmp_path):
    """The rest of the machine is still exercised; the steps of other divergences do not include the skipped ones."""
    name = "python:tests.adapters.crashing_index:open_crashing_lookups"
    result, found = carried_out(name, tmp_path, max_examples=20, shrink_time=0.5, jobs=1)
    failures = result.details["failures"]
    assert failures["not survived"] == ["lookup"]
    assert failures["avoided"] > failures["cut short"]
    line = describe_failures(result)
    assert "Nothing was compared after lookup: it failed each time." in line
    assert f"{failures['avoided']} steps like those at which it failed were skipped" in line
    others = [event for signature, event in found.items() if signature.removeprefix("bulk_") != "lookup"]
    assert "truncate" in {event.signature.partition(":")[0] for event in others}
    assert all("lookup" not in step for event in others for step in event.steps)


def test_a_crash_excludes_only_arguments_of_its_class(tmp_path):
    """A negative target and a target of zero exercise the same clauses: both are before the first entry."""
    name = "python:tests.adapters.crashing_index:open_crashing_below_zero"
    subject = MACHINES["offset"].subject(name, "4.4.0")
    lockstep = MACHINES["offset"].new_lockstep([subject], tmp_path, on_divergence=lambda _: Decision.SKIP_EXAMPLE)
    (participant,) = lockstep.subjects_compared
    participant.crashed = set()
    opening = Operation("open", ("offset", "0.index", 0, 80, True)), Operation("append", (7, 100))
    active = []
    for entries, target in ((1, -1), (1, 0), (0, 0), (1, 0), (1, -2)):
        participant.skipped.clear()
        with lockstep.example():
            for operation in (*opening[: entries + 1], Operation("lookup", (target,))):
                lockstep.perform(operation)
            active.append((entries, target, participant.active, bool(participant.skipped)))
    assert active == [
        (1, -1, False, False),  # crashes
        (1, 0, True, True),  # may crash as well
        (0, 0, True, False),  # does not crash with zero, in an empty index
        (1, 0, False, False),  # is compared, and wrong
        (1, -2, True, True),
    ]
