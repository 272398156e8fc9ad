"""The segment machine against Kafka's own ``LogSegment``: one lockstep over releases of every rule."""

from __future__ import annotations

import pytest
from machine_runs import run_machine
from thorough_params import thorough_except

from conformance.kafka.releases import RELEASES
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.machines.segment import SegmentMachine
from conformance.operations import Operation
from conformance.runs.replay import load_regression_traces
from conformance.scratch import scratch_directory
from kidx.records import build_batch
from kidx.segment import LogSegment

pytestmark = pytest.mark.jvm

SOME = ("2.4.0", "2.4.1", "3.6.2", "3.9.0", "3.9.2", "4.0.0", "4.1.2", "4.4.0")


def run(lockstep: SegmentLockstep, examples: int, seed: int = 0) -> None:
    run_machine(SegmentMachine, lockstep, examples, seed=seed, steps=30)


def perform(lockstep: SegmentLockstep, operations: tuple[Operation, ...]) -> None:
    for operation in operations:
        lockstep.perform(operation)
    lockstep.flush()


@pytest.fixture
def lockstep():
    """Return a function that makes locksteps over releases' own classes, each in its own directory."""
    with scratch_directory() as scratch:
        count = 0

        def make(*releases: str, **options) -> SegmentLockstep:
            nonlocal count
            count += 1
            subjects = [SegmentMachine.subject("jvm", release) for release in releases]
            return SegmentMachine.new_lockstep(subjects, scratch / str(count), **options)

        yield make


@pytest.mark.thorough
def test_releases_of_every_rule_agree_with_kidx(lockstep):
    """Outcome, text, state and all four files after every step."""
    some = lockstep(*SOME)
    run(some, 40)  # with 15, a seed of twenty missed a clause
    assert some.statistics.steps > 250
    assert {"SEG-3", "SEG-20", "SEG-30", "SEG-38"} <= set(some.statistics.exercised("3.9.0"))
    assert {"SEG-4", "SEG-24c", "SEG-50b"} <= set(some.statistics.exercised("4.4.0"))


@pytest.mark.thorough
def test_all_locked_releases_agree_with_kidx(lockstep):
    """A few examples of all of them: that each class is driven at all, and none is forgotten."""
    every = lockstep(*RELEASES)
    assert len(every.subjects) == len(RELEASES)
    run(every, 5)
    assert all(participant.active for group in every.groups for participant in group.subjects)


def test_the_change_of_kafka_806_is_seen():
    """Checked against the rules of 3.9.0, the classes of 3.9.1 diverge at the second call with several batches."""
    from conformance.implementations.jvm.segment import JvmSegment

    impostor = JvmSegment("3.9.1")
    impostor.release = "3.9.0"
    with scratch_directory() as scratch:
        other = SegmentLockstep([impostor], scratch)
        other.begin()
        other.perform(Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1)))
        records = b"".join(build_batch([(100 + n, None, b"")], base_offset=n) for n in range(2))
        with pytest.raises(DivergenceError) as failure:
            perform(other, (Operation("append_records", (records.hex(), 1, 101, 1)),))
        other.end()
    assert failure.value.divergence.participant == "jvm 3.9.1"
    assert "bytes" in failure.value.divergence.aspects


def test_a_defective_reference_is_found(lockstep, monkeypatch):
    """The comparison itself: a segment that counts one byte too few is noticed by every release."""
    index = LogSegment._index

    def forgetful(self, last_offset, position, timestamp, offset, size):
        index(self, last_offset, position, timestamp, offset, size - 1)

    monkeypatch.setattr(LogSegment, "_index", forgetful)
    with pytest.raises(DivergenceError):
        run(lockstep("4.4.0"), 20)


def spoilt(at: int, value: bytes) -> bytes:
    """Return a batch with other bytes in its header, and its old checksum."""
    batch = build_batch([(100, None, b"abc")])
    return batch[:at] + value + batch[at + len(value) :]


BAD = {
    "truncated": build_batch([(100, None, b"abc")])[:-2],
    "wrong magic": spoilt(16, b"\x09"),
    "checksum": spoilt(17, b"\0\0\0\0"),
    "length past the file": spoilt(8, b"\0\1\0\0"),
    "length below a header": spoilt(8, b"\0\0\0\1"),
    "unknown codec": spoilt(21, b"\0\7"),
    "last offset overflows": spoilt(23, b"\x7f\xff\xff\xff"),
    "negative timestamps": spoilt(27, 2 * (-5).to_bytes(8, signed=True)),
}


@pytest.mark.parametrize("records", BAD.values(), ids=BAD)
def test_bad_input_has_kafka_s_own_outcome(lockstep, records):
    """Reads, searches and recoveries of the log are as in each release; the texts of errors count, too."""
    some = lockstep(*SOME)
    some.begin()
    good = build_batch([(50, None, b"")]).hex()
    perform(
        some,
        (
            Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1)),
            Operation("append_records", (good, 0, 50, 0)),
            Operation("append_records", (records.hex(), 1, 100, 1)),
            Operation("find_offset", (1, 0, 1 << 20)),
            Operation("find_offset", (60, 0, 1 << 20)),
            Operation("read_next_offset"),
            Operation("translate_offset", (1, 0)),
            Operation("recover_segment"),
            Operation("find_offset", (60, 0, 1 << 20)),
        ),
    )
    some.end()


TRACES = load_regression_traces("segment")


@pytest.mark.thorough
@pytest.mark.parametrize("trace", thorough_except(TRACES[::3], TRACES), ids=lambda trace: trace.id)
def test_a_recorded_divergence_recurs(lockstep, trace):
    """A trace holds in its own release; a release that it was recorded against still differs."""
    assert trace.title
    own = lockstep(trace.release)
    own.begin()
    perform(own, trace.operations)
    own.end()
    participant = "" if trace.failure is None else trace.failure["participant"].removeprefix("jvm ")
    if trace.failure is None or participant == trace.release:
        return  # kidx once differed there, and does no more
    impostor = SegmentMachine.subject("jvm", participant)
    impostor.release = trace.release
    with scratch_directory() as scratch:
        other = SegmentLockstep([impostor], scratch)
        other.begin()
        with pytest.raises(DivergenceError) as failure:
            perform(other, trace.operations)
        other.end()
    assert failure.value.divergence.step == trace.failure["step"] == len(trace.operations) - 1
    assert list(failure.value.divergence.aspects) == trace.failure["aspects"]
