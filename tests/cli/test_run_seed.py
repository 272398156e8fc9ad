"""``conformance run --seed``: the same version does the same every time, on a warm machine and in a pipeline too."""

from __future__ import annotations

import json

import pytest
from in_ci import in_ci

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
    """Runs and returns the document without what a clock says."""
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


@pytest.mark.parametrize("profile", ["dev", in_ci("ci")])
def test_a_run_without_a_seed_does_the_same_twice_and_in_a_pipeline(said, profile):
    """Hypothesis loads a profile of its own where ``CI`` is set, and has a database where one has been."""
    first = said("--profile", profile)
    assert (first["run"]["seed"], first["run"]["seed_source"]) == (0, "fixed")
    assert said("--profile", profile) == first
    assert said("--profile", profile, CI="true") == first


@pytest.mark.thorough
def test_random_and_nightly_draw_one_and_say_so(said):
    for arguments in (("--seed", "random"), ("--profile", "nightly")):
        runs = [said(*arguments)["run"] for _ in range(2)]
        assert {run["seed_source"] for run in runs} == {"drawn"}
        assert runs[0]["seed"] != runs[1]["seed"]


@pytest.mark.thorough
def test_a_drawn_seed_that_is_given_does_the_same(said):
    drawn = said("--seed", "random")
    given = said("--seed", drawn["run"]["seed"])
    assert given["run"]["seed_source"] == "given"
    assert (given["steps"], given["results"]) == (drawn["steps"], drawn["results"])


@pytest.mark.thorough
def test_the_header_says_which_seed_and_why(typed):
    (typed.work / "mine.py").write_text(SOUND)
    assert "· seed 0 (fixed)\n" in typed("run", *SMALL).stdout
    assert "(drawn)\n" in typed("run", *SMALL, "--seed", "random").stdout
    assert "· seed 3\n" in typed("run", *SMALL, "--seed", "3").stdout
