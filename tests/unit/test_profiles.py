"""Profiles: how much a run does is decided here and by nothing in the environment."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

from conformance.runs.chunks import CHUNK
from conformance.runs.profiles import PROFILES, ROUND


def test_the_profiles_are_ordered_by_size():
    assert list(PROFILES) == ["dev", "ci", "nightly"]
    assert all(profile.name == name for name, profile in PROFILES.items())
    sizes = [profile.examples * profile.steps for profile in PROFILES.values()]
    assert sizes == sorted(sizes)


def test_dev_and_ci_are_deterministic_and_nightly_is_not():
    assert {name: profile.seed is not None for name, profile in PROFILES.items()} == {
        "dev": True,
        "ci": True,
        "nightly": False,
    }


@pytest.mark.parametrize("name", PROFILES)
def test_settings(name):
    made = PROFILES[name].settings(7)
    assert (made.max_examples, made.stateful_step_count) == (7, PROFILES[name].steps)
    assert made.deadline is None
    assert made.database is None
    assert made.backend == "hypothesis"
    assert not made.derandomize, "the seed is ours"
    assert set(made.phases) == {Phase.generate}
    assert set(made.suppress_health_check) == set(HealthCheck)
    assert not made.print_blob
    assert not made.report_multiple_bugs


def test_no_profile_of_hypothesis_changes_a_run():
    before = settings.get_profile("kidx")
    settings.register_profile("hasty", max_examples=1, stateful_step_count=1, derandomize=True, deadline=1)
    settings.load_profile("hasty")
    try:
        made = PROFILES["dev"].settings(50)
        assert (made.max_examples, made.stateful_step_count, made.derandomize, made.deadline) == (50, 30, False, None)
    finally:
        settings.load_profile("kidx")
    assert settings.get_profile("kidx") is before


def test_a_round_is_a_number_of_whole_hands():
    """Ten examples: after the tenth Hypothesis starts to vary the last one (see ``CHUNK``)."""
    assert CHUNK == 10
    assert ROUND % CHUNK == 0
