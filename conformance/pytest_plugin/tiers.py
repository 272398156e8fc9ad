"""Tiers: requirements of tests that some computers do not fulfil, such as Java or a broker.

The marker of a tier has the tier's name. A test whose tier cannot run here is skipped and reported; with ``--require``,
it fails.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SKIP_REASON: Final = "tier cannot run"
"""Text in the reason of a skip because of a tier; the end of the session counts skips with this text."""


# Checks of the tiers: each returns the reason why the tier cannot run, or an empty text.


def _java() -> str:
    from conformance.errors import ToolError  # noqa: PLC0415 -- an unused plug-in loads nothing
    from kidx.java import find_java  # noqa: PLC0415

    try:
        find_java()
    except ToolError as error:
        return str(error)
    return ""


def _container_engine() -> str:
    from conformance.errors import ToolError  # noqa: PLC0415 -- as above
    from conformance.kafka.broker.image import BASE, require  # noqa: PLC0415

    try:
        require(BASE, "docker/build-base.sh makes it")
    except ToolError as error:
        return str(error)
    return ""


_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> Path | None:
    """Return the system's Chromium: the one in ``KIDX_CHROMIUM``, or the first on the PATH; None if not found."""
    named = os.environ.get("KIDX_CHROMIUM")
    found = map(shutil.which, [named] if named else _BROWSERS)
    return next((Path(path) for path in found if path is not None), None)


def _chromium() -> str:
    if chromium() is not None:
        return ""
    named = os.environ.get("KIDX_CHROMIUM")
    return (
        f"KIDX_CHROMIUM is {named}, which is not a program"
        if named
        else "no chromium on the PATH; apt-get install chromium"
    )


def _maven() -> str:
    return "" if shutil.which("mvn") else "no mvn on the PATH"


def _go() -> str:
    return "" if shutil.which("go") else "no go on the PATH"


def _cargo() -> str:
    if shutil.which("cargo") is None:
        return "no cargo on the PATH"
    # rustup's cargo exists even without a toolchain.
    answers = subprocess.run(["cargo", "--version"], capture_output=True, check=False).returncode == 0  # noqa: S607
    return "" if answers else "a cargo on the PATH without a toolchain; set RUSTUP_HOME to the directory of one"


@dataclass(frozen=True)
class Tier:
    """Requirement that tests may have.

    Attributes:
        modules: names of the required modules.
        checks: further checks, such as :func:`_java`.
    """

    marker: str
    modules: Sequence[str] = ()
    checks: Sequence[Callable[[], str]] = ()


TIERS: Final[dict[str, Tier]] = {
    "jvm": Tier("needs Java and Kafka's jars (fetched on first use)", ("jpype", "jgo"), (_java,)),
    "broker": Tier("starts a real broker", ("jpype", "jgo", "kafka"), (_java,)),
    "docker": Tier("starts containers", ("jgo", "kafka", "testcontainers"), (_container_engine,)),
    "spark": Tier("starts a real Spark session", ("pyspark",), (_java,)),
    "go": Tier("builds a third-party broker with Go", ("kafka",), (_go,)),
    "maven": Tier("fetches third-party classes with Maven", ("jpype", "jgo"), (_java, _maven)),
    "cargo": Tier("builds a third-party log with cargo", (), (_cargo,)),
    "browser": Tier("renders a page in a real Chromium", ("playwright",), (_chromium,)),
}
"""All tiers by name; a conftest adds its own before pytest is configured."""


@cache
def missing(tier: str) -> str:
    """Return the reason why a tier cannot run here; empty if it can."""
    for module in TIERS[tier].modules:
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    return next(filter(None, (check() for check in TIERS[tier].checks)), "")


def required(config: pytest.Config) -> list[str]:
    """Return the tiers of ``--require``.

    Raises:
        UsageError: a tier is unknown.
    """
    names = [name for name in str(config.getoption("--require")).split(",") if name]
    if unknown := sorted(set(names).difference(TIERS)):
        raise pytest.UsageError(f"unknown tier {', '.join(map(repr, unknown))}; choose from {', '.join(TIERS)}")
    return names


def enforce(item: pytest.Item, tiers: Iterable[str]) -> None:
    """Skip a test if one of its tiers cannot run here, or fail it if the tier is required."""
    for tier in tiers:
        reason = "" if item.get_closest_marker(tier) is None else missing(tier)
        if not reason:
            continue
        if tier in required(item.config):
            pytest.fail(f"the {tier} tier is required and cannot run: {reason}", pytrace=False)
        pytest.skip(f"the {tier} {SKIP_REASON}: {reason}")


def report_missing_tiers(reporter: pytest.TerminalReporter) -> None:
    """Print at the end of a session which tests did not run because of their tier."""
    skipped = [report for report in reporter.stats.get("skipped", []) if SKIP_REASON in str(report.longrepr)]
    if skipped:
        reporter.write_sep("!", f"{len(skipped)} tests did NOT run: their tier cannot run here", red=True, bold=True)
        for reason in sorted({str(report.longrepr[2]) for report in skipped}):
            reporter.write_line(f"  {reason}", red=True)
