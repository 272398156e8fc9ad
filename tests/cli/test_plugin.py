"""The pytest plug-in in another repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.attribution.tables import clauses_for
from conformance.kafka.releases import newest
from conformance.pytest_plugin import tiers
from conformance.report.divergence import contradicted_first
from conformance.report.stream import read_stream

pytest_plugins = ["pytester"]

EXECUTABLE = Path(sys.executable).with_name("conformance")
PEER = "python:their_index:open_index"
TWIN = """
from kidx import OffsetIndex


def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return OffsetIndex(path, base_offset, max_index_size, writable, dialect=release)
"""
WRONG = TWIN.replace("Index(path, base_offset", "Index(path, 1 + base_offset")
"""Wrong from its first step on, so that there is little to shrink."""
FEW = ("--conformance-impl", PEER, "--conformance-max-examples", "10", "--conformance-seed", "1")
OFFSET = (*FEW, "--conformance-machine", "offset")


@pytest.fixture
def theirs(pytester, monkeypatch):
    """Run pytest in a user's repository with tests and an index; strict, and any warning is an error."""
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Their coverage would replace the data of a run that measures ours.
    monkeypatch.setenv("COVERAGE_FILE", str(pytester.path / ".coverage"))
    for name in [name for name in os.environ if name.startswith("COV_CORE_")]:
        monkeypatch.delenv(name)
    pytester.makefile(".toml", pyproject='[tool.pytest.ini_options]\naddopts = ["--strict-markers", "--strict-config"]')
    pytester.makepyfile(test_theirs="def test_theirs(): pass")

    def run(*arguments, index=TWIN, where="inprocess"):
        pytester.makepyfile(their_index=index)
        # An inner session that unregisters faulthandler's signals also unregisters the signals of a running JVM.
        plugin = ("-p", "conformance.plugin", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-W", "error")
        return getattr(pytester, f"runpytest_{where}")(*plugin, *arguments)

    return run


def clauses_of(machine: str) -> int:
    return len(clauses_for(machine, newest()))


@pytest.mark.thorough
def test_a_clause_is_a_test(theirs):
    """Each clause is a test next to the user's own; a clause that no step exercised is skipped, with its reason."""
    done = theirs("-v", *OFFSET, "--kafka", "4.4.0")
    done.stdout.fnmatch_lines(
        [
            "conformance: python:their_index:open_index against kidx, Kafka 4.4.0",
            "test_theirs.py::test_theirs PASSED*",
            "conformance::offset::AI-1 * PASSED*",
            "conformance::offset::OI-7 * PASSED*",
            "conformance::offset::everything else PASSED*",
            "conformance: 0 unique divergences; clauses: * conforms, * not run",
        ]
    )
    outcomes = done.parseoutcomes()
    assert outcomes.keys() <= {"passed", "skipped"}
    assert outcomes["passed"] + outcomes["skipped"] == clauses_of("offset") + 2
    assert outcomes["passed"] > outcomes["skipped"]


def test_an_edition_has_only_the_tests_of_its_clauses(theirs, pytester):
    edition = {"edition": "mine", "clauses": {"OI-1": ["MUST", "0"], "OI-7": ["MUST", "0"], "TI-1": ["MUST", "0"]}}
    (pytester.path / "mine.json").write_text(json.dumps(edition))
    done = theirs("--collect-only", "-q", *OFFSET, "--kafka", "4.4.0", "--conformance-edition", "mine.json")
    found = [line.partition("offset::")[2].partition(" ")[0] for line in done.outlines if "offset::" in line]
    assert found == ["OI-1", "OI-7", "everything"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("exec:./nothing", "./nothing cannot be used: No such file or directory: ./nothing"),
        ("exec:true", "true cannot be used: it ended (exit status 0)"),
        ("python:nothing_of_that_name:open_index", "nothing_of_that_name"),
    ],
)
def test_an_unusable_program_is_one_error_and_not_one_per_test(theirs, spec, said):
    done = theirs("--conformance-impl", spec)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr.str()
    assert len(done.stderr.str().splitlines()) < 5
    assert "failed" not in done.stdout.str()


@pytest.mark.thorough
def test_a_failure_has_the_details_and_replays(theirs, pytester):
    """It has requirement, expected, actual, steps, and a command that replays them and fails."""
    done = theirs(*OFFSET, index=WRONG)
    assert done.ret == 1
    done.stdout.fnmatch_lines(
        [
            "*requirement  OI-2 (MUST):*",
            "*expected *actual*",
            "*[*] last.offset *",
            "*steps",
            "*>   1  open(*",
            "*replay       conformance replay *",
        ]
    )
    assert "Traceback" not in done.stdout.str()
    (command, *_) = dict.fromkeys(re.findall(r"replay +conformance (replay .*)", done.stdout.str()))
    replayed = subprocess.run(
        [EXECUTABLE, *shlex.split(command)], cwd=pytester.path, capture_output=True, text=True, check=False
    )
    assert (replayed.returncode, replayed.stdout.splitlines()[-1].split(" ")[0]) == (1, "FAILED"), replayed.stderr


TWO_DEFECTS = """
from kidx import OffsetIndex


class Index(OffsetIndex):
    def append(self, offset, position):
        if self.is_full:
            return None
        return super().append(offset, position)

    def lookup(self, target):
        return super().lookup(target - 1)


def open_index(kind, path, base_offset, max_index_size, writable, release):
    if kind != "offset":
        raise NotImplementedError
    return Index(path, base_offset, max_index_size, writable, dialect=release)
"""


@pytest.mark.thorough
def test_a_divergence_is_one_failed_test_and_the_other_clauses_name_it(theirs, pytester):
    done = theirs(*OFFSET, "-rs", "--conformance-report", "out", index=TWO_DEFECTS)
    events = read_stream(pytester.path / "out/offset/events.ndjson").divergences
    assert len(events) >= 2
    implicated = {clause for event in events for clause in event.clauses}
    told = {contradicted_first(event)[0][0] for event in events}
    assert len(implicated) > len(told)
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] == len(told)
    assert sum(outcomes.values()) == clauses_of("offset") + 2
    done.stdout.fnmatch_lines(
        [
            f"conformance: {len(events)} unique divergences; clauses: *",
            "*SKIPPED * also implicated in a divergence that another test reports: *",
        ]
    )


@pytest.mark.thorough
def test_a_clause_that_is_implicated_fails_if_it_is_the_only_one_selected(theirs, pytester):
    whole = theirs(*OFFSET, "--conformance-report", "out", index=TWO_DEFECTS)
    assert whole.ret == 1
    events = read_stream(pytester.path / "out/offset/events.ndjson").divergences
    told = {contradicted_first(event)[0][0] for event in events}
    clause = next(clause for event in events for clause in event.clauses if clause not in told)
    theirs(*OFFSET, "-k", clause, index=TWO_DEFECTS).assert_outcomes(failed=1)


@pytest.mark.thorough
def test_the_selection_decides_what_runs(theirs):
    """-k takes a clause's id, -m the marker; a machine that the implementation does not have is skipped."""
    theirs(*FEW, "-k", "OI-7").assert_outcomes(passed=1)
    theirs(*OFFSET, "-m", "not conformance").assert_outcomes(passed=1)
    # Behaviour without a clause is not reported as right, either, if nothing was compared.
    transactions = theirs(*FEW, "--conformance-machine", "transaction")
    transactions.assert_outcomes(passed=1, skipped=clauses_of("transaction") + 1)
    segments = theirs(*FEW, "--conformance-machine", "segment", "-m", "conformance")
    segments.assert_outcomes(skipped=clauses_of("segment") + 1)


@pytest.mark.thorough
def test_workers_share_one_run(theirs, pytester):
    """For any distribution of the tests, a machine runs once, and decides every group."""
    done = theirs(*OFFSET, "-n", "2", "--conformance-report", "kept", index=WRONG, where="subprocess")
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] >= 1
    assert sum(outcomes.values()) == clauses_of("offset") + 2
    assert [path.parent.name for path in pytester.path.glob("kept/*/events.ndjson")] == ["offset"]
    events = (pytester.path / "kept/offset/events.ndjson").read_text()
    assert len(list(pytester.path.glob("kept/offset/traces/*.json"))) == events.count('{"event":"Diverged"') > 0
    report = subprocess.run([EXECUTABLE, "report", "kept"], cwd=pytester.path, capture_output=True, check=False)
    assert report.returncode == 1


@pytest.fixture
def without_java(monkeypatch):
    monkeypatch.setenv("KIDX_JAVA_HOME", "/nowhere")
    tiers.missing.cache_clear()
    yield
    tiers.missing.cache_clear()


@pytest.mark.usefixtures("without_java")
def test_require_turns_a_skipped_tier_into_a_failure(theirs):
    arguments = ("--kafka", "4.4.0", "--conformance-machine", "offset")
    done = theirs(*arguments)
    done.assert_outcomes(passed=1, skipped=clauses_of("offset") + 1)
    done.stdout.fnmatch_lines(["*tests did NOT run: their tier*", "*KIDX_JAVA_HOME is /nowhere*"])
    theirs(*arguments, "--require", "jvm").assert_outcomes(passed=1, errors=clauses_of("offset") + 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kafka", "1.0"), "Kafka 1.0 is not locked"),
        (("--conformance-impl", "telepathy"), "telepathy"),
        (("--kafka", "4.4.0", "--conformance-machine", "perpetual"), "unknown machine 'perpetual'"),
        (("--kafka", "4.4.0", "--conformance-profile", "huge"), "unknown profile 'huge'"),
        (("--kafka", "4.4.0", "--conformance-edition", "2025.9"), "unknown edition '2025.9'"),
        (("--require", "moon"), "unknown tier 'moon'; choose from jvm, broker"),
    ],
)
def test_an_invalid_option_is_one_line(theirs, arguments, said):
    done = theirs(*arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr.str()
    assert "Traceback" not in done.stderr.str()


@pytest.mark.thorough
def test_without_the_option_nothing_is_loaded(theirs, pytester):
    """Without our options nothing of ours is loaded, their markers are theirs, and their coverage is whole."""
    pytester.makepyfile(mine="def one():\n    return 1\n")
    pytester.makepyfile(
        test_mine="""
        import sys
        import pytest
        from mine import one

        @pytest.mark.spark
        def test_one():
            assert one() == 1

        def test_nothing_is_loaded():
            ours = {"conformance.runs.runner", "conformance.clauses", "kidx", "numpy", "jpype", "rich", "typer"}
            assert not ours & sys.modules.keys()
        """
    )
    done = theirs("--cov=mine", "--cov-report=term", where="subprocess")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["mine.py * 100%"])
