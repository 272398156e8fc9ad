"""Tiers: a test that needs something says so with a marker, and one that cannot run says so loudly.

``--require jvm,broker`` (CI) turns "cannot run here" into a failure.
"""

from __future__ import annotations

import importlib.util
from functools import cache

import pytest
from hypothesis import HealthCheck, settings

from conformance.errors import ToolError

# Hypothesis loads a profile of its own where it sees a CI machine; ours is the same everywhere, without a database.
settings.register_profile(
    "kidx", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kidx")

TIERS = ("jvm", "broker", "spark")


def pytest_addoption(parser):
    parser.addoption("--require", default="", help=f"fail instead of skipping these tiers: {','.join(TIERS)}")


def pytest_configure(config):
    unknown = set(required(config)) - set(TIERS)
    if unknown:
        raise pytest.UsageError(f"--require knows {', '.join(TIERS)}, not {', '.join(sorted(unknown))}")


def required(config) -> list[str]:
    return [tier for tier in config.getoption("--require").split(",") if tier]


@cache
def missing(tier: str) -> str:
    """Why a tier cannot run here; empty if it can."""
    modules = {"jvm": ["jpype", "jgo"], "broker": ["jpype", "jgo", "kafka"], "spark": ["pyspark"]}[tier]
    for module in modules:
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    from kidx.java import find_java

    try:
        find_java()
    except ToolError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item):
    for tier in TIERS:
        if item.get_closest_marker(tier) is None:
            continue
        reason = missing(tier)
        if not reason:
            continue
        if tier in required(item.config):
            pytest.fail(f"the {tier} tier is required and cannot run: {reason}", pytrace=False)
        pytest.skip(f"the {tier} tier cannot run: {reason}")


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("skipped", [])
    skipped = [report for report in reports if "tier cannot run" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_sep("!", f"{len(skipped)} tests of whole tiers did NOT run", red=True, bold=True)
        for reason in sorted({str(report.longrepr[2]) for report in skipped}):
            terminalreporter.write_line(f"  {reason}", red=True)
