"""Output for a person: a divergence as text, and the table at the end."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from conformance.events import Diverged, Progressed, Result, RunFinished, RunStarted
from conformance.report.divergence import format_divergence, format_outcome, format_value
from conformance.report.terminal import TerminalWriter

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


def diverged(requirements=(REQUIREMENT,), **changes):
    steps = ("open(kind='offset')", "lookup(target=9)")
    return Diverged("offset", failure(**changes), requirements, steps, "t.json", "conformance replay t.json")


def result(release="3.9.2", *, missing=("AI-9",), divergences=0, unsupported=()):
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
    assert format_divergence(diverged()).splitlines() == [
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
    assert format_divergence(diverged(participant="kidx 4.4.0", against="model")).startswith(
        "kidx 4.4.0 diverges from the abstract model"
    )


def test_a_step_that_no_clause_speaks_of_is_a_finding():
    assert "not covered by any clause" in format_divergence(diverged(requirements=()))


def test_a_crash_without_a_promise_is_the_requirement():
    failed = {"expected": ["io", None], "actual": ["failure", None, "ended"], "aspects": ["outcome"]}
    for clauses in ((("AI-4c", "API", "No directory."),), ()):
        text = format_divergence(replace(diverged(requirements=clauses, **failed), signature="open: failure"))
        assert "requirement  every operation returns a result or an error: a crash, a hang or an invalid reply" in text
        assert ("implicated   also AI-4c (API)" in text) is bool(clauses)
    promised = (("OI-3", "MUST", "Order."), ("OI-4b", "OBSERVED", "Text."))
    assert "requirement  OI-3 (MUST): Order." in format_divergence(
        replace(diverged(requirements=promised, **failed), signature="append: failure")
    )


def test_the_contradicted_clause_comes_first_and_the_others_share_a_line():
    others = (("OI-8", "MUST", "Something else."), ("AI-9", "OBSERVED", "Something."))
    lines = format_divergence(replace(diverged((*others, REQUIREMENT)), clause="OI-7")).splitlines()
    assert lines[2:5] == [
        "  requirement  OI-7 (MUST): A lookup answers.",
        "  implicated   also OI-8 (MUST), AI-9 (OBSERVED); `conformance clauses ID` explains them",
        "  differs in   outcome",
    ]


def test_bytes_show_the_first_difference():
    text = format_divergence(diverged(aspects=["bytes"], expected="0000000700000078", actual="0000000700000079"))
    assert "  differs in   bytes: expected 8 bytes, actual 8; first difference at byte 7, in entry 0" in text
    shorter = format_divergence(diverged(aspects=["bytes"], expected="00000007", actual="0000"))
    assert "expected 4 bytes, actual 2; first difference at byte 2" in shorter


def test_extra_files_are_named():
    text = format_divergence(diverged(aspects=["bytes"], expected=["0.index"], actual=["0.index", "0.lock"]))
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
    text = printed(STARTED, Progressed("offset", 10, 300, 1.0), result(), RunFinished("conforms", 300, 2.0))
    assert text.splitlines()[0] == ("jvm against kidx · releases 3.9.2, 4.4.0 · profile ci · level observed · seed 7")
    assert "offset machine: 10 examples, 300 steps" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))
    assert row == ["3.9.2", "jvm", "offset", "10", "300", "150", "0", "1/2", "1"]
    assert text.splitlines()[-1] == "conforms · 1 of 2 clauses compared · 300 steps in 2.0 s"


def test_unsupported_clauses_are_not_counted_as_exercised():
    text = printed(result(missing=("AI-9",), unsupported=("OI-8a", "OI-8b")), RunFinished("conforms", 300, 2.0))
    assert next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))[-3:] == ["1/2", "1", "2"]


def test_the_columns_add_up_and_are_explained():
    text = printed(result(missing=("AI-9",), unsupported=("OI-8a",)), RunFinished("conforms", 300, 2.0))
    header, row, legend = text.splitlines()[:3]
    assert header.split()[-6:] == ["clauses", "not", "run", "does", "not", "apply"]
    assert row.split()[-3:] == ["1/2", "1", "1"]
    for words in (
        "exercised/applicable",
        "not run: applicable, but no step exercised them",
        "does not apply: they need",
    ):
        assert words in legend
    without = printed(result(), RunFinished("conforms", 300, 2.0))
    assert "does not apply" not in without
    assert "exercised/applicable" in without
    assert "exercised/applicable" not in printed(result(), RunFinished("conforms", 300, 2.0), quiet=True)


def test_a_long_name_is_broken_where_its_parts_end():
    name = "python:tests.adapters.python_index:open_off_by_one"
    text = printed(replace(result(), implementation=name), RunFinished("conforms", 300, 2.0))
    assert [line[9:45].split()[0] for line in text.splitlines()[1:3]] == [
        "python:tests.adapters.",
        "python_index:open_off_by_one",
    ]
    assert "[red]" in printed(replace(result(), implementation="exec:./a [red]b"), RunFinished("conforms", 1, 1.0))


def test_progress_is_one_line_per_machine_without_a_terminal():
    text = printed(*(Progressed("offset", n, n * 30, share) for n, share in ((1, 0.5), (2, 1.0), (2, 1.0))))
    assert text == "offset machine: 2 examples, 60 steps\n"


def test_what_is_tolerated_is_one_line_for_all_releases_and_all_untold_fields():
    def with_excuses(release, implementation="jvm"):
        excuses = {"no clock": 2, "the state does not include a": 7, "the state does not include b": 7}
        return replace(result(release), implementation=implementation, details={"excused": excuses})

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
        replace(result(release), machine="time", steps=0, verdicts={"TI-1": "unsupported"}) for release in releases
    ]
    lines = printed(*absent, result(), RunFinished("conforms", 1, 1.0)).splitlines()
    assert [line.split() for line in lines if " time " in line] == [
        ["4", "releases", "jvm", "time", "–", "–", "–", "–", "does", "not", "apply", "–"]
    ]
    few = printed(*absent[:2], RunFinished("conforms", 1, 1.0))
    assert sum(line.startswith("3.8.1, 3.9.2") for line in few.splitlines()) == 1


def test_quiet_prints_divergences_and_the_verdict_only():
    events = (STARTED, Progressed("offset", 10, 300, 1.0), diverged(), result(), RunFinished("diverges", 300, 2.0))
    lines = [line for line in printed(*events, quiet=True).splitlines() if line]
    assert lines[0].startswith("jvm 3.9.2 diverges from kidx")
    assert lines[-2:] == [
        "  replay       conformance replay t.json",
        "DIVERGES: 1 divergence, see above · 300 steps in 2.0 s",
    ]


def test_verbose_lists_what_was_not_run_with_equal_releases_on_one_line():
    events = (
        result("3.9.2"),
        result("4.3.1"),
        result("4.4.0", missing=("AI-1", "AI-9")),
        RunFinished("conforms", 1, 1.0),
    )
    text = printed(*events, verbose=True)
    assert "clauses not run by offset on 3.9.2, 4.3.1: AI-9\n" in text
    assert "clauses not run by offset on 4.4.0: AI-1, AI-9\n" in text


def test_statements_are_printed_as_they_are():
    """No markup: a statement may hold square brackets."""
    text = printed(diverged(requirements=(("OI-7", "MUST", "[red]not markup[/] [bold]"),)))
    assert "OI-7 (MUST): [red]not markup[/] [bold]" in text
