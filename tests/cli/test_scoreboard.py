"""``conformance scoreboard`` as a user types it: implementations that are run, and runs that were made elsewhere."""

from __future__ import annotations

import json

import pytest

SMALL = ("--kafka", "4.4.0", "--machine", "offset", "--max-examples", "5")
RIGHT = "python:tests.adapters.python_index:open_index"
WRONG = "python:tests.adapters.python_index:open_off_by_one"


@pytest.fixture
def made(typed, tmp_path):
    """A run that was made elsewhere."""
    done = typed("run", "-i", RIGHT, *SMALL, "--report", str(tmp_path / "elsewhere"))
    assert done.returncode == 0, done.stderr
    return tmp_path / "elsewhere"


@pytest.mark.thorough
def test_what_is_run_now_stands_beside_what_was_run_elsewhere(typed, made, tmp_path):
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


def test_a_board_of_what_conforms_is_green_and_printed(typed, made):
    done = typed("scoreboard", str(made))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "# Scoreboard")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["no/such/place"], "there is no report no/such/place"),
        (["=x"], "is no LABEL=NAME"),
        (["subject:none"], "there is no subject 'none'"),
        ([RIGHT, "--machine", "broker"], "none of the machines broker drives"),
        ([RIGHT, "--without", "transactions"], "go with -i wire:HOST:PORT"),
    ],
)
def test_what_cannot_be_done_is_one_line(typed, names, said):
    done = typed("scoreboard", *names)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_that_was_cut_off_is_on_the_board_and_no_board_is_whole_with_it(typed, made, tmp_path):
    events = made / "events.ndjson"
    events.write_text("".join(events.read_text().splitlines(keepends=True)[:-1]))
    done = typed("scoreboard", str(made), "--html", str(tmp_path / "b.html"))
    assert done.returncode == 2
    assert "was cut off" in done.stderr
    assert "was cut off" in (tmp_path / "b.html").read_text("utf-8")
