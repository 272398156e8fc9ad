"""Hypothesis's profile, and the plug-in that this repository ships, which looks after the tiers (``--require``)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Also where an editable installation is older than the entry point.
pytest_plugins = ["conformance.plugin"]

# Hypothesis loads a profile of its own where it sees a CI machine; ours is the same everywhere, without a database.
settings.register_profile(
    "kidx", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kidx")
