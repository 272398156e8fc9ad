"""Go tests of the findings in kfake fail on the locked version, each with its messages, and pass with the fixes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from foreign_findings import FOREIGN, assert_each_fails, fixed_copy

from conformance.subjects import load_subject

# Building kfake from nothing takes Go longer than the tests take.
pytestmark = [pytest.mark.go, pytest.mark.thorough, pytest.mark.in_turn(5, of="foreign implementations", build="kfake")]
KFAKE = load_subject("kfake")
MODULE = "github.com/twmb/franz-go/pkg/kfake"
# With the flags of the subject's own build, Go finds the packages that it has compiled.
FLAGS = [word for word in KFAKE.build if word.startswith("-gcflags")]

MESSAGES = {
    "TestFetchMaxBytesListsAbortedTransactions": (
        r"got aborted transactions \[\], want \[\{producer \d+, first offset 0\}\] \(KIP-98: ",
    ),
    "TestLogAppendTimeTopic": (
        r"got timestamp type 0, want 1 \(KIP-32: ",
        r"got timestamp 0, want the time of the append, at least \d+ \(KIP-32: ",
    ),
    "TestDeleteRecordsBeforeLogStart": (
        r"got error OFFSET_OUT_OF_RANGE: .*, want no error, low watermark 1 \(KIP-107: ",
    ),
    "TestLastStableOffsetAfterDeleteRecords": (r"got error <nil>, offset 1, want no error, offset 3 \(KIP-98: ",),
}
"""Messages of each test on the locked version: the actual result, the expected result and its source."""


def go(work, *words):
    environment = {**os.environ, **KFAKE.environment}
    return subprocess.run(["go", *words], cwd=work, env=environment, capture_output=True, text=True, check=False)


def failures(work):
    """Run the tests of a module. Return the messages of each; empty if it passed."""
    done = go(work, "test", "-json", "-count=1", "-vet=off", *FLAGS, "./...")
    results, outputs = {}, defaultdict(str)
    for event in map(json.loads, done.stdout.splitlines()):
        if (name := event.get("Test")) is None:
            continue
        if event["Action"] == "output":
            outputs[name] += event["Output"]
        elif event["Action"] in {"pass", "fail", "skip"}:
            results[name] = event["Action"]
    assert results, f"no test ran: {done.stdout}{done.stderr}"
    found = {name: re.findall(r"_test\.go:\d+: (.+)", outputs[name]) for name in results}
    for name, result in results.items():
        assert (result == "fail") == bool(found[name]), (result, outputs[name])
    return found


@pytest.fixture
def module(tmp_path):
    return Path(shutil.copytree(FOREIGN / "go", tmp_path / "go"))


def test_each_fails_on_the_locked_version(module):
    assert_each_fails(failures(module), MESSAGES, f"kfake {KFAKE.version}")


def test_each_passes_with_the_proposed_fixes(module, tmp_path):
    """The tests can pass: what they expect needs no other change of kfake."""
    located = go(module, "list", "-m", "-f", "{{.Dir}}", MODULE)
    assert located.returncode == 0, located.stderr
    fixed = fixed_copy(Path(located.stdout.strip()), module / "kfake.patch", tmp_path / "kfake", "*_test.go")
    edited = go(module, "mod", "edit", "-replace", f"{MODULE}={fixed}")
    assert edited.returncode == 0, edited.stderr
    assert failures(module) == {name: [] for name in MESSAGES}
