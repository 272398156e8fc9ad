"""Fluss's forks of OffsetIndex and TimeIndex, driven as Kafka's own: where they differ, and where they agree."""

from __future__ import annotations

import pytest

from conformance.events import Diverged, RunFinished
from conformance.implementations.forms import is_server
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.replay import replay
from conformance.runs.runner import Plan, run

pytestmark = [pytest.mark.maven, pytest.mark.thorough, pytest.mark.in_turn(3, of="foreign implementations")]
# Maven fetches its jars first.
RELEASE = "3.6.2"
NAME = "subject:fluss"
WIDTHS = {"offset": 8, "time": 12}
SUFFIXES = {"offset": "index", "time": "timeindex"}


def opened(kind, size):
    return Operation("open", (kind, f"00000000000000000000.{SUFFIXES[kind]}", 0, size, True))


def replayed(kind, *steps):
    return replay(Trace(kind, RELEASE, steps, None), [RELEASE], [NAME])


def test_it_is_no_server():
    assert not is_server(NAME)


@pytest.mark.parametrize("kind", WIDTHS)
def test_an_index_behaves_like_kafkas(kind):
    name = {"offset": "append", "time": "maybe_append"}[kind]
    appends = [Operation(name, (10 * n, 10 * n, False)[: 2 if kind == "offset" else 3]) for n in range(1, 6)]
    found = replayed(
        kind,
        opened(kind, 20 * WIDTHS[kind]),
        *appends,
        Operation("lookup", (35,)),
        Operation("resize", (10 * WIDTHS[kind],)),
        Operation("truncate_to", (30,)),
        Operation("trim"),
        Operation("sanity_check"),
        Operation("close"),
        opened(kind, 20 * WIDTHS[kind]),
        Operation("entry", (1,)),
        Operation("delete"),
    )
    assert (found.verdict, found.steps) == ("FIXED", 15)


@pytest.mark.parametrize("kind", WIDTHS)
def test_a_rejected_resize_leaves_it_unmapped(kind):
    refused = -2 * WIDTHS[kind]
    found = replayed(kind, opened(kind, refused), opened(kind, refused), Operation("reset"), Operation("lookup", (0,)))
    assert (found.verdict, found.steps) == ("FAILED", 4)
    assert found.divergence.actual[0] == "closed"


def told_of_a_run(tmp_path, expectations):
    events = []
    plan = Plan(
        (RELEASE, "4.3.1"),
        (NAME,),
        ("offset", "time"),
        PROFILES["ci"],
        tmp_path / "traces",
        seed=2,
        max_examples=150,
        expectations=expectations,
        kept=False,
        shrink_time=5,
    )
    run(plan, events.append)
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    return [event for event in events if isinstance(event, Diverged)], finished.verdict


def test_a_run_finds_two_causes_one_in_each_release(tmp_path):
    (tmp_path / "none").mkdir()
    found, verdict = told_of_a_run(tmp_path, tmp_path / "none")
    assert verdict == "diverges"
    assert {(event.clause, event.releases, event.machines) for event in found} == {
        ("AI-44c", (RELEASE,), ("offset", "time")),
        ("AI-16c", ("4.3.1",), ("offset", "time")),
    }
    assert all(len(event.steps) <= 4 for event in found)


def test_a_run_finds_exactly_the_expected_divergences(tmp_path):
    assert told_of_a_run(tmp_path, None) == ([], "conforms")
