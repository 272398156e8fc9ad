"""``replay --script``: what is written runs, asserts, and fails where somebody is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.kafka.fetch import class_path, tool_jar
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.regression_traces import kept_traces
from conformance.runs.script import write_script
from kidx.java import find_java

pytestmark = pytest.mark.jvm

EVERYTHING = (
    Trace(
        "offset",
        "4.4.0",
        (
            Operation("open", ("offset", "00.index", 5, 64, True)),
            Operation("bulk_append", (6, 0, 2, 100, 6)),
            Operation("append", (6, 1)),
            Operation("lookup", (9,)),
            Operation("entry", (1,)),
            Operation("entry", (70,)),
            Operation("fetch_upper_bound", (6, 0, 150)),
            Operation("fetch_upper_bound", (16, 500, 1 << 30)),
            Operation("truncate_to", (12,)),
            Operation("resize", (67,)),
            Operation("rename", ("01.index",)),
            Operation("crash"),
            Operation("flip_bit", (3, 0)),
            Operation("open", ("offset", "01.index", 5, 64, True)),
            Operation("sanity_check"),
            Operation("delete"),
        ),
        title='every */ operation of "an" offset index',
    ),
    Trace(
        "time",
        "4.4.0",
        (
            Operation("open", ("time", "00.timeindex", 0, 60, True)),
            Operation("maybe_append", (-5, 1, False)),
            Operation("bulk_maybe_append", (10, 2, 10, 1, 3)),
            Operation("maybe_append", (5, 9, True)),
            Operation("maybe_append", (1 << 40, 1, True)),
            Operation("lookup", (25,)),
            Operation("entry", (0,)),
            Operation("trim"),
            Operation("sanity_check"),
        ),
    ),
    Trace(
        "transaction",
        "4.4.0",
        (
            Operation("open", ("transaction", "00.txnindex", 0, 0, True)),
            Operation("append_aborted", (7, 0, 9, 10)),
            Operation("append_aborted", (8, 3, 14, 15)),
            Operation("append_aborted", (8, 3, 4, 15)),
            Operation("all_aborted"),
            Operation("collect_aborted", (0, 12)),
            Operation("collect_aborted", (0, 100)),
            Operation("truncate_to", (12,)),
            Operation("close"),
        ),
    ),
)


def test_a_python_script_stands_alone(tmp_path):
    """It passes with Kafka's own classes, and fails at the step where an implementation is wrong."""
    trace = EVERYTHING[0]
    script = tmp_path / "ticket.py"
    write_script(script, trace, "4.4.0", "jvm")
    (tmp_path / "wrong.py").write_text(
        "from kidx import OffsetIndex\n\nclass Wrong(OffsetIndex):\n    def lookup(self, target):\n"
        "        return super().lookup(target - 2)\n\ndef open_index(kind, *arguments):\n    return Wrong(*arguments)\n"
    )

    def run(*arguments):
        command = [sys.executable, script.name, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "FIXED"), done.stderr
    done = run("python:wrong:open_index")
    assert done.returncode == 1
    assert "AssertionError: step 4, outcome: expected (None, (8, 100)), actual (None, (6, 0))" in done.stderr


def test_a_script_of_a_segment_or_log_replays_its_trace(tmp_path):
    trace = kept_traces("segment")[0]
    write_script(tmp_path / "ticket.py", trace, trace.release, "jvm")
    done = subprocess.run([sys.executable, tmp_path / "ticket.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "FIXED"), done.stderr


@pytest.mark.parametrize("release", ["3.4.1", "3.9.2", "4.4.0"])
def test_java_tests_are_run_by_junit(tmp_path, release):
    """Kafka's own classes pass them, with all operations; one whose expectation is wrong fails."""
    traces = [*EVERYTHING, *(trace for kind in ("offset", "time", "transaction") for trace in kept_traces(kind)[:3])]
    names = [f"Trace{number}Test" for number in range(len(traces))]
    for name, trace in zip(names, traces, strict=True):
        write_script(tmp_path / f"{name}.java", trace, release, "jvm")
    text = (tmp_path / "Trace0Test.java").read_text("utf-8")
    wrong = text.replace("Trace0Test", "WrongTest").replace("OffsetPosition(8L, 100)", "OffsetPosition(8L, 101)")
    assert wrong.count("101)") > 0
    (tmp_path / "WrongTest.java").write_text(wrong, "utf-8")
    jars = os.pathsep.join(map(str, [*class_path(release, "index"), tool_jar("junit")]))
    java = Path(find_java().home) / "bin" / "java"
    compiler = [java, "-jar", tool_jar("ecj"), "-17", "-nowarn", "-cp", jars, "-d", tmp_path / "classes"]
    done = subprocess.run([*compiler, *tmp_path.glob("*.java")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    junit = [java, "-jar", tool_jar("junit"), "execute", "--scan-class-path", tmp_path / "classes"]
    done = subprocess.run(
        [*junit, "-cp", f"{tmp_path / 'classes'}{os.pathsep}{jars}", "--details=tree", "--disable-banner"],
        capture_output=True,
        text=True,
        check=False,
    )
    told = {int(count): what for count, what in re.findall(r"(\d+) tests (successful|failed)", done.stdout)}
    assert told == {len(traces): "successful", 1: "failed"}, done.stdout[-4000:]
    assert "OffsetPosition" in done.stdout
