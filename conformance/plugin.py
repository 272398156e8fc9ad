"""The pytest plug-in: an implementation's conformance as tests, in its own repository.

::

    pytest --kafka 4.3.1 --conformance-impl exec:./my-index

collects a test for each machine × clause of the catalogue, beside the repository's own tests. Every
session of pytest loads this module where the package is installed, so it imports nothing until it is asked for.

PYTEST_DONT_REWRITE: it asserts nothing, and naming it twice (entry point and ``-p``) then gives no warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_GROUP = "conformance: is an implementation of Kafka's log indexes Kafka's?"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; all but --require ask for conformance tests or shape them."""
    group = parser.getgroup("conformance", _GROUP)
    add = group.addoption
    add("--kafka", action="append", default=[], metavar="RELEASE|all", help="Kafka release; several times for several")
    add(
        "--conformance-impl",
        action="append",
        default=[],
        metavar="IMPL",
        help="jvm, broker, exec:COMMAND or python:MODULE:FACTORY; several times for several; default: jvm",
    )
    add(
        "--conformance-machine",
        action="append",
        default=[],
        metavar="NAME",
        help="machine to run; several times for several; default: all",
    )
    add("--conformance-profile", default="dev", metavar="NAME", help="how much to do: dev, ci or nightly")
    add("--conformance-seed", metavar="N|random", help="start here; the same seed does the same")
    add("--conformance-max-examples", type=int, metavar="N", help="examples for each machine")
    add("--conformance-max-time", type=float, metavar="S", help="seconds for each machine")
    add(
        "--conformance-level",
        default="observed",
        metavar="LEVEL",
        help="must leaves OBSERVED clauses out of the verdict",
    )
    add("--conformance-expectations", metavar="DIR", help="known divergences, each with a reason and a link")
    add("--conformance-report", metavar="DIR", help="keep events and traces here, for `conformance report DIR`")
    add("--require", default="", metavar="TIER,...", help="fail instead of skipping what needs these tiers")
    parser.addini("conformance_tiers", "markers of this repository that are tiers", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers and, where conformance tests are asked for, what collects them."""
    from conformance.pytest_plugin.tiers import TIERS, required  # noqa: PLC0415 -- a conftest may have added its own by now

    config.addinivalue_line("markers", "conformance: a clause that an implementation is held to")
    for name, tier in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {tier.marker}")
    required(config)
    if config.getoption("--kafka") or config.getoption("--conformance-impl"):
        from conformance.pytest_plugin.items import ConformancePlugin  # noqa: PLC0415 -- imported where it is used

        config.pluginmanager.register(ConformancePlugin(config), "conformance-items")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Looks after the tiers of conformance tests, and of the tests of a repository that says so."""
    from conformance.pytest_plugin.tiers import TIERS, enforce  # noqa: PLC0415

    if item.get_closest_marker("conformance") is not None:
        enforce(item, TIERS)
    elif tiers := item.config.getini("conformance_tiers"):
        enforce(item, tiers)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which tiers did not run."""
    from conformance.pytest_plugin.tiers import report_missing_tiers  # noqa: PLC0415

    report_missing_tiers(terminalreporter)
