"""krabka-log, a log in Rust with the line protocol: its expected divergences are found."""

from __future__ import annotations

import pytest
from rust_builds import COMPILED

from conformance.expectations import load_expectations
from conformance.runs.divergences.signatures import signature_detail, signature_of
from conformance.runs.replay import load_regression_traces, replay

pytestmark = [
    pytest.mark.cargo,
    pytest.mark.thorough,  # its build takes two minutes of a processor
    pytest.mark.in_turn(5, of="foreign implementations", build="krabka-log"),
    pytest.mark.timeout(900),
]
RELEASE = "4.3.1"
NAME = "subject:krabka-log"
MOST_STEPS = 12


def pinned():
    return [each for each in load_expectations() if each.implementation == NAME]


@pytest.fixture(scope="module")
def shown():
    """Return the divergences that its regression traces show."""
    mine = [
        trace
        for trace in load_regression_traces("log")
        if (trace.failure or {}).get("participant", "").startswith(NAME)
    ]
    assert all(len(trace.operations) <= MOST_STEPS for trace in mine)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CARGO_TARGET_DIR", str(COMPILED))
        found = {trace.id: replay(trace, [RELEASE], [NAME]) for trace in mine}
    assert {id_: each.verdict for id_, each in found.items() if each.verdict != "FAILED"} == {}
    return [each.divergence for each in found.values()]


@pytest.mark.parametrize("expectation", pinned(), ids=lambda expectation: expectation.signature or expectation.clause)
def test_each_expected_divergence_has_a_short_regression_trace(shown, expectation):
    assert any(expectation.matches(each.clauses, signature_of(each), signature_detail(each)) for each in shown)
