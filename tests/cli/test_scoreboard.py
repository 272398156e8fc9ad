"""End-to-end tests of ``conformance scoreboard``: implementations that are run, and reports of earlier runs."""

from __future__ import annotations

import json

import pytest

SMALL = ("--kafka", "4.4.0", "--machine", "offset", "--max-examples", "5")
RIGHT = "python:tests.adapters.python_index:open_index"
WRONG = "python:tests.adapters.python_index:open_off_by_one"


@pytest.fixture
def made(typed, tmp_path):
    """Make a report of an earlier run."""
    done = typed("run", "-i", RIGHT, *SMALL, "--report", str(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    return tmp_path / "elsewhere"


@pytest.mark.thorough
def test_new_runs_are_shown_together_with_earlier_ones(typed, made, tmp_path):
    page, summary = tmp_path / "board.html", tmp_path / "board.md"
    words = (f"mine={made}", WRONG, *SMALL, "--report", str(tmp_path / "now"))
    done = typed("scoreboard", *words, "--html", str(page), "--markdown", str(summary), "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert [(row["label"], row["release"]) for row in document["rows"]] == [("mine", "4.4.0"), (WRONG, "4.4.0")]
    assert [row["cells"]["offset index"]["verdict"] for row in document["rows"]] == ["conforms", "differs"]
    (found,) = document["rows"][1]["cells"]["offset index"]["differences"]
    assert found["means"]
    assert document["rows"][1]["runs"][0]["command"].startswith("conformance run ")
    replayed = typed(*found["replay"].split()[1:])
    assert replayed.returncode == 1
    assert found["replay"] in page.read_text("utf-8").replace("&#39;", "'")
    assert "| ✓ |" in summary.read_text("utf-8")


def test_a_board_of_conforming_runs_is_green_and_printed(typed, made):
    done = typed("scoreboard", str(made))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "# Scoreboard")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["no/such/place"], "no report at no/such/place"),
        (["=x"], "is not LABEL=REPORT or LABEL=IMPL"),
        (["subject:none"], "unknown subject 'none'"),
        ([RIGHT, "--machine", "broker"], "cannot be tested by the machine broker"),
        ([RIGHT, "--skip-feature", "transactions"], "--skip-feature requires -i wire:HOST:PORT"),
    ],
)
def test_an_impossible_request_is_one_line(typed, names, said):
    done = typed("scoreboard", *names)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_interrupted_run_is_on_the_board_which_is_incomplete(typed, made, tmp_path):
    events = made / "events.ndjson"
    events.write_text("".join(events.read_text().splitlines(keepends=True)[:-1]))
    done = typed("scoreboard", str(made), "--html", str(tmp_path / "b.html"))
    assert done.returncode == 2
    assert "was cut off" in done.stderr
    assert "was cut off" in (tmp_path / "b.html").read_text("utf-8")
