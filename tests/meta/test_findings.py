"""Pages of findings: complete, in order, and as declared."""

from __future__ import annotations

import re

import pytest
from kafka_findings import ROOT, findings, locked

from conformance.clauses import load_clauses
from tests.meta.findings import pages

SECTIONS = ["Summary", "Steps", "Expected", "Actual", "Cost", "Cause", "Proposed fix", "Known reports"]


def test_pages_are_as_declared():
    """`python -m tests.meta.findings` writes them."""
    assert {page.name for page, text in pages().items() if page.read_text("utf-8") != text} == set()


def test_every_page_is_declared():
    assert sorted(ROOT.glob("[0-9]*.md")) == [each.page for each in findings()]
    nav = (ROOT.parent / "mkdocs.yml").read_text("utf-8")
    assert not [each.name for each in findings() if f"- findings/{each.page.name}\n" not in nav]
    assert sorted(each.rank for each in findings()) == [*range(1, len(findings()) + 1)]


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_page_is_complete(finding):
    text = finding.page.read_text("utf-8")
    assert text.startswith(f"# {finding.title}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert re.search(r"Searched 20\d\d-\d\d-\d\d", text)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_declaration_fits_the_catalogue(finding):
    catalogue = load_clauses()
    assert set(finding.clauses) <= set(catalogue)
    affected = locked(finding.affected)
    assert affected
    assert not set(affected) & set(locked(finding.unaffected))
    for clause in finding.clauses[:1]:  # the others say what is promised, or what one era has
        assert all(catalogue[clause].applies_to(release) for release in affected), clause
    assert finding.fixed in ("", *affected)
    assert bool(finding.fixed) == bool(finding.patches)
    assert finding.fixed or finding.unaffected, "its test never passes"


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_declared_test_exists(finding):
    for test in finding.tests:
        name, method = test.split(".")
        (source,) = (ROOT / "java" / "org").rglob(f"{name}.java")
        assert f"    @Test\n    public void {method}(" in source.read_text("utf-8")
