"""Mutation testing of Kafka itself: builds that are broken in one place of their bytecode are found.

Every broken build has the trace that kills it in ``kafka_kills``: ``python -m tests.meta.kafka_kills`` records them.
"""

from __future__ import annotations

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, RELEASE

from conformance.operations.trace import Trace
from conformance.runs.replay import replay
from tests.meta.kafka_kills import KILLS, found_in, hunt

pytestmark = pytest.mark.jvm

FEW = (
    "search-goes-the-other-way",
    "reserved-slot-given-away",
    "aborted-at-the-bound-is-left-out",
    "rolls-when-just-full",
    "end-offset-is-one-off",
)
"""One of each machine."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return build_at(tmp_path_factory.mktemp("sound") / "build", RELEASE)


def replayed(build, name):
    return replay(Trace.load(KILLS / f"{name}.json"), [RELEASE], [f"jvm:{build}"])


def test_there_are_enough_and_each_has_its_trace():
    assert len(BROKEN) >= 25
    assert {path.stem for path in KILLS.glob("*.json")} == set(BROKEN)
    assert {BROKEN[name].machine for name in FEW} == {one.machine for one in BROKEN.values()}


@pytest.mark.parametrize("name", FEW)
def test_the_trace_kills_it_and_not_the_sound_build(name, sound, tmp_path):
    build = broken(sound, BROKEN[name].change, tmp_path / "build")
    assert replayed(build, name).verdict == "FAILED"
    assert replayed(sound, name).verdict == "FIXED"


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(BROKEN) - set(FEW)))
def test_every_trace_kills_its_build(name, sound, tmp_path):
    build = broken(sound, BROKEN[name].change, tmp_path / "build")
    assert replayed(build, name).verdict == "FAILED"
    assert replayed(sound, name).verdict == "FIXED"


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(BROKEN))
def test_the_machine_finds_it_unaided(name, sound, tmp_path):
    build = broken(sound, BROKEN[name].change, tmp_path / "build")
    first, examples, steps = found_in(hunt(build, BROKEN[name].machine, tmp_path / "traces", shrink=0))
    assert first is not None, (examples, steps)
