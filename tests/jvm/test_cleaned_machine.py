"""The machine of compacted logs against Kafka's own cleaners, and the traces that show the clauses about them."""

from __future__ import annotations

import pytest
from machine_runs import no_divergence, run_machine
from thorough_params import thorough_param

from conformance.implementations.jvm.log import JvmLog
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
