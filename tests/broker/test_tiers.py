"""Brokers with tiered storage start as ``kidx verify`` predicts, and answer across tiers."""

from __future__ import annotations

import pytest

from conformance.studies.tiers import experiment
from conformance.studies.tiers.experiment import try_release
from conformance.studies.tiers.prepared import CASES
from conformance.studies.tiers.study import TIERS

pytestmark = [pytest.mark.broker, pytest.mark.thorough]
TRIED = (
    "nothing",
    "a file README",
    "a cached .timeindex: one byte more",
    "remote storage returns one .txnindex of zeros",
)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("release", TIERS.releases)
def test_a_start_does_what_was_predicted(release):
    tried = try_release(release, [case for case in CASES if case.name in TRIED])
    assert tried.as_predicted, tried.starts
    happened = {start.damage: start.happened for start in tried.starts}
    assert happened == dict.fromkeys(TRIED, "does not start") | {"nothing": "starts"}
    right, total = tried.lookups
    assert right == total > 30
    assert tried.skipped.answer != tried.skipped.expected, (
        "KAFKA has fixed that a lookup by time stops at the first candidate"
    )


def test_a_wrong_prediction_does_not_pass(monkeypatch):
    monkeypatch.setattr(experiment, "_predicted", lambda *_: "starts")
    (outcome,) = try_release("4.3.1", [case for case in CASES if case.name == "a file README"]).starts
    assert (outcome.happened, outcome.as_predicted) == ("does not start", False)
    assert "StringIndexOutOfBoundsException" in outcome.error
