"""``replay --export Ticket.java``: the JUnit test passes where Kafka is as its trace expects, and fails elsewhere."""

from __future__ import annotations

import struct
from random import Random

import pytest
from kafka_findings import patched_jars, run_tests
from typer.testing import CliRunner

from conformance.cli import app
from conformance.errors import ToolError
from conformance.implementations.jvm.bytecode import jars_of
from conformance.implementations.jvm.driver import compile_java
from conformance.implementations.jvm.tiered import tiered_jars
from conformance.kafka.jar_fetch import tool_jar
from conformance.operations import Operation
from conformance.operations.trace import Trace
from conformance.runs.replay import load_regression_traces
from conformance.runs.reproducers import write_reproducer
from conformance.studies.power_loss import trace as power_loss
from conformance.studies.power_loss.checking import Checker
from conformance.studies.power_loss.explorer import LogExplorer
from conformance.studies.power_loss.failures import Failure, crash_points, losses
from conformance.studies.power_loss.signatures import Finding, signature_of

pytestmark = pytest.mark.jvm

ID = "b-_UbGhWQSyTrDfNnQxAAw"
CACHE = Trace(
    "cache",
    "4.4.0",
    (
        Operation("store_index", (ID, ".index", "gives", struct.pack(">4i", 5, 61, 9, 161).hex())),
        Operation("store_index", (ID, ".timeindex", "gives", struct.pack(">qiqi", 1000, 2, 1010, 5).hex())),
        Operation("store_index", (ID, ".txnindex", "gives", struct.pack(">h4q", 0, 7, 101, 104, 105).hex())),
        Operation("open_cache", (1 << 20, 5000, 0)),
        Operation("fetch_entry", (ID, 100, True)),
        Operation("look_up_offset", (ID, 100, 107)),
        Operation("look_up_timestamp", (ID, 100, 1005, 100)),
        Operation("aborted_in", (ID, 100, 101, 200)),
        Operation("ask_held", (False, 106, 0)),
        Operation("remove_entries", ([ID],)),
        Operation("delete_removed", ()),
        Operation("fetch_entry", (ID, 100, False)),
        Operation("pass_time", (6000, True)),
        Operation("crash_cache", ()),
        Operation("damage_cached_file", (f"100_{ID}.timeindex", "pad_file", [1, 0])),
        Operation("open_cache", (1 << 20, 5000, 0)),
    ),
    title="The cache of remote index files",
)


def regression_trace(machine, name):
    return next(trace for trace in load_regression_traces(machine) if trace.id == name)


def power_failure(scratch):
    """Return the trace of a power failure after a clean shutdown of 4.3.1, whose log does not open."""
    explorer = LogExplorer("4.3.1", scratch)
    settings = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0, "preallocate": "true"}
    appends = [Operation("append_as_leader", ([{"records": [[0, 100 + n]]}], 0)) for n in range(3)]
    opened = Operation("open_log", (settings, 0, 0, True, 1000))
    history = explorer.recorder.perform([opened, *appends, Operation("close_log", (True,))])
    checker = Checker(history, explorer.opener)
    *_, last = crash_points(history)
    for loss in losses(last.disk, 64, Random(0)):  # noqa: S311
        failure = Failure(last, loss, last.restarts[0])
        for guarantee, text in checker.check(failure, lockstep=True).items():
            return power_loss.of_crash_state(Finding(signature_of(history, failure, guarantee), history, failure, text))
    raise AssertionError("no power failure was found")


def said(source, release, directory, fixed=()):
    """Compile a test against the jars of a release, and return what it said: nothing if it passed.

    Args:
        source: the test's file.
        release: the release.
        directory: an empty directory.
        fixed: numbers of the findings whose fixes are applied to the release's class files.
    """
    of_tiers = "LocalTieredStorage" in source.read_text("utf-8")
    kafkas = patched_jars(release, fixed, directory) if fixed else (tiered_jars if of_tiers else jars_of)(release)
    jars = [*kafkas, tool_jar("junit")]
    compile_java([source], jars, directory / "classes")
    results = run_tests([directory / "classes", *jars], directory / "classes", directory)
    return results[f"{source.stem}.trace"]


def is_difference(text):
    """Return True if an assertion failed; any other exception is a mistake in the test itself."""
    return text.startswith("org.opentest4j.AssertionFailedError")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("machine", "name", "release", "other"),
    [
        ("log", "97e3b596615b", "3.7.2", "3.8.1"),
        ("tiered", "616ef7613ce7", "3.9.0", "3.9.1"),
        ("tiered", "39638d39d56d", "4.4.0", "3.7.2"),
        ("segment", "21c4575f95c1", "4.0.0", "4.0.1"),
        ("cleaned", "87a83200f3cc", "4.4.0", "2.8.2"),
        ("segment", "1f6060d3ffa2", "3.6.2", "3.7.2"),
        ("log", "3ae5099343d3", "2.4.0", "2.4.1"),
        ("log", "788b3ec31c26", "3.9.2", "4.0.1"),
    ],
)
def test_releases_before_and_after_a_change(machine, name, release, other, tmp_path):
    source = tmp_path / "TicketTest.java"
    write_reproducer(source, regression_trace(machine, name), release, "jvm")
    assert not said(source, release, tmp_path / "same")
    assert is_difference(said(source, other, tmp_path / "other"))


@pytest.mark.thorough
def test_a_cache_before_and_after_a_change(tmp_path):
    """Since 4.3 an unused entry expires (RC-12)."""
    source = tmp_path / "CacheTicketTest.java"
    done = CliRunner().invoke(app, ["replay", str(CACHE.save(tmp_path)), "--export", str(source)])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "FIXED · 16 of 16 steps · " + CACHE.title)
    assert not said(source, "4.4.0", tmp_path / "same")
    assert is_difference(said(source, "4.0.2", tmp_path / "other"))


@pytest.mark.thorough
def test_a_power_failure_before_and_after_a_change(tmp_path):
    source = tmp_path / "PowerFailureTest.java"
    write_reproducer(source, power_failure(tmp_path / "power"), "4.3.1", "jvm")
    assert not said(source, "4.3.1", tmp_path / "same")
    assert is_difference(said(source, "2.4.0", tmp_path / "other"))


@pytest.mark.thorough
def test_a_fix_is_seen(tmp_path):
    """The trace of finding 4 passes on 4.4.0, and fails with the fix applied to its class files."""
    source = tmp_path / "TicketTest.java"
    write_reproducer(source, regression_trace("log", "09ea76acd9b6"), "4.4.0", "jvm")
    assert not said(source, "4.4.0", tmp_path / "same")
    assert is_difference(said(source, "4.4.0", tmp_path / "fixed", fixed=(4,)))


@pytest.mark.thorough
def test_a_long_trace_is_several_methods(tmp_path):
    """More steps than the code of one method may have."""
    appends = [Operation("append_as_leader", ([{"records": [[0, 100 + n, 50]]}], 0)) for n in range(60)]
    settings = {"segment.bytes": 1000, "segment.index.bytes": 120, "index.interval.bytes": 0}
    trace = Trace("log", "4.4.0", (Operation("open_log", (settings, 0, 0, True, 1000)), *appends))
    source = tmp_path / "LongTest.java"
    write_reproducer(source, trace, "4.4.0", "jvm")
    assert "steps4();" in source.read_text("utf-8")
    assert not said(source, "4.4.0", tmp_path / "same")


@pytest.mark.parametrize("name", ["LogDriver", "Members", "LogEnvironment", "HashMap", "Reply"])
def test_a_name_of_another_class_of_the_test_is_rejected(name, tmp_path):
    with pytest.raises(ToolError, match="the test needs another class"):
        write_reproducer(tmp_path / f"{name}.java", regression_trace("log", "97e3b596615b"), "4.4.0", "jvm")
    assert not list(tmp_path.iterdir())
