"""The number of processes of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.kafka.releases import RELEASES
from conformance.runs import plan as plans
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES

MACHINES = ("offset", "time", "transaction", "segment", "log")


def plan(releases=("4.4.0",), profile="dev", **changes):
    return Plan(releases, ("jvm",), MACHINES, PROFILES[profile], Path("traces"), **changes)


@pytest.fixture(autouse=True)
def _four_processors(monkeypatch):
    monkeypatch.setattr(plans, "usable_cpus", lambda: 4)


def test_a_short_run_of_one_release_starts_no_extra_worker():
    assert plans.extra_workers_for(plan(jobs=None), MACHINES) == 0


def test_all_releases_and_long_profiles_use_all_processors():
    assert plans.extra_workers_for(plan(RELEASES, jobs=None), MACHINES) == 3
    assert plans.extra_workers_for(plan(profile="nightly", jobs=None), MACHINES) == 3


def test_a_requested_number_is_used():
    assert [plans.extra_workers_for(plan(jobs=jobs), MACHINES) for jobs in (1, 2, 5)] == [0, 1, 4]


def test_a_plan_has_one_job_by_default():
    assert plans.extra_workers_for(plan(), MACHINES) == 0


def test_a_run_without_machines_starts_no_extra_worker():
    assert plans.extra_workers_for(plan(jobs=5), ()) == 0
