"""Pytest plug-in that runs the conformance tests in an implementation's own repository.

::

    pytest --kafka 4.3.1 --conformance-impl exec:./my-index

collects a test for each machine (generator of operations) × clause of the catalogue, in addition to the tests of the
repository. A tier is a requirement of tests that some computers do not fulfil, such as Java. Every session of pytest
loads this module if the package is installed, so it imports nothing until conformance tests are requested.

PYTEST_DONT_REWRITE: this module has no assertions, and without rewriting pytest does not warn if the module is loaded
twice (by its entry point and by ``-p``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_GROUP = "conformance: tests of an implementation of Kafka's log indexes"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: all request or configure conformance tests, except ``--require``."""
    group = parser.getgroup("conformance", _GROUP)
    add = group.addoption
    add("--kafka", action="append", default=[], metavar="RELEASE|all", help="Kafka release (repeatable)")
    add(
        "--conformance-impl",
        action="append",
        default=[],
        metavar="IMPL",
        help="jvm, broker, exec:COMMAND or python:MODULE:FACTORY (repeatable); default: jvm",
    )
    add(
        "--conformance-machine",
        action="append",
        default=[],
        metavar="NAME",
        help="machine to run (repeatable); default: all",
    )
    add("--conformance-profile", default="dev", metavar="NAME", help="size of the run: dev, ci or nightly")
    add("--conformance-seed", metavar="N|random", help="random seed; a fixed seed reproduces the run")
    add("--conformance-max-examples", type=int, metavar="N", help="examples for each machine")
    add("--conformance-max-time", type=float, metavar="S", help="seconds for each machine")
    add(
        "--conformance-level",
        default="observed",
        metavar="LEVEL",
        help="lowest level that counts for the verdict: must, api or observed",
    )
    add(
        "--conformance-edition",
        default="",
        metavar="NAME|FILE",
        help="count the clauses of this edition alone, as `conformance run --edition` does",
    )
    add(
        "--conformance-allow-incomplete",
        action="store_true",
        help="pass although a part was not run, as with --conformance-max-time",
    )
    add("--conformance-expectations", metavar="DIR", help="known divergences, each with a reason and a link")
    add("--conformance-report", metavar="DIR", help="write events and traces here, for `conformance report DIR`")
    add("--require", default="", metavar="TIER,...", help="fail instead of skipping tests that need these tiers")
    parser.addini("conformance_tiers", "markers of this repository that are tiers", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and, if conformance tests are requested, their collector."""
    from conformance.pytest_plugin.tiers import TIERS, required  # noqa: PLC0415 -- a conftest may have added tiers

    config.addinivalue_line("markers", "conformance: a clause that an implementation is tested for")
    for name, tier in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {tier.marker}")
    required(config)
    if config.getoption("--kafka") or config.getoption("--conformance-impl"):
        from conformance.pytest_plugin.items import ConformancePlugin  # noqa: PLC0415 -- imported where it is used

        config.pluginmanager.register(ConformancePlugin(config), "conformance-items")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Enforce the tiers of conformance tests, and of a repository's own tests if it declares tiers."""
    from conformance.pytest_plugin.tiers import TIERS, enforce  # noqa: PLC0415

    if item.get_closest_marker("conformance") is not None:
        enforce(item, TIERS)
    elif tiers := item.config.getini("conformance_tiers"):
        enforce(item, tiers)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the tiers that did not run."""
    from conformance.pytest_plugin.tiers import report_missing_tiers  # noqa: PLC0415

    report_missing_tiers(terminalreporter)
