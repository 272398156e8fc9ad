"""All locked releases in one JVM: every step is compared with every release in one call."""

from __future__ import annotations

import pytest
from thorough_params import thorough_param

from conformance.events import Diverged, Result
from conformance.kafka.releases import RELEASES
from conformance.report.divergence import format_divergence
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

pytestmark = pytest.mark.jvm

SOME = ("2.4.1", "3.9.2", "4.4.0")


@pytest.mark.parametrize("releases", [SOME, thorough_param(RELEASES)], ids=["some", "all"])
def test_every_release_conforms_to_its_own_rules(releases, tmp_path):
    events = []
    machines = ("offset", "time", "transaction")
    plan = Plan(releases, ("jvm",), machines, PROFILES["dev"], tmp_path, seed=1, max_examples=10)
    conforms = run(plan, events.append)
    assert conforms, "\n".join(format_divergence(event) for event in events if isinstance(event, Diverged))
    results = [event for event in events if isinstance(event, Result)]
    assert [(result.machine, result.release) for result in results] == [(m, r) for m in machines for r in releases]
    assert all(result.steps > 200 for result in results)
    assert all(result.count("conforms") > 10 for result in results)
