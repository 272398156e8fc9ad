"""The report of a run: its page and its text."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from page_document import Document
from rich.console import Console

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.events import Diverged, Measured, Progressed, Result, RunFinished, RunStarted
from conformance.report.badge import badge
from conformance.report.combined import CombinedReport
from conformance.report.divergence import format_divergence, format_outcome, format_value
from conformance.report.html import html
from conformance.report.junit import junit
from conformance.report.markdown import markdown
from conformance.report.stream import NdjsonWriter, StreamError, read_streams
from conformance.report.terminal import TerminalWriter

# -- Reports: from one event stream a page, JUnit XML, a summary and a badge, and nothing that was cut off looks whole


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


# -- Output for a person: a divergence as text, and the table at the end -------------------------------------------


STARTED = RunStarted(
    ("3.9.2", "4.4.0"), ("jvm",), ("offset",), "ci", "observed", 7, {"kidx": "1"}, "2025-01-01T00:00:00"
)
REQUIREMENT = ("OI-7", "MUST", "A lookup answers.")


def failure(**changes):
    whole = {
        "step": 1,
        "participant": "jvm 3.9.2",
        "release": "3.9.2",
        "against": "kidx",
        "aspects": ["outcome"],
        "expected": [None, [7, 120]],
        "actual": ["closed", None],
        "clauses": ["OI-7"],
    }
    return whole | changes


def diverged_at(requirements=(REQUIREMENT,), **changes):
    steps = ("open(kind='offset')", "lookup(target=9)")
    return Diverged("offset", failure(**changes), requirements, steps, "t.json", "conformance replay t.json")


def result_of(release="3.9.2", *, missing=("AI-9",), divergences=0, unsupported=()):
    verdicts = {"OI-7": "conforms", **dict.fromkeys(missing, "not-run"), **dict.fromkeys(unsupported, "unsupported")}
    return Result("offset", "jvm", release, 10, 300, 2.0, divergences, {"OI-7": 4}, verdicts)


def printed(*events, **options):
    file = io.StringIO()
    with TerminalWriter(Console(file=file, width=200), **options) as writer:
        for event in events:
            writer(event)
    return file.getvalue()


# -- a difference -----------------------------------------------------------------------------------------------------


def test_a_divergence_lists_requirement_expected_actual_steps_and_the_replay_last():
    assert format_divergence(diverged_at()).splitlines() == [
        "jvm 3.9.2 diverges from kidx (offset machine, release 3.9.2)",
        "",
        "  requirement  OI-7 (MUST): A lookup answers.",
        "  differs in   outcome",
        "  expected     offset=7 position=120",
        "  actual       closed",
        "",
        "  steps",
        "      1  open(kind='offset')",
        "  >   2  lookup(target=9)",
        "",
        "  trace        t.json",
        "  replay       conformance replay t.json",
    ]


def test_a_divergence_from_the_model_names_it():
    assert format_divergence(diverged_at(participant="kidx 4.4.0", against="model")).startswith(
        "kidx 4.4.0 diverges from the abstract model"
    )


def test_a_step_that_no_clause_speaks_of_is_a_finding():
    assert "not covered by any clause" in format_divergence(diverged_at(requirements=()))


def test_a_crash_without_a_promise_is_the_requirement():
    failed = {"expected": ["io", None], "actual": ["failure", None, "ended"], "aspects": ["outcome"]}
    for clauses in ((("AI-4c", "API", "No directory."),), ()):
        text = format_divergence(replace(diverged_at(requirements=clauses, **failed), signature="open: failure"))
        assert "requirement  every operation returns a result or an error: a crash, a hang or an invalid reply" in text
        assert ("implicated   also AI-4c (API)" in text) is bool(clauses)
    promised = (("OI-3", "MUST", "Order."), ("OI-4b", "OBSERVED", "Text."))
    assert "requirement  OI-3 (MUST): Order." in format_divergence(
        replace(diverged_at(requirements=promised, **failed), signature="append: failure")
    )


def test_the_contradicted_clause_comes_first_and_the_others_share_a_line():
    others = (("OI-8", "MUST", "Something else."), ("AI-9", "OBSERVED", "Something."))
    lines = format_divergence(replace(diverged_at((*others, REQUIREMENT)), clause="OI-7")).splitlines()
    assert lines[2:5] == [
        "  requirement  OI-7 (MUST): A lookup answers.",
        "  implicated   also OI-8 (MUST), AI-9 (OBSERVED); `conformance clauses ID` explains them",
        "  differs in   outcome",
    ]


def test_bytes_show_the_first_difference():
    text = format_divergence(diverged_at(aspects=["bytes"], expected="0000000700000078", actual="0000000700000079"))
    assert "  differs in   bytes: expected 8 bytes, actual 8; first difference at byte 7, in entry 0" in text
    shorter = format_divergence(diverged_at(aspects=["bytes"], expected="00000007", actual="0000"))
    assert "expected 4 bytes, actual 2; first difference at byte 2" in shorter


def test_extra_files_are_named():
    text = format_divergence(diverged_at(aspects=["bytes"], expected=["0.index"], actual=["0.index", "0.lock"]))
    assert "  actual       0.index, 0.lock (with 0.lock as well)" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        ([7, 1], "[7, 1]"),
        ("0a" * 48, "0a" * 48),
        ("0a" * 500, f"{'0a' * 24}…{'0a' * 24} (500 bytes)"),
    ],
)
def test_a_value_is_shown_short(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ([None, [7, 1]], [7, 1]),
        ([None, None], None),
        (["closed", None], "closed"),
        (["failure", None, "no reply"], "failure: no reply"),
        ("0a", "0a"),
    ],
)
def test_an_outcome_as_text(outcome, words):
    assert format_outcome(outcome) == words


# -- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_has_a_header_a_table_and_a_verdict():
    text = printed(STARTED, Progressed("offset", 10, 300, 1.0), result_of(), RunFinished("conforms", 300, 2.0))
    assert text.splitlines()[0] == ("jvm against kidx · releases 3.9.2, 4.4.0 · profile ci · level observed · seed 7")
    assert "offset machine: 10 examples, 300 steps" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))
    assert row == ["3.9.2", "jvm", "offset", "10", "300", "150", "0", "1/2", "1"]
    assert text.splitlines()[-1] == "conforms · 1 of 2 clauses compared · 300 steps in 2.0 s"


def test_unsupported_clauses_are_not_counted_as_exercised():
    text = printed(result_of(missing=("AI-9",), unsupported=("OI-8a", "OI-8b")), RunFinished("conforms", 300, 2.0))
    assert next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))[-3:] == ["1/2", "1", "2"]


def test_the_columns_add_up_and_are_explained():
    text = printed(result_of(missing=("AI-9",), unsupported=("OI-8a",)), RunFinished("conforms", 300, 2.0))
    header, row, legend = text.splitlines()[:3]
    assert header.split()[-6:] == ["clauses", "not", "run", "does", "not", "apply"]
    assert row.split()[-3:] == ["1/2", "1", "1"]
    for words in (
        "exercised/applicable",
        "not run: applicable, but no step exercised them",
        "does not apply: they need",
    ):
        assert words in legend
    without = printed(result_of(), RunFinished("conforms", 300, 2.0))
    assert "does not apply" not in without
    assert "exercised/applicable" in without
    assert "exercised/applicable" not in printed(result_of(), RunFinished("conforms", 300, 2.0), quiet=True)


def test_a_long_name_is_broken_where_its_parts_end():
    name = "python:tests.adapters.python_index:open_off_by_one"
    text = printed(replace(result_of(), implementation=name), RunFinished("conforms", 300, 2.0))
    assert [line[9:45].split()[0] for line in text.splitlines()[1:3]] == [
        "python:tests.adapters.",
        "python_index:open_off_by_one",
    ]
    assert "[red]" in printed(replace(result_of(), implementation="exec:./a [red]b"), RunFinished("conforms", 1, 1.0))


def test_progress_is_one_line_per_machine_without_a_terminal():
    text = printed(*(Progressed("offset", n, n * 30, share) for n, share in ((1, 0.5), (2, 1.0), (2, 1.0))))
    assert text == "offset machine: 2 examples, 60 steps\n"


def test_what_is_tolerated_is_one_line_for_all_releases_and_all_untold_fields():
    def with_excuses(release, implementation="jvm"):
        excuses = {"no clock": 2, "the state does not include a": 7, "the state does not include b": 7}
        return replace(result_of(release), implementation=implementation, details={"excused": excuses})

    four = [with_excuses(release) for release in ("3.8.1", "3.9.2", "4.3.1", "4.4.0")]
    lines = printed(*four[:2], RunFinished("conforms", 1, 1.0)).splitlines()
    assert [line for line in lines if "tolerated" in line] == [
        "tolerated in 4 steps, offset machine on 3.8.1, 3.9.2: no clock",
        "tolerated in 14 steps, offset machine on 3.8.1, 3.9.2: the state does not include a, b",
    ]
    assert "offset machine on 4 releases: no clock" in printed(*four, RunFinished("conforms", 1, 1.0))
    two = printed(four[0], with_excuses("3.8.1", "exec:mine"), RunFinished("conforms", 1, 1.0))
    assert "tolerated in 2 steps by exec:mine, offset machine on 3.8.1: no clock" in two


def test_an_unsupported_machine_has_one_row_for_all_releases():
    releases = ("3.8.1", "3.9.2", "4.3.1", "4.4.0")
    absent = [
        replace(result_of(release), machine="time", steps=0, verdicts={"TI-1": "unsupported"}) for release in releases
    ]
    lines = printed(*absent, result_of(), RunFinished("conforms", 1, 1.0)).splitlines()
    assert [line.split() for line in lines if " time " in line] == [
        ["4", "releases", "jvm", "time", "–", "–", "–", "–", "does", "not", "apply", "–"]
    ]
    few = printed(*absent[:2], RunFinished("conforms", 1, 1.0))
    assert sum(line.startswith("3.8.1, 3.9.2") for line in few.splitlines()) == 1


def test_quiet_prints_divergences_and_the_verdict_only():
    events = (
        STARTED,
        Progressed("offset", 10, 300, 1.0),
        diverged_at(),
        result_of(),
        RunFinished("diverges", 300, 2.0),
    )
    lines = [line for line in printed(*events, quiet=True).splitlines() if line]
    assert lines[0].startswith("jvm 3.9.2 diverges from kidx")
    assert lines[-2:] == [
        "  replay       conformance replay t.json",
        "DIVERGES: 1 divergence, see above · 300 steps in 2.0 s",
    ]


def test_verbose_lists_what_was_not_run_with_equal_releases_on_one_line():
    events = (
        result_of("3.9.2"),
        result_of("4.3.1"),
        result_of("4.4.0", missing=("AI-1", "AI-9")),
        RunFinished("conforms", 1, 1.0),
    )
    text = printed(*events, verbose=True)
    assert "clauses not run by offset on 3.9.2, 4.3.1: AI-9\n" in text
    assert "clauses not run by offset on 4.4.0: AI-1, AI-9\n" in text


def test_statements_are_printed_as_they_are():
    """No markup: a statement may hold square brackets."""
    text = printed(diverged_at(requirements=(("OI-7", "MUST", "[red]not markup[/] [bold]"),)))
    assert "OI-7 (MUST): [red]not markup[/] [bold]" in text
