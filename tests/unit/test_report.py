"""Reports: from one event stream a page, JUnit XML, a summary and a badge, and nothing that was cut off looks whole."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from page_document import Document

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.events import Diverged, Measured, Progressed, Result, RunFinished, RunStarted
from conformance.report.badge import badge
from conformance.report.combined import CombinedReport
from conformance.report.html import html
from conformance.report.junit import junit
from conformance.report.markdown import markdown
from conformance.report.stream import NdjsonWriter, StreamError, read_streams

MINE = "exec:./my <index> & \"co\" | '\x07'"
"""A name that has to be quoted, in every format differently."""


def header(*, releases=("3.9.2", "4.4.0"), implementations=(MINE,), machines=("offset",)):
    return RunStarted(
        releases, implementations, machines, "ci", "observed", 7, {"kidx": "0"}, "2026-01-02T03:04:05+00:00"
    )


def result(release, verdicts, *, machine="offset", implementation=MINE, **counts):
    clauses = {
        clause: counts.get(clause.replace("-", "_"), int(verdict == "conforms")) for clause, verdict in verdicts.items()
    }
    diverged = sum(verdict == "diverges" for verdict in verdicts.values())
    return Result(machine, implementation, release, 10, 100, 0.5, diverged, clauses, verdicts)


def diverged(release, *clauses, implementation=MINE, participant="mine"):
    failure = {
        "step": 1,
        "participant": f"{participant} {release}",
        "release": release,
        "against": "kidx",
        "aspects": ["outcome"],
        "expected": [None, [1, 100]],
        "actual": [None, [0, 0]],
        "clauses": list(clauses),
    }
    requirements = tuple((clause, "MUST", "what <must> hold") for clause in clauses)
    steps = ("append(offset=1, position=100)", "lookup(target=1)")
    return Diverged(
        "offset", failure, requirements, steps, "/gone/offset-1.json", "conformance replay x", implementation
    )


WHOLE = (
    header(),
    Progressed("offset", 10, 100, 1.0),
    diverged("4.4.0", "OI-7"),
    result("3.9.2", {"OI-7": "conforms", "OI-3": "unsupported", "AI-1": "conforms"}),
    result("4.4.0", {"OI-7": "diverges", "OI-3": "expected-divergence", "AI-1": "not-run"}),
    RunFinished("diverges", 100, 0.6),
)
SOUND = (
    header(),
    result("3.9.2", {"OI-7": "conforms"}),
    result("4.4.0", {"OI-7": "conforms"}),
    RunFinished("conforms", 1, 1.0),
)


@pytest.fixture
def write(tmp_path):
    """Write events as a run does and return the directory."""

    def written(*events, name="run"):
        with NdjsonWriter(tmp_path / name) as writer:
            for event in events:
                writer(event)
        return tmp_path / name

    return written


def combined(*places):
    return CombinedReport(read_streams(places))


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 -- it is our own


# -- reading ----------------------------------------------------------------------------------------------------------


def test_events_are_read_as_they_were_written(write):
    stream = read_streams([write(*WHOLE)])[0]
    assert stream.header == WHOLE[0]
    assert stream.divergences == [WHOLE[2]]
    assert stream.results == list(WHOLE[3:5])
    assert stream.footer == WHOLE[5]
    assert not stream.cut_off


@pytest.mark.thorough
@pytest.mark.parametrize("torn", ["", '{"event":"Resul', "\0\0\0\0"])
def test_a_run_that_was_cut_off_is_incomplete_everywhere(write, torn):
    """Without its footer a run of which everything conforms so far is not green in any format."""
    place = write(*SOUND[:2])
    with (place / "events.ndjson").open("a") as file:
        file.write(torn)
    report = combined(place)
    assert report.verdict == "incomplete"
    assert parsed(junit(report)).get("errors") == "1"
    assert "⚠ incomplete" in markdown(report)
    assert json.loads(badge(report))["isError"] is True
    assert 'content="incomplete"' in html(report)
    assert "was cut off" in html(report)


def test_missing_parts_of_an_interrupted_run_are_named(write):
    place = write(header(machines=("offset", "time")), SOUND[1])
    assert "no result of time" in read_streams([place])[0].cut_off


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no events.ndjson"),
        ("", "does not begin with RunStarted"),
        ("[]\n", "does not begin with RunStarted"),
        ('{"event":"RunStarted","format":"other"}\n', "does not begin with RunStarted"),
        ('{"event":"RunStarted","format":"kidx-events","version":9}\n', "version 9"),
        ('{"event":"RunStarted","format":"kidx-events","version":1}\n', "header of .* is incomplete"),
    ],
)
def test_an_invalid_report_is_rejected(tmp_path, content, said):
    if content is not None:
        (tmp_path / "events.ndjson").write_text(content)
    with pytest.raises(StreamError, match=said):
        read_streams([tmp_path])


def test_corruption_in_the_middle_is_rejected(write):
    """Only the last words of a killed process may be half a line."""
    place = write(*SOUND) / "events.ndjson"
    lines = place.read_text().splitlines()
    place.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]))
    with pytest.raises(StreamError, match="line 2"):
        read_streams([place])


def test_events_and_fields_of_later_versions_are_skipped(write):
    place = write(*SOUND) / "events.ndjson"
    lines = place.read_text().splitlines()
    lines.insert(1, '{"event":"Unheard","of":1}')
    lines[-1] = lines[-1][:-1] + ',"mood":"good"}'
    place.write_text("\n".join(lines) + "\n")
    assert combined(place).verdict == "conforms"


# -- several runs as one ----------------------------------------------------------------------------------------------


def test_shards_become_one_matrix(write):
    """A clause exercised in any shard counts; one that no shard exercised is not-run."""
    first = write(
        header(),
        result("4.4.0", {"OI-7": "conforms", "AI-1": "not-run"}, OI_7=3),
        RunFinished("conforms", 1, 1.0),
        name="a",
    )
    second = write(
        header(machines=("time",)),
        diverged("4.4.0", "OI-7"),
        result("4.4.0", {"OI-7": "diverges", "AI-1": "unsupported"}, machine="time", OI_7=4),
        RunFinished("diverges", 1, 1.0),
        name="b",
    )
    report = combined(first.parent)
    assert [stream.path.parent for stream in report.streams] == [first, second]
    cells = {clause.id: report.verdict_of(MINE, "4.4.0", clause) for clause in report.rows(MINE)}
    assert (cells["OI-7"], cells["AI-1"], cells["OI-5"]) == ("diverges", "unsupported", "not-run")
    assert sum(count for place, count in report.exercised.items() if place.clause == "OI-7") == 7
    assert [(pace.machine, pace.steps, pace.seconds) for pace in report.pace] == [
        ("offset", 100, 0.5),
        ("time", 100, 0.5),
    ]


def test_a_clause_of_other_releases_has_no_cell(write):
    report = combined(write(*SOUND))
    cells = {clause.id: report.verdict_of(MINE, "4.4.0", clause) for clause in report.rows(MINE)}
    assert cells["AI-42a"] is None
    assert cells["AI-42b"] == "not-run"


def test_a_metric_that_does_not_hold_fails_the_report(write):
    place = write(*SOUND[:3], Measured("mutants", "off by one", passed=False, figures={"examples": 2000}), SOUND[3])
    report = combined(place)
    assert report.verdict == "diverges"
    assert parsed(junit(report)).get("failures") == "1"
    assert "| off by one | ✗ | 2000 |" in markdown(report)
    assert "<td>2000</td>" in html(report)


def test_a_stale_expectation_fails_the_report(write):
    report = combined(write(*SOUND[:3], RunFinished("diverges", 1, 1.0, {"stale": ["mine.toml, entry 1: OI-7"]})))
    assert report.verdict == "diverges"
    assert parsed(junit(report)).get("failures") == "1"
    assert "stale: mine.toml, entry 1: OI-7" in markdown(report)


# -- formats ----------------------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_clause(write):
    root = parsed(junit(combined(write(*WHOLE))))
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "1",
        "errors": "0",
        "skipped": "3",
    }
    (case,) = root.findall(".//failure/..")
    assert case.get("name", "").startswith("OI-7 ")
    text = case.find("failure").text
    assert all(word in text for word in ("requirement  OI-7", "expected     *offset=1", "conformance replay x"))
    assert all(suite.get("timestamp") == "2026-01-02T03:04:05" for suite in root)


@pytest.mark.parametrize(
    "event",
    [
        diverged("4.4.0"),
        diverged("4.4.0", "OI-7", implementation=""),
        diverged("4.4.0", "OI-7", implementation="python:a:b"),
    ],
    ids=["no clause", "the reference", "a result that is missing"],
)
def test_no_difference_is_lost_in_junit(write, event):
    report = combined(write(header(), event, *SOUND[1:3], RunFinished("diverges", 1, 1.0)))
    assert parsed(junit(report)).get("failures") == "1"
    assert report.verdict == "diverges"


def test_the_badge_is_an_endpoint_badge(write):
    document = json.loads(badge(combined(write(*SOUND))))
    assert document == {
        "schemaVersion": 1,
        "label": "log index",
        "message": "conforms · Kafka 3.9.2–4.4.0 · offset only",
        "color": "blue",
        "isError": False,
    }


def test_the_badge_names_the_machines_of_a_partial_run(write):
    rows = [result("4.4.0", {"OI-7": "conforms"}, machine=name) for name in DEFAULT_MACHINES]
    lacking = replace(rows[-1], steps=0, verdicts={"OI-7": "unsupported"})
    whole, some = (
        combined(write(header(machines=DEFAULT_MACHINES), *each, RunFinished("conforms", 1, 1.0), name=name))
        for name, each in (("whole", rows), ("some", [*rows[:2], lacking]))
    )
    assert json.loads(badge(whole))["message"] == "conforms · Kafka 3.9.2–4.4.0"
    assert json.loads(badge(some))["message"] == "conforms · Kafka 3.9.2–4.4.0 · offset, time only"


def test_a_summary_has_verdict_divergences_and_clauses_and_nothing_of_the_harness(write):
    reached = Measured("coverage of the offset machine", "append × above warm", None, {"ok": 7})
    found = combined(write(*WHOLE[:-1], reached, WHOLE[-1]))
    text = markdown(found)
    assert "append × above warm" not in text
    assert "### Clauses that diverge" in text
    assert re.search(r"\| OI-7 \| MUST \| .* \| 4\.4\.0 \|", text)
    assert "append × above warm" not in junit(found)
    assert "append × above warm" in html(found)
    assert "For developers of the harness" in html(found)


def test_unreached_parts_of_an_interrupted_run_are_no_divergence(write):
    unreached = Measured("coverage of the offset machine", "append × above warm", passed=False, figures={"ok": 0})
    report = combined(write(*SOUND[:3], unreached))
    assert report.verdict == "incomplete"
    assert combined(write(*SOUND[:3], unreached, SOUND[3], name="whole")).verdict == "diverges"


def test_markdown_ends_each_difference_with_its_replay(write):
    text = markdown(combined(write(*WHOLE)))
    assert re.search(r"\| 4\.4\.0 \| 1 \| 1 \| 0 \| 0 \| \d+ \|", text)
    assert "      replay       conformance replay x" in text


def test_the_page_is_complete_and_requests_nothing(write):
    """Tags close, ids are unique, links lead somewhere, nothing is fetched, and cells have the verdicts."""
    text = html(combined(write(*WHOLE)))
    page = Document(text)
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert page.fetched == ["data:,"]
    assert not re.search(r"@import|url\(|https?://", text)
    assert page.cells["OI-7"] == ["conforms", "diverges"]
    assert page.cells["OI-3"] == ["unsupported", "expected-divergence"]
    assert page.cells["AI-42a"] == ["not-run", "none"]
    assert "<must>" not in text
    assert "<index>" not in text


def test_the_page_carries_the_trace_wherever_the_directory_went(write):
    place = write(*WHOLE)
    (place / "traces").mkdir()
    (place / "traces" / "offset-1.json").write_text('{"format": "kidx-trace", "mark": 4711}')
    assert "4711" in html(combined(place))


PROBE = """<script>onload = () => {
  const page = frames[0].document, only = page.querySelector("#only");
  only.value = "diverges";
  only.dispatchEvent(new Event("change"));
  const rows = [...page.querySelectorAll(".matrix tbody tr")].filter(row => !row.hidden).map(row => row.dataset.words);
  document.body.innerHTML = `<pre>${JSON.stringify([page.documentElement.scrollWidth, rows])}</pre>`;
}</script>"""
"""Script that filters for the clauses that diverge, and returns the width of the page and the remaining rows."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.mark.thorough
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_in_a_browser(write, tmp_path, width):
    """A real browser lays it out no wider than a phone or a desktop, and filtering leaves the requested rows."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("the browser tier cannot run: no chromium")
    releases = ("2.4.1", "3.4.1", "3.9.1", "3.9.2", "4.0.1", "4.3.1", "4.4.0")
    events = [
        header(releases=releases),
        diverged("4.4.0", "OI-7"),
        *(result(r, {"OI-7": "conforms"}) for r in releases[:-1]),
        WHOLE[4],
    ]
    page = html(combined(write(*events, WHOLE[5])))
    frame = tmp_path / "frame.html"
    quoted = page.replace("&", "&amp;").replace('"', "&quot;")
    frame.write_text(f'<body><iframe width="{width}" height="800" srcdoc="{quoted}"></iframe>{PROBE}', "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
    done = subprocess.run(
        [*command, "--window-size=1400,900", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = re.search(r"<pre>(\[.*\])</pre>", done.stdout)
    assert found, done.stderr[-2000:]
    laid_out, rows = json.loads(found[1])
    assert laid_out <= width
    assert [row.split(" ")[0] for row in rows] == ["OI-7"]
