"""The tiered machine against Kafka's own log and ``RemoteLogManager``, over ``LocalTieredStorage``."""

from __future__ import annotations

import pytest
from kafka_builds import build_at, patched
from machine_runs import no_divergence, observe, run_machine
from thorough_params import thorough_except, thorough_param

from conformance.clauses.machines import driven_releases
from conformance.errors import NotDrivenError
from conformance.implementations.jvm.tiered import JvmTiered, storage_of
from conformance.kafka.builds import open_build
from conformance.kafka.lock_file import published_release
from conformance.kafka.releases import RELEASES as LOCKED
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.machines.tiered import TieredLockstep, TieredMachine
from conformance.operations import Operation
from conformance.runs.replay import load_regression_traces, replay_operations
from conformance.scratch import scratch_directory
from conformance.studies.mutants.replays import MutantClasses, Subject

pytestmark = pytest.mark.jvm

RELEASES = driven_releases("tiered", LOCKED)
SETTINGS = {"segment.bytes": 150, "index.interval.bytes": 0, "local.retention.bytes": 0}
OPENED = Operation("open_tiers", (SETTINGS, 0, 0, True, 10_000))
TARGETS = Operation("list_offsets", ([-1, -2, -3, -4, -5, -6, 999, 1000, 1003, 1004, 1007, 1008],))
COPIED = (Operation("update_high_watermark", (8,)), Operation("copy_segments"), Operation("apply_retention"))


@pytest.fixture
def scratch():
    with scratch_directory() as directory:
        yield directory


def appended(time):
    return Operation("append_as_leader", ([{"records": [[0, time]]}], 0))


@pytest.mark.thorough
@pytest.mark.parametrize("releases", [("4.3.1",), thorough_param(RELEASES)], ids=["one", "all"])
def test_offsets_across_tiers(releases, scratch):
    """Six of eight records are copied, and deleted locally; the first one is deleted in both tiers."""
    lockstep = TieredLockstep([JvmTiered(release) for release in releases], scratch)
    appends = [appended(1000 + number) for number in range(8)]
    deleted = Operation("delete_records", (1,))
    *_, state, listed = observe(lockstep, OPENED, *appends, *COPIED, deleted, TARGETS)
    assert [(each.start_offset, each.end_offset) for each in state.state.remote] == [(0, 1), (2, 3), (4, 5)]
    assert (state.state.log.start_offset, state.state.local_start_offset, state.state.highest_remote_offset) == (
        1,
        6,
        5,
    )
    offsets = [None if answer is None else answer[1] for answer in listed.outcome.value]
    assert offsets == [8, 1, 7, 6, 5, 6, 1, 1, 3, 4, 7, None]


@pytest.mark.thorough
def test_tiers_of_a_build_whose_classes_each_mutant_loads_again(scratch, tmp_path):
    """The storage comes from the nearest published release; each mutant loads its classes again."""
    build = open_build(str(build_at(tmp_path / "build", "4.3.1")))
    subject = Subject("4.3.1", build)
    jars = subject.jars()
    loaders = [MutantClasses(jars, further=storage_of("4.3.1", jars)).loader({}), None]
    lockstep = TieredLockstep([JvmTiered("4.3.1", build=build, loader=loader) for loader in loaders], scratch)
    *_, state = observe(lockstep, OPENED, appended(1000), appended(1001), appended(1002), *COPIED)
    assert [(each.start_offset, each.end_offset) for each in state.state.remote] == [(0, 1)]


@pytest.mark.thorough
def test_a_build_that_does_not_fit_the_storage_is_not_driven(tmp_path):
    interface = "org/apache/kafka/server/log/remote/storage/RemoteStorageManager.class"
    at = build_at(tmp_path, "4.3.1", named=lambda name: name.replace("zstd-jni", "zstd-jni-own"))  # compiled for itself
    patched(at, "kafka-storage-api", {interface: None})
    with pytest.raises(NotDrivenError, match="does not fit LocalTieredStorage"):
        MACHINES["tiered"].subject(f"jvm:{at}", "4.3.1")


OTHERS = [thorough_param(each, marks_too=pytest.mark.in_turn(6)) for each in RELEASES if each not in {"4.3.1", "4.4.0"}]
EACH = [*OTHERS, "4.3.1", thorough_param("4.4.0")]


@pytest.mark.parametrize("release", EACH)
def test_a_new_leader_that_expires_before_it_copies_deletes_too_much(release, scratch):
    """KAFKA-20732: up to 4.3.1 it counts the local segments twice, and deletes what retention.bytes keeps."""
    lockstep = TieredLockstep([JvmTiered(release)], scratch)
    settings = {"segment.bytes": 150, "retention.bytes": 600, "retention.ms": -1}
    opened = Operation("open_tiers", (settings, 0, 0, True, 9))
    full, expired = Operation("update_high_watermark", (8,)), Operation("expire_remote")
    first = (opened, *map(appended, range(8)), full, Operation("copy_segments"), expired)
    *_, kept, _, _, _, state = observe(lockstep, *first, Operation("close_log", (True,)), opened, full, expired)
    assert (kept.state.log.start_offset, len(kept.state.remote)) == (0, 3)
    assert (state.state.log.start_offset, len(state.state.remote)) == ((0, 3) if release == "4.4.0" else (4, 1))


@pytest.mark.parametrize("release", EACH)
def test_a_timestamp_of_the_future_keeps_local_segments(release, scratch):
    """KAFKA-20609: local.retention.ms keeps the segment, and all after it, until that time is past."""
    lockstep = TieredLockstep([JvmTiered(release)], scratch)
    opened = Operation("open_tiers", ({"segment.bytes": 150, "local.retention.ms": 1000}, 0, 0, True, 10_000))
    now, later = (Operation("set_clock", (time,)) for time in (900_000, 2_000_000))
    times, retention = (1_000_000, *range(1000, 1007)), COPIED[-1]
    seen = observe(lockstep, opened, *map(appended, times), *COPIED, now, retention, later, retention)
    assert [each.state.local_start_offset for each in seen[-5::2]] == [0, 0, 6]


TRACES = load_regression_traces("tiered")
OF_LOCKED = [trace for trace in TRACES if trace.release in LOCKED]


@pytest.fixture
def own_locks(tmp_path_factory, monkeypatch):
    """Keep the locks that a test writes out of the user's configuration."""
    monkeypatch.setenv("KIDX_CONFIG", str(tmp_path_factory.getbasetemp() / "configuration"))


@pytest.mark.thorough
@pytest.mark.usefixtures("own_locks")
@pytest.mark.parametrize("trace", thorough_except(OF_LOCKED, TRACES), ids=lambda trace: trace.id)
def test_regression_traces(trace, scratch):
    """A release without a lock, such as 3.6.0, is locked first, as ``--kafka 3.6.0`` does."""
    published_release(trace.release)
    lockstep = TieredLockstep([JvmTiered(trace.release)], scratch)
    replay_operations(lockstep, trace.operations)
    assert lockstep.statistics.steps == len(trace.operations)


def perform_without_copies(lockstep):
    """Execute operations; the reference copies nothing."""
    for operation in (OPENED, *map(appended, range(1000, 1008)), *COPIED):
        if operation.name == "copy_segments":
            lockstep.groups[0].reference.implementation.tasks.candidates = lambda *_: []
        lockstep.perform(operation)
    lockstep.flush()


def test_a_difference_is_found(scratch):
    """A reference that copies nothing is found: the machine of the next test can fail."""
    lockstep = TieredLockstep([JvmTiered("4.3.1")], scratch)
    lockstep.begin()
    with pytest.raises(DivergenceError) as found:
        perform_without_copies(lockstep)
    lockstep.end()
    assert found.value.divergence.operation == Operation("copy_segments")
    assert "remote" in found.value.divergence.fields


@pytest.mark.parametrize("releases", [("4.3.1",), thorough_param(RELEASES)], ids=["one", "all"])
def test_the_machine_is_clean(releases, scratch):
    lockstep = TieredLockstep([JvmTiered(release) for release in releases], scratch)
    examples = 10 if len(releases) == 1 else 20
    with no_divergence():
        run_machine(TieredMachine, lockstep, examples, seed=4)
    assert lockstep.statistics.steps > 100
    exercised = lockstep.statistics.exercised("4.3.1")
    assert {"TL-4", "TL-7", "LO-4", "LO-19"} <= set(exercised)


@pytest.mark.parametrize(("release", "has_files"), [("3.7.2", True), thorough_param("3.9.2", False)])
def test_a_failed_copy_leaves_its_metadata(release, has_files, scratch):
    """TL-21a: releases before 4.0 leave the metadata, and up to 3.7 the files, too."""
    lockstep = TieredLockstep([JvmTiered(release)], scratch)
    appends = [*map(appended, range(1000, 1004)), Operation("update_high_watermark", (4,))]
    *_, seen = observe(lockstep, OPENED, *appends, Operation("fail_storage", ("copy",)), Operation("copy_segments"))
    (segment,) = seen.state.remote
    assert (segment.state, segment.content != 0) == (0, has_files)
    assert lockstep.statistics.exercised(release)["TL-21a"] == 1


def written(time, **fields):
    return Operation("append_as_leader", ([{"records": [[0, time]], **fields}], 0))


@pytest.mark.thorough
@pytest.mark.parametrize(("end", "where"), [(4, "remote"), (7, "local")])
@pytest.mark.parametrize("releases", [("4.3.1",), thorough_param(RELEASES)], ids=["one", "all"])
def test_a_fetch_of_remote_records_has_the_aborted_transactions(releases, end, where, scratch):
    """Producer 1 writes record 0, and aborts at ``end``, whose transaction index is in a remote or a local segment."""
    lockstep = TieredLockstep([JvmTiered(release) for release in releases], scratch)
    fields = {
        0: {"transactional": True, "producer": [1, 0, 0]},
        end: {"marker": "abort", "producer": [1, 0, -1]},
    }
    writes = [written(1000 + offset, **fields.get(offset, {})) for offset in range(8)]
    fetches = [
        Operation("fetch_remote", (0, 70, True, True)),
        Operation("fetch_remote", (1, 1, True, True)),
        Operation("fetch_remote", (1, 1, False, True)),
        Operation("fetch_remote", (2, 1000, True, False)),
        Operation("fetch_remote", (6, 1000, True, True)),
    ]
    seen = [each.outcome for each in observe(lockstep, OPENED, *writes, *COPIED, *fetches)]
    *_, first, second, empty, third, missing = seen
    assert first.value[:4] == (0, 0, 0, 70)
    assert first.value[5:] == (1, 1, 0), where
    assert second.value[:4] == (1, 0, 68, 68)
    assert empty.value == (1, -1, -1, 0, 0, -1)
    assert (third.value[:2], third.value[5:]) == ((2, 2), (-1,))
    assert missing.error == "out_of_range"
