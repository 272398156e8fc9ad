"""Findings: their JUnit tests fail on the affected releases, and pass on the others and with the proposed fix."""

from __future__ import annotations

import subprocess

import pytest
from kafka_diffs import edited
from kafka_findings import (
    ADDED,
    findings,
    patch,
    results,
    results_of_added,
    results_of_kafkas_tests,
    results_with_edits,
)
from thorough_params import thorough_param

from conformance.kafka.releases import RELEASES

pytestmark = pytest.mark.jvm

FIXED = sorted({each.fixed for each in findings() if each.fixed})
NEWEST = "4.4.0"
OTHERS = [thorough_param(release, marks_too=pytest.mark.in_turn(3)) for release in RELEASES if release != NEWEST]
FAIL_WITH_EDITS = {
    "LogLoaderTest.testProducerSnapshotsRecoveryAfterUncleanShutdown",  # 11: lists the segments that a start reads
    "UnifiedLogTest.testHighWatermarkMaintenance",  # 8: expects a high watermark inside a batch to be its base offset
}
KAFKAS_TESTS = (
    "org.apache.kafka.storage.internals.log.LogSegmentTest",
    "org.apache.kafka.storage.internals.log.RemoteIndexCacheTest",
    "org.apache.kafka.storage.internals.log.LogValidatorTest",
    "org.apache.kafka.storage.internals.log.UnifiedLogTest",
    "org.apache.kafka.server.log.remote.storage.RemoteLogManagerTest#testFindOffsetByTimestamp",
    "org.apache.kafka.server.log.remote.storage.RemoteLogManagerTest#testFindOffsetByTimestampWithInvalidEpochSegments",
    "org.apache.kafka.server.log.remote.storage.RemoteLogManagerTest#testFindOffsetByTimestampWithSegmentNotReady",
    "org.apache.kafka.server.log.remote.storage.RemoteLogOffsetReaderTest",
    "org.apache.kafka.common.record.internal.DefaultRecordBatchTest",
    "org.apache.kafka.common.record.internal.DefaultRecordTest",
    "kafka.log.LogLoaderTest",
)


@pytest.mark.parametrize("release", [*OTHERS, NEWEST])
def test_findings_fail_where_they_are_declared(release, tmp_path):
    """A test that fails has an assertion to fail: an error in the test itself is no finding."""
    said = results(release, tmp_path)
    for finding in findings():
        if release == NEWEST and finding.fails_on(release):
            assert all(part.strip() in said[finding.tests[0]] for part in finding.says.split("…")), finding.name
        for test in finding.tests if finding.fails_on(release) else ():
            assert said[test].startswith("org.opentest4j.AssertionFailedError"), (test, said[test])
        for test in finding.tests if finding.passes_on(release) else ():
            assert not said[test], test


@pytest.mark.thorough
@pytest.mark.parametrize("release", FIXED)
def test_findings_pass_with_their_fixes(release, tmp_path):
    said = results(release, tmp_path, fixed=True)
    tests = [test for finding in findings() if finding.fixed == release for test in finding.tests]
    assert {test: said[test] for test in tests} == dict.fromkeys(tests, "")


@pytest.mark.thorough
def test_findings_pass_with_the_edited_source(tmp_path):
    said = results_with_edits(tmp_path)
    tests = [test for finding in findings() for test in finding.tests]
    assert {test: said[test] for test in tests} == dict.fromkeys(tests, "")


@pytest.mark.thorough
@pytest.mark.parametrize("edited", [False, True])
def test_tests_on_kafkas_own_helpers_fail_until_the_source_is_edited(edited, tmp_path):
    said = results_of_added(tmp_path, edited=edited)
    tests = {test: edited or test in finding.kept for finding in findings() for test in finding.added}
    assert said.keys() == tests.keys()
    for test, text in said.items():
        assert not text if tests[test] else text.startswith("org.opentest4j.AssertionFailedError"), (test, text)


@pytest.mark.thorough
@pytest.mark.in_turn(3)
def test_no_test_of_kafka_fails_because_of_the_edits(tmp_path):
    """Except two, whose pages say why."""
    said = results_of_kafkas_tests(KAFKAS_TESTS, tmp_path, edited=True)
    assert {test.partition(".")[0] for test in said} == {
        name.rpartition(".")[2].partition("#")[0] for name in KAFKAS_TESTS
    }
    assert {test for test, text in said.items() if text} == FAIL_WITH_EDITS


def test_git_applies_the_diffs(tmp_path):
    """Each diff alone, and all together, give the edited source, and the tests with Kafka's licence."""
    chosen = findings()
    assert all(finding.edits for finding in chosen)
    for number, some in enumerate([*([each] for each in chosen), chosen]):
        tree, edits = tmp_path / str(number), [edit for each in some for edit in each.edits]
        for file, (before, _) in edited(edits).items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(before, "utf-8")
        subprocess.run(["git", "apply", "-"], cwd=tree, input=patch(some), text=True, check=True)
        for file, (_, after) in edited(edits).items():
            assert (tree / file).read_text("utf-8") == after
        for path in (path for each in some for path in each.added_files):
            text = (tree / path.relative_to(ADDED)).read_text("utf-8")
            assert text.startswith("/*\n * Licensed to the Apache Software Foundation")
            assert text.endswith(path.read_text("utf-8"))
