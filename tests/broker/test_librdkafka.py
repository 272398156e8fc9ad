"""librdkafka's mock cluster: it creates topics on request, and has no lookup by time; the rest is compared."""

from __future__ import annotations

import platform
import sys

import pytest
from server_runs import results_of
from wire_scenarios import COMMON, T, batch, run_scenarios

from conformance.events import Diverged
from conformance.expectations import ExpectationTracker, load_expectations
from conformance.operations import Operation
from conformance.runs.wire import WireRun

pytestmark = [
    pytest.mark.broker,
    pytest.mark.in_turn(5, of="foreign implementations"),
    pytest.mark.thorough,  # its wheel is fetched first
    pytest.mark.skipif(
        (sys.platform, platform.machine()) != ("linux", "x86_64") or sys.version_info >= (3, 14),
        reason="its wheels are for Linux and Python 3.11 to 3.13",
    ),
]
RELEASE = "4.3.1"
NAME = "subject:librdkafka"
CREATE = Operation("create_topic", (COMMON | {"message.timestamp.type": "LogAppendTime"},))
SCENARIOS = (
    (CREATE, batch(T + 50, T + 80, T + 20, codec="gzip"), batch(T + 10)),
    (CREATE, batch(T + 1), Operation("append_corrupt", ([[T, None, 20]],))),
)
"""A topic that is not stamped though the request would have said so, and a wrong checksum."""


def pinned():
    return [each for each in load_expectations() if each.implementation == NAME]


@pytest.fixture(scope="module")
def lockstep(tmp_path_factory):
    return run_scenarios(NAME, RELEASE, tmp_path_factory.mktemp("librdkafka"), SCENARIOS)


@pytest.mark.parametrize("expectation", pinned(), ids=lambda expectation: expectation.signature)
def test_each_expected_divergence_is_found(lockstep, expectation):
    assert any(expectation.matches((clause,), shape) for clause, shape in lockstep.differences)


def test_only_expected_divergences_are_found(lockstep):
    shapes = list(lockstep.differences)
    assert [found for found in shapes if not any(each.matches(found[:1], found[1]) for each in pinned())] == []


def test_no_record_was_looked_up_by_time(lockstep):
    assert set(lockstep.statistics.asked) == {"-1", "-2", "refusals"}
    assert lockstep.statistics.answers > 100


def test_a_drawn_run_conforms_with_the_expectations_and_lists_what_was_skipped(tmp_path):
    events, told = [], []
    options = {"max_examples": 2, "sink": events.append, "announce": told.append}
    (result,) = results_of(WireRun, [RELEASE], NAME, tmp_path, ExpectationTracker(pinned()), **options)
    assert [event.signature for event in events if isinstance(event, Diverged)] == []
    assert result.details["without"] == ["delete-records", "timestamps", "topic-requests", "transactions"]
    assert "leaves them at the end" in told[0]
    assert result.verdicts["LO-2b"] == "conforms"
    assert result.verdicts["LO-6"] == "not-run"
