"""The scoreboard: which cell a difference belongs to, and what a board of hostile or half streams looks like."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from page_document import Document

from conformance.attribution.tables import machines_of
from conformance.clauses import load_clauses
from conformance.events import Diverged, Result, RunFinished, RunStarted
from conformance.experiments.scoreboard.making import Source, board_of, load_areas
from conformance.report.scoreboard.pages import html, markdown
from conformance.report.stream import NdjsonWriter, read_streams
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.wire_options import WireOptions

MINE = "exec:./my <index> & \"co\" | '\x07'"
KFAKE = "subject:kfake"


def header(implementation, release="4.3.1", **more):
    return RunStarted(
        (release,), (implementation,), ("offset", "wire"), "ci", "observed", 7, {"kidx": "0", implementation: "v1"},
        "2026-01-02T03:04:05+00:00", command="conformance run -i x", **more,
    )  # fmt: skip


def result(implementation, machine, verdicts, release="4.3.1", **details):
    clauses = {clause: int(verdict in ("conforms", "diverges")) for clause, verdict in verdicts.items()}
    return Result(machine, implementation, release, 10, 100, 0.5, 0, clauses, verdicts, details)


def diverged(implementation, machine, clause, shape, release="4.3.1"):
    failure = {
        "step": 0, "participant": "<b>it</b>", "release": release, "against": "kidx", "aspects": ["outcome"],
        "expected": [None, 1], "actual": [None, 2], "clauses": [clause],
    }  # fmt: skip
    return Diverged(
        machine, failure, ((clause, "MUST", "what <must> hold"),), ("append(1)",), "/gone/t-1.json",
        "conformance replay x", implementation, clause=clause, signature=shape, occurrences=3,
    )  # fmt: skip


@pytest.fixture
def board(tmp_path):
    """Make the board of some events each, by label."""

    def made(*runs):
        sources = []
        for number, (label, *events) in enumerate(runs):
            with NdjsonWriter(tmp_path / str(number)) as writer:
                for event in events:
                    writer(event)
            sources.append(Source(label, read_streams([tmp_path / str(number)])))
        return board_of(sources)

    return made


def cell(board, area, row=0):
    return next(each for each in board.rows[row].cells if each.area == area)


WHOLE = (
    "",
    header(MINE),
    diverged(MINE, "offset", "OI-10", "truncate_to: state"),
    diverged(MINE, "offset", "OI-10", "truncate_to: state"),
    result(MINE, "offset", {"OI-7": "conforms", "OI-10": "diverges", "AI-2": "not-run"}),
    result(MINE, "transaction", {"TX-1": "unsupported"}, why="no <files>"),
    RunFinished("diverges", 100, 0.6),
)


# -- areas ----------------------------------------------------------------------------------------------------------


def test_every_exercised_clause_has_its_area_and_every_area_has_clauses():
    areas = load_areas()
    found = {
        areas.of(machine, clause.id).name for clause in load_clauses().values() for machine in machines_of(clause.id)
    }
    assert found == {area.name for area in areas.area}
    assert [area.place for area in areas.columns] == list(range(1, len(areas.area) + 1))


def test_every_pattern_is_about_a_clause():
    areas = load_areas()
    for pattern in {p for each in (*areas.area, *areas.meaning) for p in each.clauses}:
        assert any(fnmatchcase(clause, pattern) for clause in load_clauses()), pattern


@pytest.mark.parametrize(
    ("machine", "clause", "area"),
    [
        ("offset", "AI-1", "offset index"),
        ("time", "AI-1", "time index"),
        ("time", "TI-9", "truncation"),
        ("transaction", "TX-9", "transaction index"),
        ("log", "LG-16", "recovery"),
        ("wire", "LO-6", "lookup by time"),
        ("wire", "LO-10", "special timestamps"),
        ("wire", "FE-2", "transactions"),
        ("wire", "LG-12", "retention"),
        ("wire", "FE-1", "appends and fetches"),
        ("log", "", "appends and fetches"),
    ],
)
def test_a_clause_of_a_machine_belongs_to_an_area(machine, clause, area):
    assert load_areas().of(machine, clause).name == area


def test_a_divergence_has_the_effect_of_its_clause_or_else_its_area():
    areas = load_areas()
    area = areas.of("wire", "LO-6")
    assert areas.meaning_of(area, ["LO-6"]) != area.means
    assert areas.meaning_of(area, ["FR-1"]) == area.means


# -- the board ------------------------------------------------------------------------------------------------------


def test_a_cell_has_the_worst_result_and_each_divergence_once(board):
    made = board(WHOLE)
    assert made.verdict == "diverges"
    assert {each.area: each.state for each in made.rows[0].cells} == {
        "offset index": "conforms",
        "time index": "not-run",
        "transaction index": "unsupported",
        "recovery": "not-run",
        "truncation": "differs",
        "lookup by time": "not-run",
        "special timestamps": "not-run",
        "transactions": "not-run",
        "retention": "not-run",
        "appends and fetches": "not-run",
    }
    assert cell(made, "truncation").label == "1 divergence"
    assert made.rows[0].version == "v1"
    assert made.rows[0].made[0].excused == ("not run: no <files>",)


def test_unobservable_areas_are_distinguished_from_areas_that_were_not_run(board):
    """A broker shows no index files over the protocol; its retention could have been tested."""
    made = board(("", header("wire:h:1"), result("wire:h:1", "wire", {"LO-6": "conforms", "LO-2b": "not-run"})))
    states = {each.area: (each.state, each.label, each.symbol) for each in made.rows[0].cells}
    assert states["offset index"] == states["recovery"] == ("absent", "does not apply", "·")
    assert cell(made, "offset index").why == "its protocol alone does not show it"
    assert "absent" not in {each.state for each in board(WHOLE).rows[0].cells}


def test_runs_of_one_label_and_release_share_a_row(board):
    first = ("Kafka", header("jvm"), result("jvm", "offset", {"OI-7": "conforms"}), RunFinished("conforms", 1, 1.0))
    details = {"answers": 12_345, "versions": [1, 11], "without": ["transactions"]}
    second = (
        "Kafka",
        header("wire:h:1"),
        result("wire:h:1", "wire", dict.fromkeys(("LO-6", "FE-3"), "conforms"), **details),
        RunFinished("conforms", 1, 1.0),
    )
    made = board(first, second)
    assert [(row.label, row.release) for row in made.rows] == [("Kafka", "4.3.1")]
    assert (cell(made, "offset index").state, cell(made, "lookup by time").state) == ("conforms", "conforms")
    assert cell(made, "transactions").state == "unsupported"
    assert made.rows[0].made[1].facts == ("12,345 results compared with the reference", "ListOffsets versions 1 to 11")
    assert made.rows[0].made[1].excused == ("skipped because it lacks them: transactions",)
    assert cell(made, "transactions").why == "the runs were made without transactions"
    assert made.verdict == "conforms"


def test_a_missing_capability_of_a_broker_is_unsupported(board):
    verdicts = {"LO-2b": "conforms", "LO-6": "not-run"}
    made = board(("", header("wire:h:1"), result("wire:h:1", "wire", verdicts, without=["timestamps"])))
    asked = board(("", header("wire:h:1"), result("wire:h:1", "wire", verdicts, without=["transactions"])))
    assert (cell(made, "lookup by time").state, cell(asked, "lookup by time").state) == ("unsupported", "not-run")
    assert cell(made, "lookup by time").why == "the runs were made without timestamps"
    assert cell(made, "special timestamps").state == "conforms"


def test_a_broker_behind_its_protocol_does_not_show_its_index_files(board):
    made = board(("", header("wire:h:1"), result("wire:h:1", "wire", {"LO-6": "conforms"})))
    assert cell(made, "offset index").why == "its protocol alone does not show it"
    assert cell(made, "lookup by time").why == ""


def test_a_difference_stands_in_every_area_that_it_shows_in(board):
    event = dataclasses.replace(
        diverged(MINE, "offset", "AI-7", "open: state"),
        machines=("offset", "time"),
        related=(
            {"signature": "x", "clause": "OI-10", "clauses": ["OI-10"], "occurrences": 1, "trace": "", "reason": "y"},
        ),
    )
    verdicts = {"AI-7": "diverges", "OI-10": "diverges", "OI-7": "conforms"}
    made = board(("", header(MINE), event, result(MINE, "offset", verdicts), RunFinished("diverges", 1, 1.0)))
    states = {each.area for each in made.rows[0].cells if each.state == "differs"}
    assert states == {"offset index", "time index", "truncation"}
    assert len(made.rows[0].faults) == 1


def test_a_known_divergence_counts_and_has_its_reason(board):
    shape = "delete_before the log start: done -> OFFSET_OUT_OF_RANGE"
    made = board(("", header(KFAKE), diverged(KFAKE, "wire", "LG-12", shape), RunFinished("diverges", 1, 1.0)))
    (fault,) = made.rows[0].faults
    assert "already deleted" in fault.known.reason
    assert made.rows[0].label == "kfake"
    assert cell(made, "retention").state == "differs"


def test_a_tolerated_result_is_no_conformance(board):
    made = board(("", header(MINE), result(MINE, "offset", {"OI-7": "expected-divergence", "OI-1": "conforms"})))
    assert cell(made, "offset index").state == "excused"
    assert made.verdict == "diverges"


def test_an_interrupted_run_is_marked(board):
    made = board(("", header(MINE), result(MINE, "offset", {"OI-7": "conforms"})))
    assert made.verdict == "incomplete"
    assert "was cut off" in html(made)
    assert "was cut off" in markdown(made)


# -- formats --------------------------------------------------------------------------------------------------------


def test_the_page_is_complete_requests_nothing_and_escapes_names(board, tmp_path):
    (tmp_path / "0" / "traces").mkdir(parents=True)
    (tmp_path / "0" / "traces" / "t-1.json").write_text(json.dumps({"format": "kidx-trace", "mark": 4711}))
    text = html(board(WHOLE, ("<i>label</i>", *WHOLE[1:])))
    page = Document(text)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert page.fetched == ["data:,"]
    assert not re.search(r"@import|url\(", text)
    assert "4711" in text
    for hostile in ("<index>", "<must>", "<b>it</b>", "<i>label</i>", "<files>", "\x07"):
        assert hostile not in text


def test_markdown_has_the_board_and_each_divergence_with_its_replay(board):
    text = markdown(board(WHOLE))
    assert "| ✓ | ○ | – | ○ | ✗ 1 | ○ | ○ | ○ | ○ | ○ |" in text
    assert "`conformance replay x`" in text
    assert load_areas().of("offset", "OI-10").means in text
    assert "<index>" not in text


def test_the_command_of_a_run_has_all_relevant_options(tmp_path):
    wire = WireOptions(without=("restarts",), start_command="./start me")
    plan = Plan(
        ("3.9.2", "4.3.1"), ("wire:h:1",), ("wire",), PROFILES["ci"], tmp_path, 7, 3, 10.5, "must",
        expectations=tmp_path, wire=wire,
    )  # fmt: skip
    assert plan.command(9) == (
        "conformance run --profile ci --seed 9 -i wire:h:1 --kafka 3.9.2 --kafka 4.3.1 --machine wire --max-examples 3"
        f" --max-time 10.5 --level must --expectations {tmp_path} --skip-feature restarts --start-command './start me'"
    )


def test_a_heading_without_a_version_has_no_gap(board):
    """Runs that do not tell their version are headed by the label alone."""
    made = board(("mine", *WHOLE[1:]))
    assert "\n## mine v1, compared with Kafka" in markdown(made)
    assert "\n## mine, compared with Kafka" in markdown(replace(made, rows=[replace(made.rows[0], version="")]))
