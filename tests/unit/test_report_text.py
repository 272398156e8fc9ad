"""What a person reads: a difference in words, and the table at the end."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from conformance.events import Diverged, Progressed, Result, RunFinished, RunStarted
from conformance.report.divergence import describe, in_words, show
from conformance.report.terminal import TerminalWriter

STARTED = RunStarted(
    ("3.9.2", "4.4.0"), ("jvm",), ("offset",), "ci", "observed", 7, {"kidx": "1"}, "2025-01-01T00:00:00"
)
REQUIREMENT = ("OI-7", "MUST", "A lookup answers.")


def failure(**changes):
    whole = {
        "step": 1,
        "party": "jvm 3.9.2",
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


def test_a_difference_reads_requirement_expected_actual_steps_and_ends_with_the_replay():
    assert describe(diverged()).splitlines() == [
        "jvm 3.9.2 diverges from kidx (offset machine, release 3.9.2)",
        "",
        "  requirement  OI-7 (MUST): A lookup answers.",
        "  differs in   outcome",
        "  expected     [7, 120]",
        "  actual       closed",
        "",
        "  steps",
        "      1  open(kind='offset')",
        "  >   2  lookup(target=9)",
        "",
        "  trace        t.json",
        "  replay       conformance replay t.json",
    ]


def test_a_difference_from_the_model_says_so():
    assert describe(diverged(party="kidx 4.4.0", against="model")).startswith(
        "kidx 4.4.0 diverges from the abstract model"
    )


def test_a_step_that_no_clause_speaks_of_is_a_finding():
    assert "no clause speaks of this step: a finding" in describe(diverged(requirements=()))


def test_bytes_say_where_they_differ_first():
    text = describe(diverged(aspects=["bytes"], expected="0000000700000078", actual="0000000700000079"))
    assert "  differs in   bytes, first at byte 7" in text
    shorter = describe(diverged(aspects=["bytes"], expected="00000007", actual="0000"))
    assert "first at byte 2" in shorter


def test_files_that_are_left_over_are_named():
    text = describe(diverged(aspects=["bytes"], expected=["0.index"], actual=["0.index", "0.lock"]))
    assert "  actual       ['0.index', '0.lock']" in text


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
    assert show(value) == text


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
def test_an_outcome_in_words(outcome, words):
    assert in_words(outcome) == words


# -- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_has_a_header_a_table_and_a_verdict():
    text = printed(STARTED, Progressed("offset", 10, 300, 1.0), result(), RunFinished("conforms", 300, 2.0))
    assert text.splitlines()[0] == ("jvm against kidx · releases 3.9.2, 4.4.0 · profile ci · level observed · seed 7")
    assert "offset machine: 10 examples, 300 steps" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))
    assert row == ["3.9.2", "jvm", "offset", "10", "300", "150", "0", "1/2", "1"]
    assert text.splitlines()[-1] == "conforms · 300 steps in 2.0 s"


def test_what_is_unsupported_is_not_counted_as_exercised():
    text = printed(result(missing=("AI-9",), unsupported=("OI-8a", "OI-8b")), RunFinished("conforms", 300, 2.0))
    assert next(line.split() for line in text.splitlines() if line.startswith("3.9.2"))[-2:] == ["1/4", "1"]


def test_progress_is_one_line_a_machine_where_there_is_no_terminal():
    text = printed(*(Progressed("offset", n, n * 30, share) for n, share in ((1, 0.5), (2, 1.0), (2, 1.0))))
    assert text == "offset machine: 2 examples, 60 steps\n"


def test_quiet_says_differences_and_the_verdict_only():
    events = (STARTED, Progressed("offset", 10, 300, 1.0), diverged(), result(), RunFinished("diverges", 300, 2.0))
    lines = [line for line in printed(*events, quiet=True).splitlines() if line]
    assert lines[0].startswith("jvm 3.9.2 diverges from kidx")
    assert lines[-2:] == [
        "  replay       conformance replay t.json",
        "DIVERGES: 1 difference, see above · 300 steps in 2.0 s",
    ]


def test_verbose_names_what_was_not_run_releases_alike_on_one_line():
    events = (
        result("3.9.2"),
        result("4.3.1"),
        result("4.4.0", missing=("AI-1", "AI-9")),
        RunFinished("conforms", 1, 1.0),
    )
    text = printed(*events, verbose=True)
    assert "not run by offset on 3.9.2, 4.3.1: AI-9\n" in text
    assert "not run by offset on 4.4.0: AI-1, AI-9\n" in text


def test_statements_are_printed_as_they_are():
    """No markup: a statement may hold square brackets."""
    text = printed(diverged(requirements=(("OI-7", "MUST", "[red]not markup[/] [bold]"),)))
    assert "OI-7 (MUST): [red]not markup[/] [bold]" in text
