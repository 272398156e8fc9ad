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

from conformance.subjects import load_subject

# Building kfake from nothing takes Go longer than the tests take.
pytestmark = [pytest.mark.go, pytest.mark.thorough, pytest.mark.in_turn(3, of="foreign implementations")]
KFAKE = load_subject("kfake")
MODULE = "github.com/twmb/franz-go/pkg/kfake"
SOURCES = Path(__file__).parents[2] / "findings" / "foreign" / "go"
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


def results_of_tests(work):
    """Return the result and the output of each test of a module."""
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
    return results, outputs


@pytest.fixture
def module(tmp_path):
    return Path(shutil.copytree(SOURCES, tmp_path / "go"))


def test_each_fails_on_the_locked_version(module):
    results, outputs = results_of_tests(module)
    passed = [name for name, result in results.items() if result == "pass"]
    assert not passed, f"fixed in kfake {KFAKE.version}: remove {passed}, and its section of findings/foreign/kfake.md"
    assert results == dict.fromkeys(MESSAGES, "fail")
    for name, messages in MESSAGES.items():
        printed = re.findall(r"kfake_test\.go:\d+: (.+)", outputs[name])
        assert len(printed) == len(messages), outputs[name]
        for message, line in zip(messages, printed, strict=True):
            assert re.search(message, line), line


def test_each_passes_with_the_proposed_fixes(module, tmp_path):
    """The tests can pass: what they expect needs no other change of kfake."""
    mended = tmp_path / "kfake"
    located = go(module, "list", "-m", "-f", "{{.Dir}}", MODULE)
    assert located.returncode == 0, located.stderr
    mended.mkdir()
    for path in Path(located.stdout.strip()).iterdir():
        if path.is_file() and not path.name.endswith("_test.go"):
            shutil.copyfile(path, mended / path.name)  # the files of the module cache are read-only
    subprocess.run(["git", "apply", module / "kfake.patch"], cwd=mended, check=True)
    edited = go(module, "mod", "edit", "-replace", f"{MODULE}={mended}")
    assert edited.returncode == 0, edited.stderr
    results, outputs = results_of_tests(module)
    assert results == dict.fromkeys(MESSAGES, "pass"), dict(outputs)
