"""kfake, franz-go's broker in memory: its expected divergences are found, and no others."""

from __future__ import annotations

import pytest
from server_runs import results_of
from wire_scenarios import COMMON, HIDDEN, STAMPED, T, batch

from conformance.events import Diverged
from conformance.expectations import Expectation, ExpectationTracker, load_expectations
from conformance.lockstep.scopes.wire import WireLockstep
from conformance.operations import Operation
from conformance.runs.wire import WireRun
from conformance.runs.wire_options import WireOptions

# Building it from nothing takes Go longer than the rest of the folder takes.
pytestmark = [pytest.mark.go, pytest.mark.thorough, pytest.mark.in_turn(5, of="foreign implementations", build="kfake")]
RELEASE = "4.3.1"
NAME = "subject:kfake"
CREATE = Operation("create_topic", (COMMON | {"message.timestamp.type": "CreateTime"},))


LARGE = Operation("append_batch", ([[T + 2, None, 65_300]], "none", None))
"""Part of the 64 KiB of a fetch that leaves no space for the marker after it."""


def delete(offset):
    return Operation("delete_before", (offset,))


SCENARIOS = (
    STAMPED,
    (CREATE, batch(T + 1), batch(T + 10, T + 11, T + 12, producer="a"), batch(T + 20), delete(-1)),
    (CREATE, batch(T + 1), batch(T + 10, producer="a"), batch(T + 20), batch(T + 20, producer="b"), delete(3)),
    (CREATE, batch(T + 1), delete(1), delete(0), batch(T + 3)),
    (CREATE, batch(T + 1, producer="a"), LARGE, Operation("end_transaction", ("a", False))),
    HIDDEN,
)
"""A broker's clock; everything deleted with a transaction open, and its begin; deleting once more; a fetch that ends
inside an aborted transaction; and a deleted record that hides later segments."""


def stale(ledger, result):
    exercised = [clause for clause, steps in result.clauses.items() if steps]
    return ledger.stale({("wire", NAME, RELEASE): exercised}, {"wire": result.details["performed"]})


def pinned():
    return [each for each in load_expectations() if each.implementation == NAME]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    with WireOptions().open(NAME) as broker:
        broker.versions = (2, 8)
        lockstep = WireLockstep(broker, RELEASE, tmp_path_factory.mktemp("kfake"))
        for life in SCENARIOS:
            for operation in life:
                lockstep.perform(operation)
            lockstep.finish()
    assert lockstep.statistics.abandoned == 0
    assert lockstep.statistics.without_log_append_time == 1
    return list(lockstep.differences)


@pytest.mark.parametrize("expectation", pinned(), ids=lambda expectation: expectation.signature or expectation.clause)
def test_each_expected_divergence_is_found(shapes, expectation):
    assert any(expectation.matches((clause,), shape) for clause, shape in shapes)


def test_only_expected_divergences_are_found(shapes):
    assert [found for found in shapes if not any(each.matches(found[:1], found[1]) for each in pinned())] == []


@pytest.mark.parametrize("seed", [1, 7])
def test_a_drawn_run_conforms_with_the_expectations_and_none_is_stale(tmp_path, seed):
    ledger, events = ExpectationTracker(pinned()), []
    options = {"max_examples": 3, "seed": seed, "sink": events.append}
    (result,) = results_of(WireRun, [RELEASE], NAME, tmp_path, ledger, **options)
    assert [event.signature for event in events if isinstance(event, Diverged)] == []
    assert result.details["answers"] > 5_000
    assert stale(ledger, result) == ()


def test_an_expectation_that_no_longer_matches_is_stale(tmp_path):
    (first, *_) = pinned()
    paid = Expectation(
        "", "wire", NAME, first.releases, "mended", first.link, "x", "list_offsets -2: a record -> nothing"
    )
    ledger = ExpectationTracker([*pinned(), paid])
    (result,) = results_of(WireRun, [RELEASE], NAME, tmp_path, ledger, max_examples=1)
    assert stale(ledger, result) == (paid,)
