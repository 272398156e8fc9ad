"""``--suggest-expectations``: a diff that a person may apply, and nothing that applies itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
    failure = {"participant": f"mine {release}", "release": release, "aspects": ["outcome"], "clauses": list(clauses)}
    levels = {"OI-22": "OBSERVED"}
    requirements = tuple((clause, levels.get(clause, "MUST"), "…") for clause in clauses)
    return Diverged("offset", failure, requirements, ("lookup(target=1)",), "", "", implementation)


def applied(directory, diff):
    """Return the file after the diff is applied."""
    command = ["git", "apply"]
    done = subprocess.run(command, input=diff, cwd=directory, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["known", "known of mine"])
def test_git_applies_it_in_the_directory_of_the_run(tmp_path, monkeypatch, name):
    """In a repository, from a directory below its root: a new file, an entry that goes, and names with blanks."""
    work = tmp_path / "below"
    (work / name).mkdir(parents=True)
    (work / name / "other.toml").write_text(FILE)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(work)
    stale = load_expectations(work / name)
    applied(work, propose(Path(name), stale, [diverged("4.4.0", "OI-7")]))
    assert '"OI-7"' in (work / name / "mine.toml").read_text()
    assert "[[expectation]]" not in (work / name / "other.toml").read_text()
    monkeypatch.chdir(tmp_path)
    assert f"+++ b/below/{name}/mine.toml" in propose(work / name, [], [diverged("4.4.0", "OI-3")])


def test_a_stale_entry_is_removed_with_its_comment_only(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    stale = load_expectations(tmp_path)[:1]
    diff = propose(tmp_path, stale, [])
    assert (tmp_path / "mine.toml").read_text() == FILE
    removed = [line for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert sorted(removed) == sorted(f"-{line}" for line in ["# why the first", *ENTRY.format("OI-7").splitlines(), ""])
    assert not [line for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


def test_one_kind_of_divergence_is_one_incomplete_entry(tmp_path, monkeypatch):
    """It has the most specific MUST clause and every release; without a reason and a link the entry is rejected."""
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
    assert expectation.applies_to("offset", "exec:./mine", "4.4.0")
    assert "4.3.1" not in expectation.releases


def test_an_implementation_with_signs_of_a_pattern_is_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "exec:python a[1]*.py"
    diff = propose(tmp_path, [], [diverged("4.4.0", "OI-7", implementation=name)])
    (line,) = [line for line in diff.splitlines() if line.startswith("+implementation")]
    assert line == '+implementation = "exec:python a[[]1][*].py"'


@pytest.mark.parametrize("event", [diverged("4.4.0"), diverged("4.4.0", "OI-7", implementation="")])
def test_divergences_without_a_clause_and_of_the_reference_cannot_be_expected(tmp_path, event):
    assert propose(tmp_path, [], [event]) == ""


def test_nothing_to_change_is_an_empty_diff(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    assert propose(tmp_path, [], []) == ""
