"""Pages in ``reports``: they have the words of the current template, and their sums are right."""

from __future__ import annotations

import re

import pytest

from conformance.clauses import load_clauses
from conformance.operations.trace_file import load_traces
from conformance.runs.replay import find_trace
from conformance.studies.index_corruption.study import markdown
from conformance.studies.interleave import page as interleave_page
from conformance.studies.power_loss import page as power_loss_page
from conformance.studies.power_loss.study import POWER_LOSS
from conformance.studies.start_damage.study import DAMAGE
from conformance.studies.study import planted_page
from conformance.studies.tiers.study import TIERS
from tests.bench import brokers

REPORTS = brokers.PAGE.parent


def test_the_page_of_brokers_is_written_from_its_results():
    """`python -m tests.bench.brokers` writes it."""
    text = brokers.PAGE.read_text("utf-8")
    assert text == brokers.page(brokers.read(text))


def test_the_sums_of_the_page_of_corrupt_directories_are_those_of_its_rows():
    """`conformance damage --report DIR` writes it."""
    text = (REPORTS / "damage.md").read_text("utf-8")
    assert DAMAGE.page([], "").partition("\n|")[0] in text
    summary, rows = ([line.strip("| ").split(" | ") for line in part.splitlines()] for part in text.split("\n\n")[-2:])
    for column, (release, cases, dead, _, right) in enumerate(summary[2:], 2):
        cells = [row[column].strip("|") for row in rows[2:] if row[column:] and row[column].strip()]
        assert rows[0][column] == release
        assert int(cases) == len(cells) >= 40
        assert int(dead) == sum(cell.lstrip("*").startswith("does not start") for cell in cells)
        assert right == f"{sum(not cell.startswith('**') for cell in cells)}/{cases}"


def test_the_page_of_tiers_has_the_legend_of_its_template():
    """`conformance tiers --report DIR` writes it."""
    skipped = {"answer": "", "expected": ""}
    result = {"release": "4.3.1", "special": {}, "lookups": [0, 0], "skipped": skipped, "starts": []}
    legend = TIERS.page([result], "").partition("\n|")[0]
    assert legend in (REPORTS / "tiered.md").read_text("utf-8")


def test_the_traces_of_the_scoreboard_are_those_of_its_commands():
    named = re.findall(r"`conformance replay reports/(\S+)", (REPORTS / "scoreboard.md").read_text("utf-8"))
    traces = load_traces(REPORTS / "scoreboard.ndjson")
    assert {find_trace(str(REPORTS / name), []).id for name in named} == {trace.id for trace in traces}


def test_the_page_of_corrupt_index_files_has_the_legend_of_its_template():
    """`conformance corrupt --report reports` writes it."""
    assert markdown([]).partition("\n|")[0] in (REPORTS / "corrupt.md").read_text("utf-8")


@pytest.mark.parametrize("page", sorted(REPORTS.glob("power_loss*.md")), ids=lambda page: page.name)
def test_the_words_of_a_page_of_power_failures_are_those_of_its_command(page):
    text = page.read_text("utf-8")
    (command,) = re.findall(r"`(conformance power-loss [^`]*)`", text)
    if "--planted" in command:
        assert text.startswith(planted_page(POWER_LOSS, [], command).partition("0 of 0")[0])
        return
    assert text.startswith(power_loss_page.table([], command))
    assert re.search(r"^## \w", text, re.MULTILINE)
    for clause, title in re.findall(r"^\| (PF-\w+) \| (.*?) \| ", text, re.MULTILINE):
        known = load_clauses()[clause]
        assert title == known.title + (f" ({known.ticket})" if known.ticket else "")


@pytest.mark.parametrize("page", sorted(REPORTS.glob("interleave*.md")), ids=lambda page: page.name)
def test_the_words_of_a_page_of_interleavings_are_those_of_its_command(page):
    text = page.read_text("utf-8")
    (command,) = re.findall(r"`(conformance interleave [^`]*)` prints", text)
    assert text.startswith(interleave_page.table([], command).partition("\n\n| | ")[0])
    for clause, title in re.findall(r"^- (IV-\w+): (.*)\.$", text, re.MULTILINE):
        assert title == load_clauses()[clause].title
    assert "| new |" not in text


@pytest.mark.parametrize("page", sorted(REPORTS.glob("*.md")), ids=lambda page: page.name)
def test_every_page_is_listed(page):
    if page.name != "README.md":
        assert f"`{page.name}`" in (REPORTS / "README.md").read_text("utf-8")
        assert f" reports/{page.name}\n" in (REPORTS.parent / "mkdocs.yml").read_text("utf-8")


def test_the_numbers_of_the_page_of_results_are_in_the_reports():
    page = REPORTS.parent / "docs" / "results.md"
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| 20[\d-]+ \| \[.*\]\((.+)\) \|$", page.read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 10
    for measured, report in rows:
        text = (page.parent / report).read_text("utf-8").replace(",", "")
        for number in re.findall(r"(?<![\w-])\d[\d.]*(?:/\d+)?\b", measured.replace(",", "")):
            assert re.search(rf"(?<![\w.]){re.escape(number)}(?![\w]|[.]\d)", text), (report, number)


@pytest.mark.parametrize("page", sorted(REPORTS.glob("*.md")), ids=lambda page: page.name)
def test_the_newest_release_is_the_first_column(page):
    """Twenty-seven columns have to be scrolled, and most readers want the newest."""
    for line in page.read_text("utf-8").splitlines():
        columns = re.findall(r"(?<=\| )\d+\.\d+\.\d+(?= \|)", line) if line.startswith("|") else []
        if len(columns) > 2:
            assert columns == sorted(columns, key=lambda each: [int(part) for part in each.split(".")], reverse=True)


def test_a_page_names_no_temporary_file():
    shows = "corrupt_record: Found record size 0 in file /dev/shm/k"
    finding = {"clause": "PF-3", "times": 1, "steps": [{"op": "open_log"}], "lost": [], "shows": shows}
    row = {"machine": "log", "release": "4.3.1", "states": 1, "findings": [finding]}
    assert power_loss_page.table([row], "x").endswith("nothing. corrupt_record: Found record size 0.\n")
