"""C tests of the findings in librdkafka's mock cluster fail on the locked version, and pass with the proposed fixes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict

import pytest
from foreign_findings import FOREIGN, assert_each_fails

from conformance.implementations.subject.build import build
from conformance.kafka.jar_fetch import cache_directory
from conformance.subjects import load_subject

pytestmark = [
    pytest.mark.broker,
    pytest.mark.in_turn(5, of="foreign implementations"),
    pytest.mark.thorough,  # the sources of librdkafka take 25 s of processor time, once
    pytest.mark.skipif(
        sys.platform != "linux" or None in map(shutil.which, ("cc", "make", "npm", "patch")),
        reason="requires Linux, a C compiler, make, patch and npm",
    ),
]
LIBRDKAFKA = load_subject("librdkafka")

MESSAGES = {
    "do_test_list_offsets_leader_epoch": (
        r"empty log, earliest offset: expected leader epoch 0 \(KIP-320\), got -1",
        r"empty log, latest offset: expected leader epoch 0 \(KIP-320\), got -1",
        r"^latest offset: expected leader epoch 0 \(KIP-320\), got -1",
    ),
    "do_test_list_offsets_duplicate_partition": (
        "named twice, result 0: expected INVALID_REQUEST, got NO_ERROR",
        "named twice, result 1: expected INVALID_REQUEST, got NO_ERROR",
    ),
    "do_test_produce_wrong_checksum": (
        "batch with a wrong checksum: expected INVALID_MSG, got NO_ERROR",
        "one intact batch and one with a wrong checksum: expected high watermark 1, got 2",
    ),
}
"""Messages of each test on the locked version: the expected result and its source, and the actual result."""


def make(work, *words):
    command = ("make", "-s", "-C", FOREIGN / "c", f"BUILD={work}", f"CACHE={cache_directory() / 'findings'}", *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def failures(work, *words):
    """Build the tests and run them. Return the messages of each test; empty if it passed."""
    done = make(work, *words)
    results = dict(re.findall(r"^\[ (do_test_\w+): (PASS|FAIL) \]$", done.stderr, re.MULTILINE))
    found = defaultdict(list)
    for name, message in re.findall(r"^mock_cluster\.c:\d+: (\w+): (.+)$", done.stderr, re.MULTILINE):
        found[name].append(message)
    assert results, done.stdout + done.stderr
    assert found.keys() == {name for name, result in results.items() if result == "FAIL"}, done.stderr
    assert (done.returncode == 0) == (not found), done.stderr
    return {name: found[name] for name in results}


def test_each_fails_on_the_locked_version(tmp_path):
    (library,) = (build(LIBRDKAFKA) / "lib" / "confluent_kafka.libs").glob("librdkafka-*.so.1")
    found = failures(tmp_path, "check", f"LIBRARY={library}")
    assert_each_fails(found, MESSAGES, f"confluent-kafka {LIBRDKAFKA.version}")


def test_each_fails_on_the_version_of_the_sources(tmp_path):
    """The fixes, not another version, make the tests pass."""
    assert_each_fails(failures(tmp_path, "check"), MESSAGES, "the sources of librdkafka")


def test_each_passes_with_the_proposed_fixes(tmp_path):
    assert failures(tmp_path, "check-fixed") == {name: [] for name in MESSAGES}


def test_the_file_compiles_in_librdkafkas_tests(tmp_path):
    done = make(tmp_path, "check-compiles")
    assert done.returncode == 0, done.stderr
