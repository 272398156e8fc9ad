"""``conformance site``: a page per chapter, an address per clause, traces with the answers of the releases."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformance.clauses import load_chapters, load_clauses
from conformance.commands.site import SitePart, site_command
from conformance.experiments.specification import Evidence, release_bar, smallest_traces
from conformance.operations.trace_file import load_traces
from conformance.runs.replay import load_regression_traces
from kidx.dialect import PUBLISHED, ROWS
from kidx.dialect.release_range import ReleaseRange

RELEASES = PUBLISHED.split()
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    site_command(directory, None, ["offset", "time"], None, only=SitePart.SPECIFICATION, quiet=True)
    return {path.stem: path.read_text("utf-8") for path in directory.iterdir()}


@pytest.mark.thorough
def test_each_clause_has_its_address_and_its_statement(pages):
    assert pages.keys() == {*load_chapters(), "index", "formats", "changes"}
    for clause in load_clauses().values():
        (section,) = re.findall(rf"^## {clause.id} .*?(?=^## |\Z)", pages[clause.chapter], re.MULTILINE | re.DOTALL)
        assert f"{{ #{clause.id} }}" in section
        plain = re.sub(r"\\(.)", r"\1", section).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        assert clause.statement in plain
        assert clause.source in plain
        address = f'[{clause.id}]({clause.chapter}.md#{clause.id}){{ #{clause.id} data-level="{clause.level}" }}'
        assert address in pages["index"]


def test_no_page_shows_a_backquote(pages):
    """Commands in statements and operators in the titles of planted defects are code."""
    assert [name for name, page in pages.items() if "\\`" in page] == []


def test_the_site_navigates_to_every_page():
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    documents = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "spec"]
    chapters = [f"specification/{chapter}.md" for chapter in load_chapters()]
    assert [page for page in (*documents, *chapters) if nav.count(f" {page}\n") != 1] == []


def test_no_answer_has_a_path_of_this_machine():
    """The error of CL-25 names a file."""
    (trace,) = (
        each for each in load_regression_traces("cleaned") if f"cleaned-{each.id}" == load_clauses()["CL-25"].trace
    )
    answers = [answer for shown in smallest_traces({"x": trace}).values() for _, answer in shown.answers]
    assert any("the problem path is t-0/" in answer for answer in answers)
    assert not [answer for answer in answers if "/kidx-" in answer]


def test_a_trace_separates_releases_by_their_files_if_their_answers_are_equal():
    """SEG-8a and SEG-8b are about the offset in the time index, which no answer to an append has."""
    (trace,) = (each for each in load_regression_traces("log") if each.id == "0e4887fd6689")
    shown = smallest_traces({"x": trace})["SEG-8a"]
    assert shown.evidence is Evidence.SEPARATES
    (until, one), (since, other) = shown.answers
    assert (until, since) == ("<=3.6.2", ">=3.7.0")
    assert one.partition(".timeindex: ")[0] == other.partition(".timeindex: ")[0]
    assert "relative_offset=1 " in one
    assert "relative_offset=2 " in other


def test_a_recorded_divergence_shows_a_clause_that_holds_in_every_release():
    kills = {trace.id: trace for trace in load_traces(ROOT / "tests/meta/kills.ndjson") if trace.machine == "time"}
    shown = smallest_traces(kills)["TI-3d"]
    assert shown.evidence is Evidence.RECORDED
    assert shown.violator.startswith("mutant:")


def test_a_bar_shows_the_releases_of_its_range():
    held = ReleaseRange.parse("2.4.1, 3.9.2, 4.0.1..")
    bar = ET.fromstring(release_bar(held, "a <label>"))  # noqa: S314 -- ours
    cells = [cell for rect in bar.findall("rect[@class='held']") for cell in range(*_span(rect))]
    assert [RELEASES[cell // 10] for cell in cells if cell % 10 == 0] == [each for each in RELEASES if each in held]
    assert bar.get("aria-label") == "a <label>"


def _span(rect):
    start = int(rect.get("x"))
    return start, start + int(rect.get("width"))


def test_a_trace_shows_each_answer_with_the_releases_that_give_it(pages):
    """OI-23 is about a text that changed with 3.5: the trace shows both texts."""
    section = pages["offset_index"].partition("{ #OI-23a }")[2].partition("\n## ")[0]
    rows = re.findall(r"<tr><td>(.*?)</td><td><code>(.*?)</code>", section)
    assert [(releases, "requirement failed" in answer) for releases, answer in rows] == [
        ("&lt;=3.4.1", True),
        ("&gt;=3.5.0", False),
    ]
    replayed = re.search(r"conformance replay (\S+)</code>", section)[1]
    assert replayed.startswith("offset-")


def test_a_shorter_trace_is_preferred(pages):
    """OI-1 is shown by an append after the opening, and by no opening alone."""
    section = pages["offset_index"].partition("{ #OI-1 }")[2].partition("\n## ")[0]
    assert "2 steps of the offset machine" in section


def test_the_tables_are_those_of_the_code(pages):
    assert "| 8–11 | 4 | `relative_offset` |" in pages["formats"]
    assert all(f"### `{name}` {{ #{name} }}" in pages["changes"] for name in ROWS)
    assert re.search(r"\| 3\.5\.0 \| .*`scala_texts`\]\(#scala_texts\) is no longer so", pages["changes"])


@pytest.mark.thorough
def test_runs_add_how_often_a_clause_was_exercised(in_process, tmp_path):
    words = ("--kafka", "4.4.0", "--machine", "offset", "--max-examples", 5, "--report", "r")
    run = in_process("conformance", "run", "-i", "mutant:little-endian", *words, work=tmp_path)
    assert run.returncode == 1, run.stderr
    done = in_process("conformance", "site", "out", "r", "--machine", "time", "--quiet", work=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.search(r"\| Exercised \| by [1-9]\d* steps", (tmp_path / "out" / "offset_index.md").read_text("utf-8"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--machine", "nope"), "unknown machine 'nope'; choose from offset, "),
        (("--traces", "nope.ndjson"), "nope.ndjson: No such file"),
        (("nope",), "nope"),
    ],
)
def test_bad_input_is_one_line(in_process, tmp_path, words, said):
    done = in_process("conformance", "site", "out", *words, work=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()
