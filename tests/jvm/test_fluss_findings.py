"""JUnit tests of the findings in Fluss fail on the locked version, each with its message, and pass with the fixes."""

from __future__ import annotations

import subprocess
import zipfile

import pytest
from foreign_findings import FOREIGN, apply_patch, assert_each_fails
from kafka_findings import run_tests

from conformance.implementations.jvm.driver import compile_java
from conformance.implementations.subject.build import build
from conformance.kafka.jar_fetch import tool_jar
from conformance.subjects import load_subject

# Maven fetches the jars first.
pytestmark = [pytest.mark.maven, pytest.mark.thorough, pytest.mark.in_turn(5, of="foreign implementations")]
FLUSS = load_subject("fluss")
CLASS = "AbstractIndex"
MODULE = "fluss-server/src/main/java"

MESSAGES = {
    f"{CLASS}Test.{test}": (rf"\[{subject}\] *\n(?s:.*)caught\s+\"?java\.lang\.NullPointerException",)
    for test, subject in {
        "testLookupOfOffsetAfterFailedResize": "a lookup after a failed resize",
        "testAppendOfOffsetAfterFailedResize": "an append after a failed resize",
        "testLookupOfTimestampAfterFailedResize": "a lookup after a failed resize",
        "testTrimAfterDeletion": r"trimToValidSize\(\) of a deleted index",
        "testCloseAfterDeletion": r"close\(\) of a deleted index",
    }.items()
}
"""Messages of each test on the locked version."""


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    """Return the directory with the locked version's sources and AssertJ, which Fluss's own tests use."""
    target = tmp_path_factory.mktemp("fluss")
    words = (
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        f"-Dfluss={FLUSS.version}",
        f"-DoutputDirectory={target}",
    )
    done = subprocess.run(words, cwd=FOREIGN / "java", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def failures(before, fetched, work):
    """Run the tests with class files that precede Fluss's jars. Return the messages of each; empty if it passed."""
    jars = [*sorted((build(FLUSS) / "lib").glob("*.jar")), *fetched.glob("assertj-core-*.jar"), tool_jar("junit")]
    path = [before, *jars]
    classes = work / "classes"
    compile_java((FOREIGN / "java").rglob("*Test.java"), path, classes)
    return {name: [error] if error else [] for name, error in run_tests([classes, *path], classes, work).items()}


def test_each_fails_on_the_locked_version(fetched, tmp_path):
    assert_each_fails(failures(tmp_path / "none", fetched, tmp_path), MESSAGES, f"Fluss {FLUSS.version}")


def test_each_passes_with_the_proposed_fixes(fetched, tmp_path):
    """The tests can pass: what they expect needs no other change of Fluss."""
    (sources,) = fetched.glob("fluss-server-*-sources.jar")
    with zipfile.ZipFile(sources) as archive:
        changed = archive.extract(f"org/apache/fluss/server/log/{CLASS}.java", tmp_path / MODULE)
    apply_patch(FOREIGN / "java" / "fluss.patch", tmp_path)
    fixed = tmp_path / "fixed"
    compile_java([changed], (build(FLUSS) / "lib").glob("*.jar"), fixed)
    assert failures(fixed, fetched, tmp_path) == {name: [] for name in MESSAGES}
