"""Tiers: what a test may need that a machine may not have, and what happens to it then.

A tier is a marker of its name. A test of a tier that cannot run here is skipped, loudly; with ``--require`` it fails.
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

CANNOT: Final = "tier cannot run"
"""What the reason of such a skip says, so that the end of a session finds them."""


def _java() -> str:
    from conformance.errors import ToolError  # noqa: PLC0415 -- a plug-in that is not asked for loads nothing
    from kidx.java import find_java  # noqa: PLC0415

    try:
        find_java()
    except ToolError as error:
        return str(error)
    return ""


def _engine() -> str:
    from conformance.errors import ToolError  # noqa: PLC0415 -- as above
    from conformance.kafka.broker.image import BASE, require  # noqa: PLC0415

    try:
        require(BASE, "docker/build-base.sh makes it")
    except ToolError as error:
        return str(error)
    return ""


_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> Path | None:
    """Where the system's Chromium is: what ``KIDX_CHROMIUM`` names, or the first on the PATH; None if there is none."""
    named = os.environ.get("KIDX_CHROMIUM")
    found = map(shutil.which, [named] if named else _BROWSERS)
    return next((Path(path) for path in found if path is not None), None)


def _chromium() -> str:
    if chromium() is not None:
        return ""
    named = os.environ.get("KIDX_CHROMIUM")
    return f"KIDX_CHROMIUM is {named}, no program" if named else "no chromium on the PATH; apt-get install chromium"


def _maven() -> str:
    return "" if shutil.which("mvn") else "no mvn on the PATH"


def _go() -> str:
    return "" if shutil.which("go") else "no go on the PATH"


def _cargo() -> str:
    if shutil.which("cargo") is None:
        return "no cargo on the PATH"
    # The one of rustup is there without a toolchain, too.
    answers = subprocess.run(["cargo", "--version"], capture_output=True, check=False).returncode == 0  # noqa: S607
    return "" if answers else "a cargo on the PATH without a toolchain; RUSTUP_HOME says where there is one"


@dataclass(frozen=True)
class Tier:
    """One thing that tests may need.

    Attributes:
        marker: what the marker of its name says.
        modules: the modules it needs, by name.
        checks: further checks: each says why not, or nothing.
    """

    marker: str
    modules: Sequence[str] = ()
    checks: Sequence[Callable[[], str]] = ()


TIERS: Final[dict[str, Tier]] = {
    "jvm": Tier("needs Java and Kafka's jars (fetched on first use)", ("jpype", "jgo"), (_java,)),
    "broker": Tier("starts a real broker", ("jpype", "jgo", "kafka"), (_java,)),
    "docker": Tier("starts containers", ("jgo", "kafka", "testcontainers"), (_engine,)),
    "spark": Tier("starts a real Spark session", ("pyspark",), (_java,)),
    "go": Tier("builds a foreign broker with Go", ("kafka",), (_go,)),
    "maven": Tier("fetches foreign classes with Maven", ("jpype", "jgo"), (_java, _maven)),
    "cargo": Tier("builds a foreign log with cargo", (), (_cargo,)),
    "browser": Tier("looks at a page in a real Chromium", ("playwright",), (_chromium,)),
}
"""Every tier by name; a conftest adds its own before pytest is configured."""


@cache
def missing(tier: str) -> str:
    """Why a tier cannot run here; empty if it can."""
    for module in TIERS[tier].modules:
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    return next(filter(None, (check() for check in TIERS[tier].checks)), "")


def required(config: pytest.Config) -> list[str]:
    """The tiers of ``--require``.

    Raises:
        UsageError: one is unknown.
    """
    names = [name for name in str(config.getoption("--require")).split(",") if name]
    if unknown := sorted(set(names).difference(TIERS)):
        raise pytest.UsageError(f"--require knows {', '.join(TIERS)}, not {', '.join(unknown)}")
    return names


def enforce(item: pytest.Item, tiers: Iterable[str]) -> None:
    """Skips a test one of whose tiers cannot run here, or fails it if the tier is required."""
    for tier in tiers:
        reason = "" if item.get_closest_marker(tier) is None else missing(tier)
        if not reason:
            continue
        if tier in required(item.config):
            pytest.fail(f"the {tier} tier is required and cannot run: {reason}", pytrace=False)
        pytest.skip(f"the {tier} {CANNOT}: {reason}")


def tell(reporter: pytest.TerminalReporter) -> None:
    """Says at the end of a session which tiers did not run."""
    skipped = [report for report in reporter.stats.get("skipped", []) if CANNOT in str(report.longrepr)]
    if skipped:
        reporter.write_sep("!", f"{len(skipped)} tests of whole tiers did NOT run", red=True, bold=True)
        for reason in sorted({str(report.longrepr[2]) for report in skipped}):
            reporter.write_line(f"  {reason}", red=True)
