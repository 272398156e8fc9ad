"""Editions: a run counts a frozen list of clauses alone, and says what is newer."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

import pytest

from conformance.attribution.baseline import baseline_clauses
from conformance.attribution.tables import clauses_for
from conformance.clauses import load_clauses
from conformance.clauses.editions import (
    Edition,
    counted_clauses,
    digest,
    edition_names,
    frozen,
    load_edition,
    use_edition,
)
from conformance.errors import ToolError
from conformance.kafka.releases import RELEASES
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.divergence_event import replay_command
from conformance.runs.replay import replay
from conformance.runs.reproducers import python_reproducer

SEALS = {"2026.1": "52bc8f5644c47101", "wire-2026.1": "4b86a670bfa20ae9"}
"""The digests of the packaged editions: a file that was published never changes."""
DELETES = (
    "-i",
    "mutant:forgets-to-delete",
    "--machine",
    "offset",
    "--kafka",
    "4.4.0",
    "--max-examples",
    "5",
    "-j",
    "1",
)


@pytest.fixture
def call(in_process, tmp_path):
    """Return a function that runs a command of conformance."""
    return lambda *words: in_process(
        "conformance", *words, work=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)}
    )


@pytest.mark.parametrize("name", edition_names())
def test_a_packaged_edition_is_the_published_one(name):
    content = (files("conformance.clauses") / "frozen" / f"{name}.json").read_bytes()
    assert sha256(content).hexdigest()[:16] == SEALS[name]
    assert load_edition(name).edition == name


def test_the_wire_baseline_is_an_edition():
    baseline = {clause.id for release in RELEASES for clause in baseline_clauses(release)}
    wire, whole = load_edition("wire-2026.1").clauses, load_edition("2026.1").clauses
    assert wire.keys() - baseline == {"LO-24"}  # no longer a MUST
    assert wire.items() <= whole.items()


def test_the_command_freezes_what_it_lists(call, tmp_path):
    done = call("clauses", "OI", "--machine", "offset", "--level", "must", "--freeze", "mine")
    (tmp_path / "mine.json").write_text(done.stdout)
    edition = load_edition(str(tmp_path / "mine.json"))
    ids = [each["id"] for each in json.loads(call("clauses", "OI", "--level", "must", "--json").stdout)]
    assert (edition.edition, list(edition.clauses)) == ("mine", ids)
    assert edition.changes(ids) == {}
    assert edition.changes([*ids, "AI-1"]) == {"newer": ["AI-1"]}


def test_what_has_changed_is_said():
    clause = load_clauses()["OI-1"]
    edition = Edition("old", {"OI-1": ("MUST", digest(replace(clause, statement="Another."))), "OI-2": ("API", "0")})
    assert edition.changes(["OI-1", "OI-2"]) == {"reworded": ["OI-1", "OI-2"], "moved": ["OI-2"]}
    assert json.loads(frozen("new", [clause])) == {"edition": "new", "clauses": {"OI-1": ["MUST", digest(clause)]}}


def test_a_clause_that_was_raised_later_does_not_count(tmp_path):
    path = tmp_path / "old.json"
    path.write_text('{"edition": "old", "clauses": {"OI-1": ["MUST", "0"], "OI-2": ["API", "0"]}}')
    assert counted_clauses(("OI-2", "AI-1"), "must") == ("OI-2", "AI-1")
    with use_edition(str(path)):
        assert counted_clauses(("OI-1", "OI-2", "AI-1"), "must") == ("OI-1",)
        assert counted_clauses(("OI-2", "AI-1"), "api") == ("OI-2",)
        assert counted_clauses(("OI-2", "AI-1"), "must") is None
        assert [clause.id for clause in clauses_for("offset", "4.4.0")] == ["OI-1", "OI-2"]
    assert len(clauses_for("offset", "4.4.0")) > 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [("{", "is not an edition"), ('{"edition": "x", "clauses": {"ZZ-1": ["MUST", "0"]}}', "has no clause of the")],
)
def test_a_wrong_file_is_one_line(tmp_path, content, reason):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ToolError, match=reason):
        load_edition(str(tmp_path / "x.json"))


def test_an_unknown_edition_is_one_line_that_names_the_known_ones(call):
    done = call("run", *DELETES, "--edition", "2025.9")
    assert (done.returncode, done.stdout) == (2, "")
    known = "choose from 2026.1, wire-2026.1, or name a .json file"
    assert done.stderr == f"conformance: unknown edition '2025.9'; {known}\n"


@pytest.mark.thorough
def test_a_difference_counts_only_by_the_clauses_of_the_edition(call, tmp_path):
    """The mutant forgets to delete its file, which AI-20b requires and no clause about entries."""
    assert call("run", *DELETES, "--no-shrink", "--edition", "2026.1").returncode == 1
    (tmp_path / "entries.json").write_text(call("clauses", "OI", "--freeze", "entries").stdout)
    done = call("run", *DELETES, "--edition", "entries.json", "--report", "out", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"], document["run"]["edition"]) == (0, "conforms", "entries")
    assert {clause.partition("-")[0] for clause in document["results"][0]["verdicts"]} == {"OI"}
    assert "AI-20b" in document["since_edition"]["newer"]
    assert "--edition entries.json" in document["run"]["command"]
    report = call("report", "out", "--junit", "x.xml", "--badge", "b.json", "--markdown", "s.md", "--html", "p.html")
    assert report.returncode == 0
    assert '<testsuites name="conformance edition entries"' in (tmp_path / "x.xml").read_text()
    assert "edition entries" in json.loads((tmp_path / "b.json").read_text())["message"]
    for page in ("s.md", "p.html"):
        assert "observed of edition entries" in (tmp_path / page).read_text()
    assert "AI-20b" not in (tmp_path / "x.xml").read_text()


@pytest.fixture
def trace(tmp_path):
    """Return a trace of an index that forgets to delete its file, from a run with an edition without AI-20b."""
    path = tmp_path / "entries.json"
    path.write_text('{"edition": "entries", "clauses": {"OI-1": ["MUST", "0"]}}')
    steps = Operation("open", ("offset", "0.index", 0, 64, True)), Operation("delete")
    return Trace("offset", "4.4.0", steps, provenance={"edition": str(path)})


def test_a_replay_judges_by_the_edition_of_its_trace(trace):
    assert replay(trace, ["4.4.0"], ["mutant:forgets-to-delete"]).verdict == "FIXED"
    assert replay(trace, ["4.4.0"], ["mutant:forgets-to-delete"], edition="2026.1").verdict == "FAILED"
    assert replay(trace, ["4.4.0"], ["mutant:forgets-to-delete"], edition="").verdict == "FAILED"


def test_a_replay_takes_an_edition(call, trace, tmp_path):
    path = trace.save(tmp_path)
    words = "replay", str(path), "-i", "mutant:forgets-to-delete", "--quiet"
    assert call(*words).returncode == 0
    assert call(*words, "--edition", "2026.1").returncode == 1
    done = call(*words, "--edition", "2025.9")
    assert (done.returncode, done.stderr.partition(";")[0]) == (2, "conformance: unknown edition '2025.9'")


def test_the_printed_replay_and_the_exported_program_have_the_edition(trace):
    assert replay_command("x.json", "4.4.0", "exec:mine", edition="mine.json").endswith(" --edition mine.json")
    assert trace.provenance["edition"] in python_reproducer(trace, "4.4.0", "mutant:forgets-to-delete", "ticket")


def test_a_trace_has_the_edition_of_its_run(call, tmp_path):
    done = call("run", *DELETES, "--no-shrink", "--edition", "2026.1", "--report", "out", "--json")
    (found, *_) = json.loads(done.stdout)["divergences"]
    assert Trace.load(tmp_path / found["trace"]).provenance["edition"] == "2026.1"
    assert found["replay"].endswith(" --edition 2026.1")
