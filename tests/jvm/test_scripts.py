"""``replay --export``: the script runs, asserts, and fails where an answer is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kafka_findings import run_tests
from thorough_params import thorough_param

from conformance.implementations.jvm.driver import compile_java
from conformance.kafka.jar_fetch import class_path, tool_jar
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.replay import load_regression_traces
from conformance.runs.reproducers import write_reproducer

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


@pytest.mark.thorough
def test_a_python_script_stands_alone(tmp_path):
    """It passes with Kafka's own classes, and fails at the step where an implementation is wrong."""
    trace = EVERYTHING[0]
    script = tmp_path / "ticket.py"
    write_reproducer(script, trace, "4.4.0", "jvm")
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


@pytest.mark.thorough
def test_a_script_of_a_segment_or_log_replays_its_trace(tmp_path):
    trace = load_regression_traces("segment")[0]
    write_reproducer(tmp_path / "ticket.py", trace, trace.release, "jvm")
    done = subprocess.run([sys.executable, tmp_path / "ticket.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "FIXED"), done.stderr


def run_by_junit(directory, release):
    """Compile the tests of a directory, run them there, and return what each said: nothing if it passed."""
    jars = [*class_path(release, "index"), tool_jar("junit")]
    compile_java(directory.glob("*.java"), jars, directory / "classes")
    return run_tests([directory / "classes", *jars], directory / "classes", directory)


HOSTILE = (
    'a" + Runtime.getRuntime().exec("touch pwned") + "b',
    'a\\u0022 + Runtime.getRuntime().exec("touch pwned") + \\u0022b',
    'a\\\\u0022 + Runtime.getRuntime().exec("touch pwned") + \\\\u0022b',
    '\\u000a Runtime.getRuntime().exec("touch pwned"); ',
    'a\nRuntime.getRuntime().exec("touch pwned"); \r\n\t\x010 é \u2028 😀',
    '\\u002a\\u002f } static { Runtime.getRuntime().exec("touch pwned"); }',
    '"\\',
    "🦊" * 63,
)
"""Names of files that would be code if they were not escaped, in a literal or in a comment."""


@pytest.mark.thorough
def test_hostile_names_are_names_of_files_in_java(tmp_path):
    """The compiled program opens and renames exactly these files; nothing of them is executed."""
    for number, hostile in enumerate(HOSTILE):
        steps = (
            Operation("open", ("offset", hostile, 0, 64, True)),
            Operation("append", (7, 1)),
            Operation("close"),
            Operation("write_file", ("00" * 6 + "07" + "00" * 30_000,)),
            Operation("open", ("offset", "0.index", 0, 64, True)),
            Operation("rename", (HOSTILE[number - 1],)),
            Operation("delete"),
            Operation("remove_file"),
        )
        one = Trace("offset", "4.4.0", steps, title=f"{hostile} */ class Evil {{}} /*")
        write_reproducer(tmp_path / f"Trace{number}Test.java", one, "4.4.0", "jvm")
    said = run_by_junit(tmp_path, "4.4.0")
    assert said == {f"Trace{number}Test.trace": "" for number in range(len(HOSTILE))}
    assert not (tmp_path / "pwned").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("release", [thorough_param("3.4.1"), thorough_param("3.9.2"), "4.4.0"])
def test_java_tests_are_run_by_junit(tmp_path, release):
    """Kafka's own classes pass them, with all operations; one whose expectation is wrong fails."""
    traces = [
        *EVERYTHING,
        *(trace for kind in ("offset", "time", "transaction") for trace in load_regression_traces(kind)[:3]),
    ]
    names = [f"Trace{number}Test" for number in range(len(traces))]
    for name, trace in zip(names, traces, strict=True):
        write_reproducer(tmp_path / f"{name}.java", trace, release, "jvm")
    text = (tmp_path / "Trace0Test.java").read_text("utf-8")
    wrong = text.replace("Trace0Test", "WrongTest").replace("OffsetPosition(8L, 100)", "OffsetPosition(8L, 101)")
    assert wrong.count("101)") > 0
    (tmp_path / "WrongTest.java").write_text(wrong, "utf-8")
    said = run_by_junit(tmp_path, release)
    assert "OffsetPosition" in said.pop("WrongTest.trace")
    assert said == {f"{name}.trace": "" for name in names}


@pytest.mark.thorough
def test_a_java_test_asserts_at_the_level_of_its_trace(tmp_path):
    """Kafka 4.3.1 trims a file that is closed, which 4.4.0 does not (AI-42b); a lost entry fails at either level."""
    steps = Operation("open", ("offset", "0.index", 0, 64, True)), Operation("append", (7, 1)), Operation("close")
    for name, level in (("MustTest", "must"), ("ObservedTest", "observed")):
        trace = Trace("offset", "4.4.0", steps, provenance={"level": level})
        write_reproducer(tmp_path / f"{name}.java", trace, "4.4.0", "jvm")
    text = (tmp_path / "MustTest.java").read_text("utf-8")
    lost = text.replace("MustTest", "LostTest").replace("append(7L, 1)", "append(6L, 1)")
    (tmp_path / "LostTest.java").write_text(lost, "utf-8")
    said = run_by_junit(tmp_path, "4.3.1")
    assert {name: bool(text) for name, text in said.items()} == {
        "MustTest.trace": False,
        "ObservedTest.trace": True,
        "LostTest.trace": True,
    }
