"""The commands fuzz and mutate."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from conformance.cli import main

# -- End-to-end tests of ``conformance fuzz`` ----------------------------------------------------------------------


ADAPTER = Path(__file__).parents[1] / "adapters" / "python_index.py"
MINE = "python:python_index:open_index"


@pytest.fixture
def fuzz(typed):
    shutil.copy(ADAPTER, typed.work)
    return lambda *arguments: typed("fuzz", *arguments)


@pytest.mark.thorough
def test_a_users_index_is_fuzzed_and_the_corpus_saved(tmp_path, fuzz):
    options = ("-i", MINE, "--format", "txn", "--max-examples", 50, "--corpus", tmp_path / "corpus")
    done = fuzz(*options, "--report", tmp_path / "report", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads(done.stdout)
    assert result["findings"] == {}
    assert sum(result["flips"].values()) == 68 * 8
    assert len(list((tmp_path / "corpus" / "txn").iterdir())) == result["new"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "snapshot"), "unknown format 'snapshot'; choose from offset, time, txn, log"),
        (("--kafka", "1.1"), "Kafka 1.1 is not locked"),
        (("-i", "broker"), "a broker cannot open a given file"),
        (
            ("--corpus", "/dev/null/x", "-i", MINE),
            "cannot use the corpus /dev/null/x/offset",
        ),
    ],
)
def test_bad_input_is_one_line(arguments, message, fuzz):
    done = fuzz(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


# -- End-to-end tests of ``conformance mutate``, ``known-bugs`` and ``exhaustive``: tables, exit codes, reports ----


KILLED = "refuses-a-single-entry"
"""Mutant found by a new file with capacity for one entry: soon, but not by the first example of seed 1."""


@pytest.fixture
def here(typed, capfd, monkeypatch):
    """Run ``typed`` in this process: for commands without child processes, which finish before Python would start."""
    monkeypatch.chdir(typed.work)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["conformance", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfd.readouterr()
        return SimpleNamespace(returncode=left.value.code, stdout=out, stderr=err)

    return run


def power(typed, *arguments):
    return typed("mutate", "--seed", 1, "--jobs", 1, *arguments)


@pytest.mark.thorough
def test_a_killed_mutant_and_a_surviving_one(typed, here):
    """It checks table and exit code of each, and the result of their report, next to the report of a historical bug."""
    killed = power(typed, "--mutant", KILLED, "--report", "killed")
    assert (killed.returncode, killed.stderr) == (0, "")
    heading, row, summary = killed.stdout.splitlines()
    assert heading.split()[:3] == ["machine", "mutant", "clause"]
    assert row.split()[:3] == ["offset", KILLED, "AI-3b"]
    assert summary.startswith("1 of 1 mutants killed with every one of 1 seeds, each within 2000 examples")
    survived = power(typed, "--mutant", KILLED, "--max-examples", 1, "--report", "survived", "--json")
    assert (survived.returncode, survived.stderr) == (1, "")
    document = json.loads(survived.stdout)
    assert (document["verdict"], document["mutants"][0]["survived"]) == ("survivors", True)

    historical = here("known-bugs", "KAFKA-588", "--report", "historical")
    assert (historical.returncode, historical.stderr) == (0, "")
    assert historical.stdout.splitlines()[1].split()[:3] == ["KAFKA-588", "offset", "Truncating"]

    files = ("--markdown", "summary.md", "--junit", "junit.xml", "--html", "page.html")
    done = here("report", "killed", "historical", *files)
    assert (done.returncode, done.stderr) == (0, "")
    summary = (typed.work / "summary.md").read_text("utf-8")
    median = row.split()[3]
    assert f"| {KILLED} | ✓ | offset | {median} | {median} | {median} |" in summary
    assert "### historical bugs" in summary
    (row,) = [line for line in summary.splitlines() if line.startswith("| KAFKA-588 ")]
    assert row.startswith("| KAFKA-588 | ✓ | offset | ")
    assert " | the bug | " in row
    assert "KAFKA-588" in (typed.work / "page.html").read_text("utf-8")
    assert ET.parse(typed.work / "junit.xml").getroot().get("failures") == "0"  # noqa: S314 -- it is our own
    done = here("report", "survived", *files)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"| {KILLED} | ✗ | offset | survived | survived | survived |" in (typed.work / "summary.md").read_text(
        "utf-8"
    )
    assert ET.parse(typed.work / "junit.xml").getroot().get("failures") == "1"  # noqa: S314 -- it is our own


def test_mutants_have_names(here):
    done = here("mutate", "--list", "--machine", "offset", "--machine", "time", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert {row["machine"] for row in rows} == {"offset", "time"}
    assert KILLED in {row["name"] for row in rows}


def test_an_unknown_name_is_one_line_and_leaves_no_report(typed, here):
    for arguments, said in (
        (("mutate", "--mutant", "nobody"), "no mutant is called nobody; `conformance mutate --list` lists all"),
        (("known-bugs", "KAFKA-1"), "unknown ticket 'KAFKA-1'; choose from KAFKA-588, "),
        (("exhaustive", "--machine", "log"), "unknown machine 'log'; choose from offset, "),
    ):
        done = here(*arguments, "--report", "none")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"conformance: {said}")
        assert done.stderr.count("\n") == 1
        assert not (typed.work / "none").exists()


def test_a_small_world_is_as_long_as_the_defect(here):
    """Appending and cutting at the entry takes two operations, so that no sequence of one shows it."""
    world = ("exhaustive", "--machine", "offset", "--kafka", "4.4.0", "-i", "mutant:keeps-the-equal-offset")
    one, two = (here(*world, "--length", length, "--report", str(length)) for length in (1, 2))
    assert (one.returncode, one.stderr) == (0, "")
    assert one.stdout.endswith("steps: agree\n")
    assert (two.returncode, two.stderr) == (1, "")
    assert two.stdout.splitlines()[-1] == "    3  truncate_to(offset=0)"
    assert here("report", "1").returncode == 0
    told = here("report", "2")
    assert told.returncode == 1
    assert "| sequences, offset index | ✗ |" in told.stdout
