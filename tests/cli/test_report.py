"""End-to-end tests of ``conformance report``: the files of a real run, and its exit codes."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformance.experiments.output_files import write_texts

PEER = "python:kidx_twin:open_index"
TWIN = """
from kidx import OffsetIndex

def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, base_offset, max_index_size, writable, dialect=release)
"""


def run(typed, text, directory, *arguments):
    (typed.work / "kidx_twin.py").write_text(text)
    small = ("--machine", "offset", "--max-examples", 30, "--seed", 1)
    return typed("run", "-i", PEER, *small, "--report", directory, *arguments)


@pytest.mark.thorough
def test_a_run_becomes_a_page_a_pipeline_and_a_badge(typed):
    """The findings of the run are in every file, and the exit codes equal the exit code of the run."""
    good, bad = run(typed, TWIN, "good"), run(typed, TWIN.replace("Index(path, base", "Index(path, 1 + base"), "bad")
    assert (good.returncode, bad.returncode) == (0, 1), good.stdout + bad.stdout
    files = ("--html", "a/page.html", "--junit", "junit.xml", "--markdown", "summary.md", "--badge", "badge.json")
    done = typed("report", "good", *files)
    assert (done.returncode, done.stderr) == (0, "")
    assert "conforms" in (typed.work / "a" / "page.html").read_text("utf-8")
    assert ET.parse(typed.work / "junit.xml").getroot().get("failures") == "0"  # noqa: S314 -- it is our own
    done = typed("report", "good", "bad", *files)
    assert (done.returncode, done.stderr) == (1, "")
    trace = next((typed.work / "bad" / "traces").iterdir())
    for file in ("a/page.html", "junit.xml", "summary.md"):
        assert f"conformance replay bad/traces/{trace.name}" in (typed.work / file).read_text("utf-8")
    assert json.loads((typed.work / "badge.json").read_text("utf-8"))["message"].startswith("1 divergence ")
    document = json.loads(typed("report", "good", "bad", "--json").stdout)
    assert document["verdict"] == "diverges"
    assert "diverges" in document["matrix"][PEER]["4.4.0"].values()


@pytest.mark.thorough
def test_a_run_that_was_killed_is_no_report_of_a_whole_one(typed):
    run(typed, TWIN, "cut")
    events = typed.work / "cut" / "events.ndjson"
    events.write_text("".join(events.read_text("utf-8").splitlines(keepends=True)[:-1]))
    done = typed("report", "cut", "--markdown", "summary.md")
    assert done.returncode == 2
    assert "was cut off" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "⚠ incomplete" in (typed.work / "summary.md").read_text("utf-8")


def test_two_commands_write_one_file_at_the_same_time(tmp_path, monkeypatch):
    """Both have it written before either renames it."""
    rename, pending = Path.replace, [{tmp_path / "page.html": "theirs"}]

    def replace(path, target):
        if pending:
            write_texts(pending.pop())
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    write_texts({tmp_path / "page.html": "mine"})
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_nothing_is_written_for_an_invalid_report(typed):
    done = typed("report", ".", "--html", "page.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "conformance: . has no events.ndjson; `conformance run --report .` writes one\n"
    assert not (typed.work / "page.html").exists()


# -- expectations -----------------------------------------------------------------------------------------------------

STALE = f"""
[[expectation]]
clause = "OI-2"
machine = "offset"
implementation = "{PEER}"
releases = ">=2.4.0"
reason = "starts one too high"
link = "https://example.org/1"
"""


@pytest.mark.thorough
def test_changes_of_expectations_are_proposed_and_never_applied(typed):
    """A matching entry is expected; a stale one is an error; both are in a diff, and the file is unchanged."""
    known = typed.work / "known"
    known.mkdir()
    (known / "mine.toml").write_text(STALE)
    wrong = TWIN.replace("Index(path, base", "Index(path, 1 + base")
    expecting = ("--expectations", "known", "--suggest-expectations")
    done = run(typed, TWIN, "sound", *expecting)
    assert done.returncode == 2
    assert "an expectation is stale" in done.stderr
    assert '-clause = "OI-2"' in done.stdout
    assert typed("report", "sound", "--badge", "badge.json").returncode == 1
    assert (known / "mine.toml").read_text() == STALE
    (known / "mine.toml").unlink()
    done = run(typed, wrong, "wrong", *expecting)
    assert (done.returncode, done.stderr) == (1, "")
    assert "--- /dev/null" in done.stdout
    assert f'+implementation = "{PEER}"' in done.stdout
    assert list(known.iterdir()) == []


def test_an_unreadable_expectation_is_one_line(typed):
    done = run(typed, TWIN, "sound", "--expectations", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("conformance: cannot read expectations from nowhere: ")
    assert not (typed.work / "sound").exists()
