"""Expectations that do not match any more, and proposals of new ones."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from thorough_params import thorough_param

from conformance.events import Diverged
from conformance.expectations import (
    Expectation,
    ExpectationError,
    StaleExpectationError,
    load_expectations,
    read_expectations,
)
from conformance.expectations.proposal import propose
from conformance.runs import runner
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

# -- Expectations that a run did not match: when they are errors, and when they are only reported ------------------


ADAPTER = shlex.join(["exec:" + sys.executable, str(Path(__file__).parents[1] / "adapters" / "line_index.py")])
ENTRY = """
[[expectation]]
{what}
machine = "offset"
implementation = "exec:*"
releases = ">=2.4.0"
reason = "a debt that was paid"
link = "https://example.org/7"
"""
SIGNATURE = ENTRY.format(what='signature = "append: outcome ok -> full"')
CLAUSE = ENTRY.format(what='clause = "OI-1"')


def finished(tmp_path, implementation=ADAPTER, **options):
    events = []
    plan = Plan(
        ("4.4.0",),
        (implementation,),
        ("offset",),
        PROFILES["dev"],
        tmp_path / "traces",
        seed=1,
        replays=False,
        **options,
    )
    try:
        assert run(plan, events.append)
        return events[-1]
    except StaleExpectationError:
        return events[-1]


@pytest.fixture
def own(tmp_path):
    directory = tmp_path / "own"
    directory.mkdir()

    def written(text):
        (directory / "mine.toml").write_text(text)
        return directory

    return written


@pytest.mark.thorough
@pytest.mark.parametrize("text", [thorough_param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_users_own_file_it_is_an_error(tmp_path, own, text):
    told = finished(tmp_path, expectations=own(text), max_examples=9)
    assert (told.verdict, len(told.details["stale"]), "not seen" in told.details) == ("stale", 1, False)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [pytest.param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_users_own_file_it_is_an_error_in_a_run_cut_by_time_too(tmp_path, own, text):
    told = finished(tmp_path, expectations=own(text), max_time=2)  # a program has to start in this time
    assert (told.verdict, len(told.details["stale"]), "not seen" in told.details) == ("stale", 1, False)


@pytest.mark.thorough
@pytest.mark.parametrize("text", [pytest.param(SIGNATURE, id="signature"), pytest.param(CLAUSE, id="clause")])
def test_in_the_catalogue_it_is_reported_and_no_error(tmp_path, monkeypatch, text):
    """Their versions are locked, and the user of a run has nothing to remove."""
    shipped = read_expectations("shipped.toml", text)
    monkeypatch.setattr(runner, "load_expectations", lambda directory=None: load_expectations(directory) + shipped)
    assert finished(tmp_path, max_examples=9).verdict == "stale"
    monkeypatch.setattr(Expectation, "must_not_be_stale", as_of_a_subject)
    told = finished(tmp_path, max_examples=9)
    assert (told.verdict, len(told.details["not seen"])) == ("conforms", 1)


PYTHON = """
from kidx import OffsetIndex


class Own:
    def __init__(self, *arguments):
        self._index = OffsetIndex(*arguments)

    def __getattr__(self, name):
        return getattr(self._index, name)


class Subclass(OffsetIndex):
    pass


def own(kind, path, base_offset, max_index_size, writable):
    return Own(path, base_offset, max_index_size, writable)


def subclass(kind, path, base_offset, max_index_size, writable):
    return Subclass(path, base_offset, max_index_size, writable)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("factory", ["own", "subclass"])
def test_it_is_an_error_for_every_kind_of_python_object(tmp_path, own, monkeypatch, factory):
    (tmp_path / "stale_objects.py").write_text(PYTHON)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = CLAUSE.replace("exec:*", "python:*")
    told = finished(tmp_path, f"python:stale_objects:{factory}", expectations=own(entry), max_examples=9)
    assert (told.verdict, len(told.details["stale"])) == ("stale", 1)


@pytest.mark.thorough
def test_an_excuse_of_a_must_clause_is_named_in_the_last_lines(in_process, tmp_path, own):
    entry = CLAUSE.replace("exec:*", "mutant:*").replace("OI-1", "AI-20")
    command = ("run", "-i", "mutant:forgets-to-delete", "--machine", "offset", "--kafka", "4.4.0", "--level", "must")
    few = ("--max-examples", "5", "-j", "1", "--expectations", str(own(entry)))
    done = in_process("conformance", *command, *few, work=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})
    *_, named, last = done.stdout.splitlines()
    assert done.returncode == 0
    assert named.startswith("expected, so it does not count: mine.toml, entry 1: AI-20, offset machine, mutant:*")
    assert last.startswith("conforms · ")
    assert " · 1 expectation used · " in last


IS_OWED = Expectation.must_not_be_stale


def as_of_a_subject(expectation, **where):
    return IS_OWED(replace(expectation, implementation="subject:mine"), **where)


# -- ``--suggest-expectations``: a diff that a person may apply, and nothing that applies itself -------------------


PROPOSED = """[[expectation]]
clause = "{}"
machine = "offset"
implementation = "exec:./mine"
releases = ">=2.4.0"
reason = "known"
link = "https://example.org/1"
"""
FILE = f"# Ours.\n\n# why the first\n{PROPOSED.format('OI-7')}\n# why the second\n{PROPOSED.format('OI-3')}"


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
    assert sorted(removed) == sorted(
        f"-{line}" for line in ["# why the first", *PROPOSED.format("OI-7").splitlines(), ""]
    )
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
