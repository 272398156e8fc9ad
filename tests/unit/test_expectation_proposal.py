"""``--update-expectations``: a diff that a person may apply, and nothing that applies itself."""

from __future__ import annotations

import subprocess

import pytest

from conformance.events import Diverged
from conformance.expectations import ExpectationError, load_expectations
from conformance.expectations.proposal import propose

ENTRY = """[[expectation]]
clause = "{}"
machine = "offset"
implementation = "exec:./mine"
releases = ">=2.4.0"
reason = "known"
link = "https://example.org/1"
"""
FILE = f"# Ours.\n\n# why the first\n{ENTRY.format('OI-7')}\n# why the second\n{ENTRY.format('OI-3')}"


def diverged(release, *clauses, implementation="exec:./mine"):
    failure = {"party": f"mine {release}", "release": release, "aspects": ["outcome"], "clauses": list(clauses)}
    levels = {"OI-22": "OBSERVED"}
    requirements = tuple((clause, levels.get(clause, "MUST"), "…") for clause in clauses)
    return Diverged("offset", failure, requirements, ("lookup(target=1)",), "", "", implementation)


def applied(directory, diff):
    """What a person has who applies the diff."""
    done = subprocess.run(["patch", "-p0"], input=diff, cwd=directory, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stale_entry_goes_with_its_comment_and_nothing_else(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    stale = load_expectations(tmp_path)[:1]
    diff = propose(tmp_path, stale, [])
    assert (tmp_path / "mine.toml").read_text() == FILE
    removed = [line for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert sorted(removed) == sorted(f"-{line}" for line in ["# why the first", *ENTRY.format("OI-7").splitlines(), ""])
    assert not [line for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


def test_one_kind_of_divergence_is_one_entry_that_a_person_has_to_finish(tmp_path, monkeypatch):
    """The narrowest MUST, every release; without a reason and a link the entry is refused."""
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "known"
    mine.mkdir()
    found = [diverged("3.9.2", "AI-33", "OI-7", "OI-22"), diverged("4.4.0", "AI-33", "OI-7", "OI-22")]
    diff = propose(mine.relative_to(tmp_path), [], found)
    applied(tmp_path, diff)
    (file,) = mine.iterdir()
    with pytest.raises(ExpectationError, match="entry 1 has no reason, link"):
        load_expectations(mine)
    file.write_text(file.read_text().replace('reason = ""', 'reason = "r"').replace('link = ""', 'link = "l"'))
    (expectation,) = load_expectations(mine)
    assert (expectation.clause, expectation.implementation) == ("OI-7", "exec:./mine")
    assert all(release in expectation.releases for release in ("3.9.2", "4.4.0"))
    assert expectation.concerns("offset", "exec:./mine", "4.4.0")
    assert "4.3.1" not in expectation.releases


def test_an_implementation_with_signs_of_a_pattern_is_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "exec:python a[1]*.py"
    diff = propose(tmp_path, [], [diverged("4.4.0", "OI-7", implementation=name)])
    (line,) = [line for line in diff.splitlines() if line.startswith("+implementation")]
    assert line == '+implementation = "exec:python a[[]1][*].py"'


@pytest.mark.parametrize("event", [diverged("4.4.0"), diverged("4.4.0", "OI-7", implementation="")])
def test_what_no_clause_speaks_of_and_the_reference_cannot_be_expected(tmp_path, event):
    assert propose(tmp_path, [], [event]) == ""


def test_nothing_to_change_is_an_empty_diff(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    assert propose(tmp_path, [], []) == ""
