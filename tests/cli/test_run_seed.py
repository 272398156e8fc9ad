"""``conformance run --seed``: the same version does the same every time, on a warm machine and in a pipeline too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SOUND = """
from kidx import OffsetIndex


def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, base_offset, max_index_size, writable, dialect=release)
"""
SMALL = ("-i", "python:mine:open_index", "--machine", "offset", "--max-examples", "12")


@pytest.fixture
def said(typed):
    """Run and return the document without times."""
    (typed.work / "mine.py").write_text(SOUND)

    def run(*arguments, **changes):
        done = typed("run", *SMALL, *arguments, "--json", **changes)
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads(done.stdout)
        for row in (document, *document["results"]):
            del row["seconds"]
        del document["run"]["started"]
        return document

    return run


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["dev", "ci"])
def test_a_run_without_a_seed_is_the_same_twice_and_in_a_pipeline(said, profile):
    """Hypothesis loads its CI profile if ``CI`` is set, and uses an existing database."""
    first = said("--profile", profile)
    assert (first["run"]["seed"], first["run"]["seed_source"]) == (0, "fixed")
    assert said("--profile", profile) == first
    assert said("--profile", profile, CI="true") == first


@pytest.mark.thorough
def test_random_and_nightly_draw_a_seed_and_print_it(said):
    for arguments in (("--seed", "random"), ("--profile", "nightly")):
        runs = [said(*arguments)["run"] for _ in range(2)]
        assert {run["seed_source"] for run in runs} == {"drawn"}
        assert runs[0]["seed"] != runs[1]["seed"]


@pytest.mark.thorough
def test_a_drawn_seed_reproduces_the_run(said):
    drawn = said("--seed", "random")
    given = said("--seed", drawn["run"]["seed"])
    assert given["run"]["seed_source"] == "given"
    assert (given["steps"], given["results"]) == (drawn["steps"], drawn["results"])


@pytest.mark.thorough
def test_the_header_has_the_seed_and_its_source(typed):
    (typed.work / "mine.py").write_text(SOUND)
    assert "· seed 0 (fixed)\n" in typed("run", *SMALL).stdout
    assert "(drawn)\n" in typed("run", *SMALL, "--seed", "random").stdout
    assert "· seed 3\n" in typed("run", *SMALL, "--seed", "3").stdout


@pytest.mark.thorough
def test_a_gate_finds_every_divergence_and_shrinks_none(typed):
    command = ("run", "-i", "mutant:forgets-to-delete", "--machine", "offset", "--max-examples", 5, "--json")
    for words in (("--no-shrink",), ("--no-shrink", "--max-shrink-time", 9)):
        (told,) = json.loads(typed(*command, "--kafka", "4.4.0", *words).stdout)["divergences"]
        assert told["shrinking"] == "not shrunk"


@pytest.mark.thorough
def test_a_trace_of_a_gate_is_shrunk_later(typed):
    """The shrunk trace is what the run itself finds, and stands next to the trace of the gate."""
    command = ("-i", "mutant:starts-over-after-a-resize", "--kafka", "4.4.0")
    examples = ("--machine", "offset", "--max-examples", 20, "-j", 1, "--report", "out")
    (long,) = json.loads(typed("run", *command, *examples, "--no-shrink", "--json").stdout)["divergences"]
    done = typed("replay", long["trace"], *command, "--shrink", "--json")
    document = json.loads(done.stdout)
    (short,) = document["shrunk"]
    assert (done.returncode, document["verdict"], short["shrinking"]) == (1, "FAILED", "minimal")
    assert len(short["steps"]) < len(long["steps"])
    assert (short["clause"], short["signature"]) == (long["clause"], long["signature"])
    assert Path(short["trace"]).parent == Path(long["trace"]).parent
    told = typed("replay", short["trace"], *command, "--shrink")
    assert (told.returncode, f"\nshrunk to {len(short['steps'])} steps (minimal)\n" in told.stdout) == (1, True)
    fixed = typed("replay", short["trace"], "-i", "mutant:remembers-too-much", "--kafka", "4.4.0", "--shrink", "--json")
    assert (fixed.returncode, json.loads(fixed.stdout)["shrunk"]) == (0, [])
