"""Batched execution: Kafka's classes execute some steps later, and a divergence is reported for its own step.

The divergence is a real one: 2.4.1's message for a missing slot ends with a full stop, 4.4.0's does not. So 2.4.1
instead of 4.4.0 differs with ``entry(0)`` of an empty index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.implementations.jvm import JvmIndex
from conformance.implementations.jvm.index import INDEX_LANGUAGE
from conformance.implementations.jvm.step_batch import StepBatch
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.lockstep import DivergenceError, Lockstep
from conformance.lockstep.batched_execution import MAX_LAG_STEPS
from conformance.operations import Operation
from kidx import OffsetIndex, OffsetPosition

pytestmark = pytest.mark.jvm

OPEN = Operation("open", ("offset", "0.index", 0, 80, True))
LOOKUP = Operation("lookup", (0,))
DIFFERING = Operation("entry", (0,))
NAME = "jvm 2.4.1"


def in_place_of(release: str, path: Path, **options: Any) -> Lockstep:
    """Return 4.4.0, and 2.4.1 checked against a release's rules."""
    other = JvmIndex("2.4.1")
    other.release = release
    return Lockstep([JvmIndex("4.4.0"), other], path, **options)


def perform(lockstep: Lockstep, *operations: Operation) -> None:
    for operation in operations:
        lockstep.perform(operation)


def file_of(lockstep: Lockstep, name: str) -> Path:
    """Return the path of the open file of a subject."""
    (participant,) = (p for group in lockstep.groups for p in group.subjects if p.implementation.name == name)
    return Path(participant.directory) / "0.index"


def test_a_divergence_is_reported_for_its_own_step(tmp_path: Path) -> None:
    lockstep = in_place_of("4.4.0", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, DIFFERING, LOOKUP, LOOKUP)
    with pytest.raises(DivergenceError) as error:
        lockstep.flush()
    lockstep.end()
    divergence = error.value.divergence
    assert (divergence.participant, divergence.step, divergence.operation) == (NAME, 1, DIFFERING)
    assert divergence.aspects == ("text",)
    assert error.value.operations == (OPEN, DIFFERING)
    assert lockstep.failure is error.value


def test_the_end_of_an_example_reports_unrequested_results(tmp_path: Path) -> None:
    lockstep = in_place_of("4.4.0", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, DIFFERING)
    with pytest.raises(DivergenceError):
        lockstep.end()
    assert not any(path.is_file() for path in tmp_path.rglob("*")), "the files of a failed example are removed, too"


def test_a_long_example_does_not_wait_for_its_end(tmp_path: Path) -> None:
    lockstep = in_place_of("4.4.0", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, DIFFERING)
    with pytest.raises(DivergenceError) as error:
        perform(lockstep, *[LOOKUP] * 2 * MAX_LAG_STEPS)
    lockstep.end()
    assert error.value.divergence.step == 1


def test_an_excused_difference_is_the_last_of_its_example(tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []

    def on_divergence(divergence: Any) -> bool:
        told.append((divergence.step, divergence.participant))
        return True

    lockstep = in_place_of("4.4.0", tmp_path, on_divergence=on_divergence)
    for _ in range(2):
        lockstep.begin()
        perform(lockstep, OPEN, DIFFERING, DIFFERING, LOOKUP)
        lockstep.end()
    assert told == [(1, NAME), (1, NAME)], "it is back in the next example"


def test_clauses_are_counted_up_to_the_difference(tmp_path: Path) -> None:
    lockstep = in_place_of("4.4.0", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, DIFFERING, *[LOOKUP] * 5)
    assert not lockstep.statistics.exercised("4.4.0"), "no participant has executed a step yet"
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    counts = lockstep.statistics.exercised("4.4.0")
    assert error.value.divergence.clauses
    assert all(counts[clause] == 1 for clause in error.value.divergence.clauses)
    assert not any(clause.startswith("OI-7") for clause in counts), "the lookups came later"


def test_other_bytes_on_the_disk_are_seen(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, Operation("append", (1, 10)))
    lockstep.flush()
    file = file_of(lockstep, NAME)
    file.write_bytes(file.read_bytes() + b"\1")
    perform(lockstep, LOOKUP)
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    assert error.value.divergence.aspects == ("bytes",)
    assert error.value.divergence.participant == NAME
    assert error.value.divergence.operation == LOOKUP


def test_another_file_of_that_name_is_seen(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN)
    lockstep.flush()
    file = file_of(lockstep, "jvm 4.4.0")
    other = file.with_suffix(".other")
    other.write_bytes(bytes(80 - 1) + b"\1")
    other.replace(file)
    perform(lockstep, LOOKUP)
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    assert error.value.divergence.aspects == ("bytes",)
    assert error.value.divergence.participant == "jvm 4.4.0"


def test_a_file_too_many_is_seen(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN)
    lockstep.flush()
    file_of(lockstep, NAME).with_name("stray").touch()
    lockstep.compare_directories()
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    assert error.value.divergence.expected == ["0.index"]
    assert error.value.divergence.actual == ["0.index", "stray"]


def test_a_large_file_is_compared_by_the_harness_and_continues(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    large = Operation("open", ("offset", "0.index", 0, 2 << 20, True))
    lockstep.begin()
    perform(lockstep, large, Operation("append", (1, 10)), Operation("flip_bit", (3, 1)), LOOKUP)
    lockstep.flush()
    file = file_of(lockstep, NAME)
    assert file.stat().st_size == 2 << 20
    with file.open("r+b") as open_file:
        open_file.seek(1 << 20)
        open_file.write(b"\1")
    perform(lockstep, LOOKUP)
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    assert error.value.divergence.aspects == ("bytes",)


def test_damage_reaches_the_files_of_followers(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, Operation("append", (1, 10)), Operation("close"))
    perform(lockstep, Operation("flip_bit", (0, 3)), Operation("cut_file", (5,)))
    lockstep.flush()
    expected = lockstep.primary.files
    assert expected is not None
    assert len(expected) == 5
    assert file_of(lockstep, NAME).read_bytes() == expected
    perform(lockstep, Operation("remove_file"))
    lockstep.flush()
    assert not file_of(lockstep, NAME).exists()
    lockstep.end()


def test_a_reply_too_large_for_java_is_reported(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN)
    perform(lockstep, Operation("lookup", (1 << 63,)))
    with pytest.raises(ValueError, match="cannot hold"):
        lockstep.flush()
    lockstep.end()


class Wrong(OffsetIndex):
    def lookup(self, *_: Any, **__: Any) -> OffsetPosition:
        return OffsetPosition(7, 7)


def test_a_participant_without_batches_is_compared_immediately(tmp_path: Path) -> None:
    beside = ReferenceIndex("4.4.0")
    beside.offset_index = Wrong
    lockstep = Lockstep([JvmIndex("4.4.0"), beside], tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, Operation("append", (1, 10)))
    with pytest.raises(DivergenceError) as error:
        perform(lockstep, LOOKUP)
    lockstep.end()
    assert (error.value.divergence.participant, error.value.divergence.step) == ("kidx 4.4.0", 2)
    assert error.value.divergence.clauses


def test_a_wrong_reference_is_reported_for_its_own_step(tmp_path: Path) -> None:
    lockstep = in_place_of("2.4.1", tmp_path)
    lockstep.primary.reference.implementation.offset_index = Wrong
    lockstep.begin()
    perform(lockstep, OPEN, LOOKUP, DIFFERING)
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    divergence = error.value.divergence
    assert (divergence.participant, divergence.against, divergence.step) == ("kidx 4.4.0", "model", 1)
    assert error.value.operations == (OPEN, LOOKUP)


def test_a_step_that_fails_is_reported(tmp_path: Path) -> None:
    lockstep = in_place_of("4.4.0", tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, DIFFERING)
    with pytest.raises(KeyError):
        perform(lockstep, Operation("no_operation", ()))
    lockstep.end()
    assert lockstep.failure is None, "not the difference, which would hide it"


def test_a_script_that_cannot_run_is_no_agreement(tmp_path: Path) -> None:
    class Cut(StepBatch):
        def __bytes__(self) -> bytes:
            return super().__bytes__()[:10]

    subject = JvmIndex("4.4.0")
    followers = JvmIndex.batch_group(1, [(subject, 0)])
    subject.begin(tmp_path)
    followers.begin()
    script = Cut(1, INDEX_LANGUAGE)
    script.perform(OPEN, [(subject.perform(OPEN), bytes(80))], lambda content, name: {name: content}, "0.index")
    followers.start(script, alone=True)
    with pytest.raises(Exception, match="step 0 of a batch cannot be executed"):
        followers.finish()
    subject.end()
