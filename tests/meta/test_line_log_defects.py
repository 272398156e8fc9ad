"""The tester is tested: defects in a log over pipes are killed, and the sound log survives the same traces."""

from __future__ import annotations

import pytest
from kill_file import load_kills
from thorough_params import thorough_except

from conformance.implementations.process import ProcessLog
from conformance.lockstep.scopes.log import LogLockstep
from conformance.runs.replay import replay, replay_operations
from tests.meta.line_log_kills import DEFECTS, KILLS, RELEASE, command, hunt, implementation

TRACES = load_kills(KILLS)


def test_there_are_enough_defects_and_each_has_a_trace():
    assert len(DEFECTS) >= 20
    assert set(TRACES) == set(DEFECTS)
    assert all(defect.__doc__ for defect in DEFECTS.values())


@pytest.mark.thorough
@pytest.mark.parametrize("name", thorough_except(list(DEFECTS)[::4], DEFECTS))
def test_a_planted_defect_is_killed_by_its_trace(name):
    assert replay(TRACES[name], [RELEASE], [implementation("--defect", name)]).verdict == "FAILED"


@pytest.mark.thorough
def test_the_sound_log_survives_the_traces(tmp_path):
    """There are two releases, with one process each unless it crashes."""
    for release in (RELEASE, "3.9.2"):
        log = ProcessLog([*command(), release], release)
        lockstep = LogLockstep([log], tmp_path / release)
        for name in DEFECTS:
            replay_operations(lockstep, TRACES[name].operations)
        assert not lockstep.statistics.unsupported
        log.close()


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_unaided(name, tmp_path):
    assert hunt(name, tmp_path, shrink=0.0) is not None
