"""End-to-end tests of ``conformance site``: results of runs, and what is new since the earlier ones."""

from __future__ import annotations

import json

import pytest

SMALL = ("--kafka", "4.4.0", "--machine", "offset", "--max-examples", "5")
PROGRAM = """
from kidx import OffsetIndex

class Index(OffsetIndex):
    def lookup(self, target):
        return super().lookup(target - {off})

def open_index(kind, *arguments):
    return Index(*arguments)
"""


@pytest.mark.thorough
def test_results_of_two_versions_of_an_index(typed, tmp_path):
    """The defect of the first version is new, then known, and gone in the next version."""
    site, program = tmp_path / "site", tmp_path / "changing_index.py"

    def results_of(name, off):
        program.write_text(PROGRAM.format(off=off), "utf-8")
        report = tmp_path / name
        words = ("run", "-i", "python:changing_index:open_index", *SMALL, "--report", str(report))
        assert typed.apart(*words, PYTHONPATH=tmp_path).returncode == (1 if off else 0)
        done = typed("site", str(site), str(report), "--only", "results")
        assert done.returncode == 0, done.stderr
        return (site / "results.md").read_text("utf-8").partition("## Implementations")[0]

    assert "the first result" in results_of("first", 1)
    assert "Nothing:" in results_of("second", 1)
    news = results_of("third", 0)
    assert "✓ no longer diverges in offset index, OI-7" in news
    assert "offset index was differs, and is conforms" in news
    assert "✗ a new divergence in offset index, OI-7" in results_of("fourth", 1)
    lines = (site / "results" / "history.ndjson").read_text("utf-8").splitlines()
    assert [len(json.loads(line)["rows"][0]["divergences"]) for line in lines] == [1, 1, 0, 1]
    assert "conformance replay" in (site / "results" / "scoreboard.html").read_text("utf-8")
    (badge,) = site.glob("results/badges/*/offset-index.svg")
    assert "1 divergence · Kafka 4.4.0" in badge.read_text("utf-8")


def test_pages_before_any_run(typed, tmp_path):
    done = typed("site", str(tmp_path / "site"), "--only", "results")
    assert (done.returncode, done.stderr) == (0, "")
    assert "No run has been given yet." in (tmp_path / "site" / "results.md").read_text("utf-8")
    assert (tmp_path / "site" / "results" / "drop.html").exists()
    assert not list((tmp_path / "site").glob("offset_index.md"))


def test_a_history_that_cannot_be_read_is_one_line(typed, tmp_path):
    (tmp_path / "h").write_text("no history\n", "utf-8")
    done = typed("site", str(tmp_path / "site"), "--only", "results", "--history", str(tmp_path / "h"))
    assert done.returncode == 2
    assert "line 1 of the history" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "site").exists()
