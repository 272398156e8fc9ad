"""A step that hangs: the command reports it, saves its results, and ends."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import ENDLESS, RELEASE
from thorough_params import thorough_except, thorough_param

from conformance.operations.trace import Trace

LOOP = re.compile(r"endless\.py:[67]\b")
"""One of the two lines of the loop: Python 3.14 names the second."""
ENDLESS_PYTHON = """
from kidx import OffsetIndex

class Endless(OffsetIndex):
    def lookup(self, target):
        while target > 5000:
            pass
        return super().lookup(target)

def open_index(kind, path, base_offset, max_index_size, writable):
    with open("seen", "a") as seen:
        seen.write(f"{path}\\n")
    return Endless(path, base_offset, max_index_size, writable)
"""


@pytest.fixture
def endless_python(typed):
    (typed.work / "endless.py").write_text(ENDLESS_PYTHON)
    return "python:endless:open_index"


def told(done, report):
    """Return the output and the files of a run that the watchdog ended."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("no answer; it is at") == 1
    assert "DIVERGES: 1 divergence" in done.stdout.splitlines()[-1]
    events = [json.loads(line) for line in (report / "events.ndjson").read_text().splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["RunStarted", "RunFinished"]
    assert events[-1]["verdict"] == "diverges"
    (diverged,) = (event for event in events if event["event"] == "Diverged")
    trace = Trace.load(report.parent / diverged["trace"])
    assert len(trace.operations) == trace.failure["step"] + 1
    assert diverged["replay"] in done.stdout
    return diverged, [event for event in events if event["event"] == "Result"]


@pytest.mark.thorough
@pytest.mark.parametrize("jobs", [thorough_param(1), 2])
def test_python_that_never_returns(typed, endless_python, jobs):
    command = ("run", "-i", endless_python, "--machine", "offset", "--step-timeout", 2, "--report", "out", "-j", jobs)
    command += ("--max-shrink-time", 0)
    done = typed.apart(*command, PYTHONPATH=f"{typed.work}:{os.environ.get('PYTHONPATH', '')}")
    diverged, results = told(done, typed.work / "out")
    assert "lookup" in diverged["failure"]["actual"]
    assert LOOP.search(diverged["failure"]["actual"])
    assert [row["divergences"] for row in results] == [1]
    files = [Path(line) for line in (typed.work / "seen").read_text().splitlines()]
    assert files
    assert not any(file.parent.exists() for file in files)
    again = typed.apart(
        "replay",
        diverged["trace"],
        "-i",
        endless_python,
        "--step-timeout",
        1,
        PYTHONPATH=os.fspath(typed.work) + f":{os.environ.get('PYTHONPATH', '')}",
    )
    assert again.returncode == 1
    assert again.stdout.splitlines()[-1].startswith("FAILED")


@pytest.mark.thorough
def test_a_run_with_little_time_ends_soon(typed, endless_python):
    command = ("run", "-i", endless_python, "--machine", "offset", "--max-time", 1, "-j", 1, "--json")
    done = typed.apart(*command, PYTHONPATH=f"{typed.work}:{os.environ.get('PYTHONPATH', '')}")
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"], len(document["divergences"])) == (1, "diverges", 1)
    assert document["divergences"][0]["failure"]["expected"] == "an answer within 5 s"


@pytest.mark.jvm
@pytest.mark.thorough
def test_a_build_that_never_returns(typed, tmp_path):
    sound = build_at(tmp_path / "sound", RELEASE, "index")
    build = broken(sound, ENDLESS["search-does-not-end"].change, tmp_path / "endless")
    command = ("run", "-i", f"jvm:{sound}", "-i", f"jvm:{build}", "--machine", "time", "--machine", "offset")
    command += ("--max-examples", 20, "--step-timeout", 5, "--max-shrink-time", 0)
    done = typed.apart(*command, "--report", "out", "-j", 1)
    diverged, results = told(done, typed.work / "out")
    assert diverged["failure"]["participant"] == f"jvm:{build} {RELEASE}"
    assert "AbstractIndex.binarySearch" in diverged["failure"]["actual"]
    found = {row["implementation"]: row["divergences"] for row in results if row["machine"] == diverged["machine"]}
    assert found == {f"jvm:{sound}": 0, f"jvm:{build}": 1}
    replayed = typed.apart("replay", diverged["trace"], "-i", f"jvm:{build}", "--step-timeout", 2)
    assert replayed.returncode == 1
    assert "binarySearch" in replayed.stdout
    compared = typed.apart(
        "diff", RELEASE, f"jvm:{build}", "--machine", "offset", "--step-timeout", 2, "--max-shrink-time", 0
    )
    assert compared.returncode == 1, compared.stdout + compared.stderr
    assert "did not return" in compared.stdout
    assert "(not shrunk)" in compared.stdout
    assert f"replay {typed.state}" in compared.stdout


@pytest.mark.jvm
@pytest.mark.thorough
def test_a_build_that_never_returns_from_a_crossing_of_many_cases(typed, tmp_path):
    build = broken(
        build_at(tmp_path / "sound", RELEASE, "index"), ENDLESS["search-does-not-end"].change, tmp_path / "on"
    )
    command = ("fuzz", "-i", f"jvm:{build}", "--format", "offset", "--kafka", RELEASE, "--max-examples", 10)
    done = typed.apart(*command, "--step-timeout", 2, "--max-shrink-time", 0, "--report", "out", "--json")
    told, trace = hung(typed, done, f"jvm:{build}")
    assert "AbstractIndex.binarySearch" in told["failure"]["actual"]
    assert [operation.name for operation in trace.operations[:5]] == [
        *("open", "crash", "write_file", "open", "sanity_check")
    ]
    replayed = typed.apart("replay", told["trace"], "-i", f"jvm:{build}", "--kafka", RELEASE, "--step-timeout", 2)
    assert replayed.returncode == 1
    assert "binarySearch" in replayed.stdout


ENDLESS_IN_ALL = """
from kidx import TimeIndex, OffsetIndex, TransactionIndex

class Endless(OffsetIndex):
    def lookup(self, target):
        while self.entries > 1:
            pass
        return super().lookup(target)

def open_index(kind, path, base_offset, max_index_size, writable):
    if kind == "offset":
        return Endless(path, base_offset, max_index_size, writable)
    if kind == "time":
        return TimeIndex(path, base_offset, max_index_size, writable)
    return TransactionIndex(base_offset, path)
"""

ENDLESS_MUTANT = """
from conformance.cli import main
from conformance.implementations.mutants.choices import choose_class
from conformance.implementations.mutants.registry import defect
from kidx import OffsetIndex

@defect("OI-9")
class NeverAnswers(OffsetIndex):
    def lookup(self, target):
        while self.entries > 1:
            pass
        return super().lookup(target)

choose_class("AI-33", "offset", NeverAnswers)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def path_of_work(typed):
    return {"PYTHONPATH": f"{typed.work}:{os.environ.get('PYTHONPATH', '')}"}


def hung(typed, done, participant):
    """Return the output of an experiment that the watchdog ended, as JSON."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["verdict"] == "no answer"
    assert told["failure"]["participant"].startswith(participant)
    assert "no answer; it is at" in told["failure"]["actual"]
    trace = Trace.load(typed.work / told["trace"])
    assert len(trace.operations) == trace.failure["step"] + 1
    assert trace.operations[-1].name == "lookup"
    assert str(told["trace"]) in told["replay"]
    return told, trace


EXPERIMENTS = {
    "fuzz": ("fuzz", "--format", "offset", "--max-time", 60),
    "exhaustive": ("exhaustive", "--machine", "offset", "--length", 3),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", thorough_except(["exhaustive"], EXPERIMENTS))
def test_an_experiment_that_hangs(typed, name, path_of_work):
    (typed.work / "endless.py").write_text(ENDLESS_IN_ALL)
    implementation = "python:endless:open_index"
    command = (
        *EXPERIMENTS[name],
        "-i",
        implementation,
        "--kafka",
        "4.4.0",
        "--step-timeout",
        2,
        "--max-shrink-time",
        0,
    )
    told, _ = hung(typed, typed.apart(*command, "--report", "out", "--json", **path_of_work), implementation)
    assert told["shrinking"] == "not shrunk"
    assert LOOP.search(told["failure"]["actual"])


def run_endless_mutant(typed, path_of_work, name, *options):
    (typed.work / "power.py").write_text(ENDLESS_MUTANT)
    command = [sys.executable, "power.py", "mutate", "--mutant", name, "--seed", "0", "--step-timeout", "2"]
    command += ["--max-shrink-time", "0", "--json", "--jobs", "1", *options]
    environment = {**os.environ, **path_of_work, "XDG_STATE_HOME": str(typed.work / "state")}
    done = subprocess.run(
        command, cwd=typed.work, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    told, _ = hung(typed, done, f"mutant:{name}")
    assert f"mutant:{name}" in told["replay"]


@pytest.mark.thorough
def test_a_mutant_that_never_returns(typed, path_of_work):
    run_endless_mutant(typed, path_of_work, "never-answers", "--report", "out")
    (stream,) = (typed.work / "out").rglob("events.ndjson")
    assert "RunFinished" not in stream.read_text(), "it did not conform, it was cut off"


@pytest.mark.thorough
def test_a_choice_that_never_returns(typed, path_of_work):
    run_endless_mutant(typed, path_of_work, "offset-neveranswers", "--choices")


@pytest.mark.thorough
def test_the_steps_to_a_hang_are_shrunk(typed, endless_python, path_of_work):
    command = ("run", "-i", endless_python, "--machine", "offset", "--step-timeout", 2, "--report", "out", "-j", 1)
    unshrunk = typed.apart(*command, "--max-shrink-time", 0, **path_of_work)
    whole = Trace.load(typed.work / told(unshrunk, typed.work / "out")[0]["trace"])
    done = typed.apart(*command[:-4], "--report", "short", "-j", 1, "--max-shrink-time", 25, **path_of_work)
    diverged, _ = told(done, typed.work / "short")
    short = Trace.load(typed.work / diverged["trace"])
    assert diverged["shrinking"] == "minimal" or diverged["shrinking"].startswith("not minimal: 25 s")
    assert short.operations[-1].name == "lookup"
    assert len(short.operations) < len(whole.operations)
