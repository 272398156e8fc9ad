"""The tester is tested: defects in a log behind pipes are killed, and the sound log survives the same traces."""

from __future__ import annotations

import pytest

from conformance.operations.trace import Trace
from conformance.runs.replay import replay
from tests.meta.line_log_kills import DEFECTS, KILLS, RELEASE, hunt, implementation


def test_there_are_enough_of_them_and_each_has_a_trace():
    assert len(DEFECTS) >= 20
    assert {path.stem for path in KILLS.glob("*.json")} == set(DEFECTS)
    assert all(defect.__doc__ for defect in DEFECTS.values())


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_killed_by_its_trace(name):
    trace = Trace.load(KILLS / f"{name}.json")
    assert replay(trace, [RELEASE], [implementation("--defect", name)]).verdict == "FAILED"


@pytest.mark.parametrize("first", range(0, len(DEFECTS), 10))
def test_the_sound_log_survives_the_traces(first):
    """Ten traces a process of pytest, each in a process of its own."""
    for name in [*DEFECTS][first : first + 10]:
        assert replay(Trace.load(KILLS / f"{name}.json"), [RELEASE], [implementation()]).verdict == "FIXED", name


@pytest.mark.thorough
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_unaided(name, tmp_path):
    assert hunt(name, tmp_path, shrink=0.0) is not None
