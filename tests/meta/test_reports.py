"""Pages in ``reports`` with their results as JSON: a page is what the current template makes of the results."""

from __future__ import annotations

import json

import pytest

from conformance.experiments.start_damage import table
from tests.bench import brokers

REPORTS = brokers.PAGE.parent


def test_the_page_of_brokers_is_written_from_its_results():
    """`python -m tests.bench.brokers` writes it."""
    assert brokers.PAGE.read_text("utf-8") == brokers.page(json.loads(brokers.RESULTS.read_text("utf-8")))


def test_the_page_of_corrupt_directories_is_written_from_its_results():
    """`conformance damage --report reports` writes it."""
    outcomes = table.merged(REPORTS / "damage.json", [])
    assert (REPORTS / "damage.md").read_text("utf-8").endswith(f"\n\n{table.markdown(outcomes)}")


@pytest.mark.parametrize("page", sorted(REPORTS.glob("*.md")), ids=lambda page: page.name)
def test_every_page_is_listed(page):
    if page.name != "README.md":
        assert f"`{page.name}`" in (REPORTS / "README.md").read_text("utf-8")
        assert f" reports/{page.name}\n" in (REPORTS.parent / "mkdocs.yml").read_text("utf-8")
