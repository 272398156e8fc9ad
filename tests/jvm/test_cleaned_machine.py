"""The machine of compacted logs against Kafka's own cleaners, and the traces that show the clauses about them."""

from __future__ import annotations

import pytest
from machine_runs import no_divergence, run_machine
from thorough_params import thorough_param

from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.releases import RELEASES
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.log import LogLockstep
from conformance.machines.cleaned import CleanedMachine
from conformance.operations import Operation
from conformance.runs.replay import load_regression_traces

pytestmark = pytest.mark.jvm

TRACES = load_regression_traces("cleaned")
ERAS = ("2.4.0", "2.8.2", "3.0.2", "3.9.1", "3.9.2", "4.3.1", "4.4.0")
"""One release of each set of rules of a cleaner, except 3.1 to 3.9.0, which only index differently."""
SETTINGS = {
    "segment.bytes": 400,
    "segment.index.bytes": 120,
    "index.interval.bytes": 0,
    "cleanup.policy": "compact",
    "delete.retention.ms": 1000,
}


def perform(lockstep, operations):
    """Execute operations in one example; return the first divergence, or None."""
    lockstep.begin()
    try:
        for operation in operations:
            lockstep.perform(operation)
        lockstep.flush()
    except DivergenceError as error:
        return error
    finally:
        lockstep.end()
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("releases", [("2.4.1", "3.9.2", "4.4.0"), thorough_param(RELEASES)], ids=["three", "all"])
def test_every_release_cleans_as_the_reference_does(releases, scratch):
    """Duplicates, tombstones, two rounds, a reopening, and what is answered after each."""
    lockstep = LogLockstep([JvmLog(release) for release in releases], scratch)
    records = [[[0, 1000 + i, 5, 1 + i % 3], [1, 3000 - i, i % 4 - 1, 1 + i * 7 % 4]] for i in range(12)]
    asked = Operation("list_offsets", ([-2, -1, 999, 1000, 1005, 2995],))
    operations = [
        Operation("open_log", (SETTINGS, 0, 0, True, 10_000)),
        *(Operation("append_as_leader", ([{"records": each}], 0)) for each in records),
        Operation("update_high_watermark", (24,)),
        Operation("clean_log", (-1, 200, 20, 1000)),
        asked,
        Operation("set_clock", (20_000,)),
        Operation("roll_log"),
        Operation("clean_log", (16, 200, 20, 1000)),
        asked,
        Operation("close_log", (True,)),
        Operation("open_log", (SETTINGS, 0, 0, True, 30_000)),
        asked,
    ]
    error = perform(lockstep, operations)
    assert error is None, error.divergence
    assert all(group.observation.outcome.value is not None for group in lockstep.groups)


@pytest.mark.thorough
def test_kafka_and_the_reference_agree_on_every_trace(scratch):
    lockstep = LogLockstep([JvmLog(release) for release in ("2.4.0", "2.8.2", "3.9.0", "4.3.1", "4.4.0")], scratch)
    for trace in TRACES:
        error = perform(lockstep, trace.operations)
        assert error is None, (trace.id, error.divergence)


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["chunk", "deletion"])
def test_files_of_a_killed_cleaner_are_resolved_on_opening(place, scratch):
    """The cleaner is killed at every possible point, and after the last one, where the round is done."""
    lockstep = LogLockstep([JvmLog(release) for release in ("2.8.2", "3.0.2", "4.4.0")], scratch)
    written = [{"base": base, "epoch": 0, "records": [[0, 1000, 4, 1 + base % 2]]} for base in range(4)]
    before = [Operation("open_log", (SETTINGS, 0, 0, True, 10_000))]
    for batch in written:
        before += [Operation("append_as_follower", ([batch], 0)), Operation("roll_log")]
    before.append(Operation("update_high_watermark", (4,)))
    for number in range(1, 14 if place == "chunk" else 6):
        killed = Operation("crash_cleaning", (-1, 4096, 50, 1000, place, number))
        opened = Operation("open_log", (SETTINGS, 0, 0, False, 10_000))
        error = perform(lockstep, [*before, killed, opened, Operation("list_offsets", ([-2, -1, 1000],))])
        assert error is None, error.divergence


@pytest.mark.parametrize("releases", [("2.8.2", "4.4.0"), thorough_param(ERAS)], ids=["two", "eras"])
def test_the_machine_is_clean(releases, scratch):
    lockstep = LogLockstep([JvmLog(release) for release in releases], scratch)
    examples = 10 if len(releases) == 2 else 60
    with no_divergence():
        run_machine(CleanedMachine, lockstep, examples, seed=4)
    assert lockstep.statistics.steps > 100
    assert sum(clause.startswith("CL-") for clause in lockstep.statistics.exercised("4.4.0")) >= 5


OVERFLOWING = 2**31 + 5
"""Offset that needs more than 31 bits relative to a segment with base offset 0."""


def overflowing_segment(scratch):
    """Return the operation that moves the second of two equal batches of a closed log to ``OVERFLOWING``."""
    path = next(scratch.rglob(f"{0:020}.log"))
    content = path.read_bytes()
    half = len(content) // 2
    moved = content[:half] + OVERFLOWING.to_bytes(8, "big") + content[half + 8 :]
    return Operation("damage_log_file", (path.name, "write_file", [moved.hex()]))


@pytest.mark.parametrize(
    "release",
    [each if each == "4.4.0" else thorough_param(each, marks_too=pytest.mark.in_turn(9)) for each in RELEASES],
)
def test_a_round_splits_a_segment_whose_offsets_do_not_fit(release, scratch):
    """CL-23, and KAFKA-20036 changes it after 4.4.0: this round ends, and the next one cleans the two pieces."""
    lockstep = LogLockstep([JvmLog(release)], scratch)
    settings = SETTINGS | {"index.interval.bytes": 4096}
    first = [
        Operation("open_log", (settings, 0, 0, True, 10_000)),
        *(Operation("append_as_leader", ([{"records": [[0, 1000 + each, 4, 1]]}], 0)) for each in range(2)),
        Operation("close_log", (True,)),
    ]
    cleaned = Operation("clean_log", (-1, 200, 20, 1000))
    opened = Operation("open_log", (settings, 0, 2, True, 10_000))
    rolled = (Operation("roll_log"), Operation("update_high_watermark", (OVERFLOWING + 1,)))
    with lockstep.example(), no_divergence():
        for operation in first:
            lockstep.perform(operation)
        lockstep.flush()
        lockstep.perform(overflowing_segment(scratch))
        *_, ended, done = [lockstep.perform(each) for each in (opened, *rolled, cleaned, cleaned)]
        lockstep.flush()
    assert ended.outcome.error == "cleaning_aborted"
    assert [base for base, _ in ended.state.segments] == [0, OVERFLOWING, OVERFLOWING + 1]
    assert done.outcome.error is None


@pytest.mark.parametrize(
    "release",
    [each if each == "4.4.0" else thorough_param(each, marks_too=pytest.mark.in_turn(9)) for each in RELEASES],
)
def test_segment_bytes_is_an_int(release):
    """KAFKA-18309 would make it a long."""
    jpype = start_jvm()
    loader = release_loader(release, "log")
    names = ("org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig")
    (config,) = (loader.loadClass(name) for name in names if loader.getResource(name.replace(".", "/") + ".class"))
    validate = next(
        each for each in config.getMethods() if str(each.getName()) == "validate" and len(each.getParameterTypes()) == 1
    )
    for size, refused in ((2**31 - 1, False), (2**31, True)):
        properties = jpype.JClass("java.util.Properties")()
        properties.setProperty("segment.bytes", str(size))
        try:
            validate.invoke(None, properties)
        except jpype.JException as error:
            assert refused
            assert "Not a number of type INT" in str(error.getCause().getMessage())
        else:
            assert not refused
