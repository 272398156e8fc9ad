"""The log machine against Kafka's own logs, the traces that it has left, and what it finds unaided."""

from __future__ import annotations

import re

import pytest
from log_oracles import OracleLockstep
from log_participants import CheckedAgainst, Follower
from machine_runs import run_machine
from thorough_params import thorough_except, thorough_param

from conformance.implementations.jvm.log import JvmLog
from conformance.kafka.releases import RELEASES
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.log import LogLockstep
from conformance.machines.log import LogMachine
from conformance.operations import Operation
from conformance.runs.replay import load_regression_traces
from conformance.runs.shrinking import shrink

pytestmark = pytest.mark.jvm

TRACES = load_regression_traces("log")
ERAS = ("2.4.1", "2.8.2", "3.6.2", "3.9.2", "4.0.0", "4.4.0")
"""One release of each era: Scala's one class and its several, Java's indexes, its segments, A1 in 4.x, and C3."""
REACHED = {"LO-1", "LO-6", "LG-2", "LG-31c", "LG-32", "LG-35", "LG-39", "LG-43"}
some_traces = pytest.mark.parametrize("trace", thorough_except(TRACES[::3], TRACES), ids=lambda trace: trace.id)
some_or_all = pytest.mark.parametrize("releases", [ERAS, thorough_param(RELEASES)], ids=["eras", "all"])

SETTINGS = {"segment.bytes": 300, "segment.index.bytes": 120, "index.interval.bytes": 0, "retention.ms": -1}


def search(lockstep, *, examples, steps=20, number=1):
    """Run the machine; return the first divergence, or None."""
    try:
        run_machine(LogMachine, lockstep, examples, seed=number, steps=steps)
    except DivergenceError as error:
        return error
    return None


def replay(lockstep, operations):
    """Execute the operations, except those on a closed log; return the first divergence, or None."""
    lockstep.begin()
    opened = False
    try:
        for operation in operations:
            if opened or operation.name in ("open_log", "damage_log_file"):
                observation = lockstep.perform(operation)
                if operation.name != "damage_log_file":
                    opened = observation.state is not None
        lockstep.flush()
    except DivergenceError as error:
        return error
    finally:
        lockstep.end()
    return None


def shortened(lockstep, error):
    """Return the same divergence in the shortest trace."""

    def still(operations):
        other = replay(lockstep, operations)
        return other if other is not None and what(other.divergence) == what(error.divergence) else None

    def what(divergence):
        return divergence.participant, divergence.against, divergence.aspects

    return shrink(error.operations, still, needed=lambda found: found.operations).result


@some_or_all
def test_every_release_equals_the_reference(releases, scratch):
    """Outcome, state and every file of each release, over the life of one log."""
    lockstep = LogLockstep([JvmLog(release) for release in releases], scratch)
    records = [[0, 1000], [1, 3000], [2, 2000]]
    targets = [-1, -2, -3, -4, -5, -6, -7, 999, 1000, 1001, 2500, 3000, 3001]
    operations = [
        Operation("open_log", (SETTINGS, 0, 0, True, 10_000)),
        *(Operation("append_as_leader", ([{"records": records}], epoch)) for epoch in range(5)),
        Operation("append_as_follower", ([{"base": base, "epoch": 5, "records": records} for base in (15, 20)], 5)),
        Operation("list_offsets", (targets,)),
        Operation("update_high_watermark", (20,)),
        Operation("delete_records", (7,)),
        Operation("apply_retention"),
        Operation("list_offsets", (targets,)),
        Operation("crash_log"),
        Operation("open_log", (SETTINGS, 7, 0, False, 20_000)),
        Operation("truncate_log", (16,)),
        Operation("list_offsets", (targets,)),
        Operation("close_log", (True,)),
        Operation("open_log", (SETTINGS, 7, 16, True, 30_000)),
        Operation("truncate_fully", (40,)),
        Operation("roll_log"),
    ]
    assert replay(lockstep, operations) is None
    assert len({subject.implementation.class_name for group in lockstep.groups for subject in group.subjects}) == 3


@pytest.mark.thorough
def test_the_machine_is_clean_on_a_release_of_each_era(scratch):
    lockstep = LogLockstep([JvmLog(release) for release in ERAS], scratch)
    for number in range(4, 12):  # a seed of fourteen misses a clause
        assert search(lockstep, examples=50, steps=15, number=number) is None, lockstep.failure
        missed = REACHED - set(lockstep.statistics.exercised("4.4.0"))
        if not missed:
            break
    assert lockstep.statistics.steps > 100
    assert not missed


@pytest.mark.thorough
@some_traces
def test_kafka_and_the_reference_agree_on_every_trace(trace, scratch):
    """Whatever a trace shows, it is what the release itself does."""
    lockstep = LogLockstep([JvmLog(trace.release)], scratch)
    error = replay(lockstep, trace.operations)
    assert error is None, error.divergence


@some_traces
def test_every_trace_still_shows_its_difference(trace, scratch):
    if trace.failure is None or trace.failure["participant"].startswith("subject:"):
        return  # agreement, which the test above shows; a subject's traces are replayed where it can be built
    participant = re.fullmatch(r"(?:jvm|kidx) ([\d.]+)", trace.failure["participant"])
    assert participant is not None
    if "mended" in trace.provenance:
        return  # kidx once differed from its release, with which the test above compares it
    if trace.failure["against"] == "refusal":
        return  # the step's outcome is what the test above compares
    if trace.failure["against"] == "oracle":
        lockstep = OracleLockstep([], scratch, releases=[trace.release])
    elif participant[1] == trace.release:
        lockstep = LogLockstep([Follower(JvmLog(participant[1]))], scratch)
    else:
        lockstep = LogLockstep([CheckedAgainst(JvmLog(participant[1]), trace.release)], scratch)
    error = replay(lockstep, trace.operations)
    assert error is not None
    assert list(error.divergence.aspects) == trace.failure["aspects"]


@some_or_all
@pytest.mark.parametrize(("clean", "last_stable_offset"), [(True, 1), (False, 0)])
def test_a_false_clean_mark_forgets_open_transactions(clean, last_stable_offset, releases, scratch):
    """LG-30, of every release: without a snapshot, only who recovers reads the producers from the log."""
    batch = {"base": 0, "epoch": 0, "records": [[0, 1000]], "transactional": True, "producer": [1, 0, 0]}
    for release in releases:
        log = JvmLog(release)
        directory = scratch / release
        directory.mkdir()
        log.begin(directory)
        log.perform(Operation("open_log", (SETTINGS, 0, 0, True, 10_000)))
        log.perform(Operation("append_as_follower", ([batch], 0)))
        log.perform(Operation("crash_log"))
        log.perform(Operation("open_log", (SETTINGS, 0, 0, clean, 10_000)))
        state = log.perform(Operation("update_high_watermark", (1,))).state
        log.end()
        assert (state.high_watermark, state.last_stable_offset) == (1, last_stable_offset), release


@pytest.mark.thorough
def test_the_change_of_kafka_806_is_found_unaided(scratch):
    """The machine has no hint: 3.9.1 is checked against 3.9.0."""
    lockstep = LogLockstep(
        [CheckedAgainst(JvmLog("3.9.1"), "3.9.0")],
        scratch,
        on_divergence=lambda difference: difference.aspects != ("bytes",),
    )
    found = search(lockstep, examples=100)
    assert found is not None
    found = shortened(lockstep, found)
    assert len(found.operations) <= 4
    assert ".index" in str(found.divergence.expected)


@pytest.mark.thorough
def test_the_close_of_4_4_0_is_found_unaided(scratch):
    lockstep = LogLockstep(
        [CheckedAgainst(JvmLog("4.4.0"), "4.3.1")],
        scratch,
        on_divergence=lambda difference: difference.aspects != ("bytes",),
    )
    found = search(lockstep, examples=100)
    assert found is not None
    found = shortened(lockstep, found)
    assert [operation.name for operation in found.operations] == ["open_log", "close_log"]


def test_kafka_16310_is_found_unaided(scratch):
    lockstep = OracleLockstep([], scratch, releases=["3.6.2"], tolerates=lambda wrong: wrong.why != "wrong-offset")
    found = search(lockstep, examples=150)
    assert found is not None
    assert found.divergence.clauses.lookup == "max"
