"""Mutation testing of Kafka itself: builds that are broken in one place of their bytecode are found.

Each has the trace that kills it in ``kafka_kills.ndjson``: ``python -m tests.meta.kafka_kills`` records them.
"""

from __future__ import annotations

import pytest
from broken_kafka import JUMPS, broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE
from kill_file import load_kills

from conformance.implementations.jvm import virtual_machine
from conformance.runs.replay import replay
from tests.meta.kafka_kills import KILLS, found_in, hunt

pytestmark = pytest.mark.jvm
TRACES = load_kills(KILLS)
KILLED = sorted(BROKEN)
FEW = (
    "search-goes-the-other-way",
    "upper-bound-behind-the-start",
    "warm-section-is-half",
    "reserved-slot-given-away",
    "aborted-at-the-bound-is-left-out",
    "rolls-when-just-full",
    "finds-only-later-offsets",
    "end-offset-is-one-off",
)
"""Some of each machine; the rest waits for CI."""
EVERY = [name if name in FEW else pytest.param(name, marks=pytest.mark.thorough) for name in KILLED]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return build_at(tmp_path_factory.mktemp("sound") / "build", RELEASE)


@pytest.fixture
def build(sound, name, tmp_path, monkeypatch):
    """Make the broken build of a test; its class loader is closed and released afterwards."""
    loaders = {}
    monkeypatch.setattr(virtual_machine, "_BUILD_LOADERS", loaders)
    yield broken(sound, BROKEN[name].change, tmp_path / "build")
    for loader in loaders.values():
        loader.close()


def replayed(build, name):
    return replay(TRACES[name], [RELEASE], [f"jvm:{build}"])


def test_enough_builds_are_killed_and_each_has_its_own_trace():
    assert sum(BROKEN[name].change.old in JUMPS for name in KILLED) >= 45
    assert set(TRACES) == set(KILLED)
    for name, trace in TRACES.items():
        assert trace.failure["participant"] == f"jvm:{name} {RELEASE}"
        assert trace.machine == BROKEN[name].machine
    assert {BROKEN[name].machine for name in FEW} == {"offset", "time", "transaction", "segment", "log"}
    assert set(FEW) <= set(KILLED)


@pytest.mark.thorough
@pytest.mark.parametrize("name", EVERY)
def test_its_trace_kills_it_where_it_was_recorded(name, build):
    found = replayed(build, name)
    assert found.verdict == "FAILED"
    recorded = TRACES[name].failure
    assert (found.divergence.step, list(found.divergence.aspects)) == (recorded["step"], recorded["aspects"])


@pytest.mark.parametrize("name", EVERY)
def test_its_trace_passes_on_the_sound_build(name, sound):
    assert replayed(sound, name).verdict == "FIXED"


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FEW)
def test_the_machine_finds_it_unaided(name, build, tmp_path):
    """Some; ``python -m tests.meta.kafka_kills --table`` looks for all (reports/broken_kafkas.md)."""
    events = hunt(build, BROKEN[name].machine, tmp_path / "traces", shrink=0, replays=False)
    first, examples, steps = found_in(events)
    assert first is not None, (examples, steps)
