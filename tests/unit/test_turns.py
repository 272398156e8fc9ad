"""Programs for releases with the same rules take turns at drawn examples; all replay the regression traces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.events import Diverged, Result
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

ADAPTERS = Path(__file__).parents[1] / "adapters"
INDEX = f"exec:{sys.executable} {ADAPTERS / 'line_index.py'} --release {{release}}"
GROWING = f"exec:{sys.executable} {ADAPTERS / 'growing_index.py'}"
OF_2_4 = ("2.4.1", "2.8.2", "3.4.1")
"""Releases with the same rules of indexes."""


def performed(directory, implementation, releases, examples=6, **options):
    events = []
    plan = Plan(
        releases, (implementation,), ("offset",), PROFILES["dev"], directory, seed=1, max_examples=examples, **options
    )
    run(plan, events.append)
    return events


def results(events):
    return {event.release: event for event in events if isinstance(event, Result)}


@pytest.mark.thorough
def test_each_drawn_example_is_for_one_of_the_releases_with_the_same_rules(tmp_path):
    found = results(performed(tmp_path, INDEX, (*OF_2_4, "4.3.1"), kept=False))
    assert {release: result.examples for release, result in found.items()} == dict.fromkeys(OF_2_4, 2) | {"4.3.1": 6}
    assert sum(found[release].steps for release in OF_2_4) == found["4.3.1"].steps
    assert [result.details.get("takes_turns") for result in found.values()] == [3, 3, 3, None]
    # No program is credited with another's steps.
    opened = [found[release].clauses["AI-3a"] for release in OF_2_4]
    assert all(opened)
    alone = results(performed(tmp_path / "alone", INDEX, OF_2_4[:1], kept=False))
    assert sum(opened) == alone["2.4.1"].clauses["AI-3a"]


@pytest.mark.thorough
def test_what_only_others_were_asked_was_not_run(tmp_path):
    """It did not fail: another release had the example with this operation."""
    found = results(performed(tmp_path, INDEX, OF_2_4, examples=3, kept=False))
    assert all(all(result.operations.values()) for result in found.values())
    assert len({tuple(result.operations) for result in found.values()}) > 1


@pytest.mark.thorough
def test_regression_traces_are_replayed_by_all_of_them(tmp_path):
    found = results(performed(tmp_path, INDEX, OF_2_4, examples=3))
    alone = results(performed(tmp_path / "alone", INDEX, OF_2_4[:1], examples=1))["2.4.1"]
    assert {result.examples for result in found.values()} == {alone.examples}


def test_a_divergence_of_one_of_them_is_found(tmp_path):
    found = performed(tmp_path, f"{GROWING} --defect lookup", OF_2_4, kept=False, level="must", shrink_time=0)
    (difference,) = (event for event in found if isinstance(event, Diverged))
    assert difference.clause == "OI-7"


def test_other_implementations_take_no_turns(tmp_path):
    found = results(performed(tmp_path, "python:tests.adapters.python_index:open_index", OF_2_4, kept=False))
    assert {result.examples for result in found.values()} == {6}
