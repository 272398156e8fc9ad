"""Pages of findings: complete, in order, and as declared."""

from __future__ import annotations

import re
import tomllib

import pytest
from kafka_findings import ADDED, ROOT, findings, locked

from conformance.clauses import load_clauses
from conformance.operations.trace_file import load_traces
from conformance.runs.replay import find_trace
from conformance.subjects import load_subject
from tests.meta.findings import pages, ticket

SECTIONS = ["Summary", "Steps", "Expected", "Actual", "Cost", "Cause", "Proposed fix", "Known reports"]
FOREIGN = sorted((ROOT / "foreign").glob("*.md"))
TRACE = re.compile(r"\b(?:log|wire|offset|time|cache)-[0-9a-f]{12}\b")


def test_pages_are_as_declared():
    """`python -m tests.meta.findings` writes them."""
    assert {page.name for page, text in pages().items() if page.read_text("utf-8") != text} == set()


def test_every_page_is_declared():
    assert sorted(ROOT.glob("[0-9]*.md")) == [each.page for each in findings()]
    nav = (ROOT.parent / "mkdocs.yml").read_text("utf-8")
    assert not [each.name for each in findings() if f": findings/{each.page.name}\n" not in nav]
    assert sorted(each.rank for each in findings()) == [*range(1, len(findings()) + 1)]


@pytest.mark.parametrize("page", FOREIGN, ids=lambda each: each.stem)
def test_a_page_about_another_implementation_is_complete(page):
    text = page.read_text("utf-8")
    assert f"- findings/foreign/{page.name}\n" in (ROOT.parent / "mkdocs.yml").read_text("utf-8")
    for link in re.findall(r"\]\((?!https:)([^)#]+)\)", text):
        assert (page.parent / link).exists(), link
    for section in re.findall(r"^- \*\*Steps:.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        assert re.search(r"^- \*\*Expected\*\* \(|^- \*\*Expected:", section, re.MULTILINE), section
        assert re.search(r"^- \*\*Actual:", section, re.MULTILINE), section
    for trace in TRACE.findall(text):
        assert find_trace(trace, [ROOT / "foreign", ROOT.parent / "conformance/traces"])


def test_every_trace_of_another_implementation_is_named():
    named = {trace for page in FOREIGN for trace in TRACE.findall(page.read_text("utf-8"))}
    assert {f"{each.machine}-{each.id}" for each in load_traces(ROOT / "foreign/traces.ndjson")} <= named


@pytest.mark.parametrize(
    ("page", "source", "test"),
    [
        ("commitlog", "rust/commitlog/tests/commitlog.rs", r"^#\[test\]\npub fn (\w+)\(\)"),
        ("krabka-log", "rust/krabka/tests/krabka_log.rs", r"^#\[test\]\nfn (\w+)\(\)"),
        ("tansu", "rust/krabka/tests/tansu.rs", r"^#\[test\]\nfn (\w+)\(\)"),
        ("kfake", "go/kfake_test.go", r"^func (Test\w+)\(t \*testing\.T\)"),
        ("fluss", "java/org/apache/fluss/server/log/AbstractIndexTest.java", r"^    @Test\n    void (\w+)\("),
        ("librdkafka", "c/mock_cluster.c", r"^static void (do_test_\w+)\(void\)"),
    ],
)
def test_the_sections_of_a_page_name_every_test(page, source, test):
    _, *sections = (ROOT / "foreign" / f"{page}.md").read_text("utf-8").split("\n## ")
    lines = re.findall(r"^- \*\*\w+ tests?:\*\*((?:.|\n  )+)", "\n".join(sections), re.MULTILINE)
    named = [name for line in lines for name in re.findall(r"[\[`](\w+)[\]`]", line)]
    assert named == re.findall(test, (ROOT / "foreign" / source).read_text("utf-8"), re.MULTILINE)


def test_the_go_tests_run_the_locked_kfake():
    go, subject = ROOT / "foreign" / "go", load_subject("kfake")
    assert (go / "go.sum").read_bytes() == (subject.folder / "go.sum").read_bytes()
    assert f"/kfake {subject.version}\n" in (go / "go.mod").read_text("utf-8")


def test_rust_tests_have_the_versions_and_flags_of_the_locked_krabka_log():
    rust, subject = ROOT / "foreign" / "rust" / "krabka", load_subject("krabka-log")
    manifest = tomllib.loads((rust / "Cargo.toml").read_text("utf-8"))
    packages = tomllib.loads((subject.folder / "locked.toml").read_text("utf-8"))["package"]
    versions = {each["name"]: f"={each['version']}" for each in packages}
    for name, how in manifest["dev-dependencies"].items():
        assert (how if isinstance(how, str) else how["version"]) == versions[name]
    configuration = tomllib.loads((rust / ".cargo/config.toml").read_text("utf-8"))
    flags = {"RUSTFLAGS": " ".join(configuration["build"]["rustflags"]), **configuration["env"]}
    assert flags.items() <= subject.environment.items()


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_page_is_complete(finding):
    text = finding.page.read_text("utf-8")
    assert text.startswith(f"# {finding.title}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert re.search(r"Searched 20\d\d-\d\d-\d\d", text)
    for link in re.findall(r"\]\((?!https:)([^)#]+)\)", text):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_ticket_has_the_markup_of_the_tracker(finding):
    text = ticket(finding)
    prose = re.sub(r"\{code.*?\{code\}", "", text, flags=re.DOTALL)
    assert text.startswith(f"h1. {finding.title}\n")
    assert not re.search(r"`|\]\(|\*\*|<!--|^#{2,} ", prose, re.MULTILINE)
    assert re.findall(r"^h2\. (.+)$", prose, re.MULTILINE)[: len(SECTIONS)] == SECTIONS
    assert not re.search(r"bootstrap\.py|\b(?:[A-Z]{2,3}-\d+[a-z]?)\b(?<!KIP)", prose.replace("KIP-", "")), (
        "of this project"
    )
    assert text.split("\n", 3)[2].startswith("* *Not public at first:*") == finding.hostile
    for test in finding.tests:
        assert f" void {test.partition('.')[2]}(" in text


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
    assert not finding.added or finding.edits, "the diff adds tests to a fix"
    assert set(finding.kept) <= set(finding.added)


@pytest.mark.parametrize("finding", findings(), ids=lambda each: each.name)
def test_a_declared_test_exists(finding):
    for test in finding.tests:
        name, method = test.split(".")
        (source,) = (ROOT / "java" / "org").rglob(f"{name}.java")
        assert f"    @Test\n    public void {method}(" in source.read_text("utf-8")


def test_every_test_on_kafkas_own_helpers_is_declared():
    declared = {test for finding in findings() for test in finding.added}
    written = {
        f"{path.stem}.{method}"
        for path in ADDED.rglob("*.java")
        for method in re.findall(r"@Test\n    public void (\w+)\(", path.read_text("utf-8"))
    }
    assert declared == written
