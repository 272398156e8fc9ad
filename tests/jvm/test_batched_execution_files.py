"""Batched execution of segments and logs: a divergence is reported for its own step, and none is missed.

The divergence is a real one: the close() of 4.3.1's log trims the indexes, 4.4.0's keeps them unchanged.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from log_participants import CheckedAgainst

from conformance.implementations.jvm.log import JvmLog
from conformance.implementations.jvm.segment import JvmSegment
from conformance.lockstep import DivergenceError
from conformance.lockstep.divergence import Decision
from conformance.lockstep.scopes.log import LogLockstep
from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.operations import Operation
from conformance.operations.log import TOPIC_DIRECTORY
from kidx.log import UnifiedLog
from kidx.records import build_batch

if TYPE_CHECKING:
    from conformance.lockstep.lockstep import Lockstep

pytestmark = pytest.mark.jvm

SETTINGS = {"segment.bytes": 300, "segment.index.bytes": 120, "index.interval.bytes": 0, "retention.ms": -1}
OPEN = Operation("open_log", (SETTINGS, 0, 0, True, 10_000))
APPEND = Operation("append_as_leader", ([{"records": [[0, 1000], [1, 3000]]}], 0))
ASK = Operation("list_offsets", ([-1, -2, 1000, 5000],))
CLOSE = Operation("close_log", (False,))
NAME = "jvm 4.4.0"

OPEN_SEGMENT = Operation("open_segment", (0, 0, 96, 0, False, 0, False, "", 1000))
APPEND_TO_SEGMENT = Operation("append_records", (build_batch([(100, None, b"")]).hex(), 0, 100, 0))
FIND = Operation("find_offset", (50, 0, 1 << 20))


def held(path: Path, release: str = "4.4.0", **options: Any) -> LogLockstep:
    """Return 3.9.2's log, and 4.4.0's checked against a release."""
    return LogLockstep([JvmLog("3.9.2"), CheckedAgainst(JvmLog("4.4.0"), release)], path, **options)


def segments(path: Path) -> SegmentLockstep:
    return SegmentLockstep([JvmSegment("3.9.2"), JvmSegment("4.4.0")], path)


def perform(lockstep: Lockstep[Any, Any], *operations: Operation) -> None:
    for operation in operations:
        lockstep.perform(operation)


def directory_of(lockstep: Lockstep[Any, Any], name: str = NAME) -> Path:
    (participant,) = (p for group in lockstep.groups for p in group.subjects if p.implementation.name == name)
    return Path(participant.directory)


def told(lockstep: Lockstep[Any, Any]) -> Any:
    """Return the divergence that the end of the example reports."""
    with pytest.raises(DivergenceError) as error:
        lockstep.end()
    assert lockstep.failure is error.value
    return error.value.divergence


def test_a_divergence_of_a_log_is_reported_for_its_own_step(tmp_path: Path) -> None:
    lockstep = held(tmp_path, "4.3.1")
    lockstep.begin()
    perform(lockstep, OPEN, CLOSE, OPEN, APPEND)
    divergence = told(lockstep)
    assert (divergence.participant, divergence.step, divergence.operation) == (NAME, 1, CLOSE)
    assert divergence.aspects == ("bytes",)
    assert [name for name, _ in divergence.expected] == [f"{0:020d}{suffix}" for suffix in (".index", ".timeindex")]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_an_excused_difference_of_a_log_is_the_last_of_its_example(tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []

    def on_divergence(divergence: Any) -> bool:
        seen.append((divergence.step, divergence.participant))
        return True

    lockstep = held(tmp_path, "4.3.1", on_divergence=on_divergence)
    for _ in range(2):
        lockstep.begin()
        perform(lockstep, OPEN, CLOSE, OPEN, CLOSE, OPEN, APPEND)
        lockstep.end()
    assert seen == [(1, NAME), (1, NAME)], "it is back in the next example"


def test_a_remaining_participant_continues_after_the_divergence(tmp_path: Path) -> None:
    """It has another release's results once in each of two steps; the state and the files are right."""
    seen: list[int] = []

    def on_divergence(divergence: Any) -> bool:
        seen.append(divergence.step)
        return Decision.CONTINUE

    class Asked(UnifiedLog):
        def fetch_offset_by_timestamp(self, target: int) -> Any:
            return None if target == -2 else super().fetch_offset_by_timestamp(target)

    lockstep = LogLockstep([JvmLog("4.4.0")], tmp_path, on_divergence=on_divergence)
    lockstep.primary.reference.implementation.unified_log = Asked
    lockstep.begin()
    perform(lockstep, OPEN, APPEND, ASK, APPEND, ASK, CLOSE)
    lockstep.end()
    assert seen == [2, 4]


def test_a_wrong_reference_is_reported_for_its_own_step(tmp_path: Path) -> None:
    class Wrong(UnifiedLog):
        def update_high_watermark(self, offset: int) -> int:
            return super().update_high_watermark(offset - 1)

    lockstep = LogLockstep([JvmLog("4.4.0")], tmp_path)
    lockstep.primary.reference.implementation.unified_log = Wrong
    lockstep.begin()
    raised = Operation("update_high_watermark", (2,))
    perform(lockstep, OPEN, APPEND, ASK, raised, ASK, APPEND)
    divergence = told(lockstep)
    assert (divergence.participant, divergence.step, divergence.operation) == (NAME, 3, raised)
    assert divergence.aspects == ("outcome", "state")


def test_clauses_are_counted_up_to_the_difference(tmp_path: Path) -> None:
    lockstep = LogLockstep([CheckedAgainst(JvmLog("4.4.0"), "4.3.1")], tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, CLOSE, OPEN, APPEND, ASK)
    assert not lockstep.statistics.exercised("4.3.1")
    divergence = told(lockstep)
    counts = lockstep.statistics.exercised("4.3.1")
    assert divergence.clauses
    assert all(counts[clause] for clause in divergence.clauses)
    assert not any(clause.startswith("LO-") for clause in counts), "the query came later"


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_byte_too_many_in_a_log_is_seen(tmp_path: Path, suffix: str) -> None:
    lockstep = held(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, APPEND)
    lockstep.flush()
    file = directory_of(lockstep) / TOPIC_DIRECTORY / f"{0:020d}{suffix}"
    with file.open("ab") as open_file:
        open_file.write(b"\1")
    perform(lockstep, ASK)
    divergence = told(lockstep)
    assert (divergence.participant, divergence.step, divergence.aspects) == (NAME, 2, ("bytes",))
    assert divergence.expected[0][0] == file.name


def test_an_extra_file_in_a_log_is_detected_unless_it_is_not_compared(tmp_path: Path) -> None:
    lockstep = held(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, APPEND)
    lockstep.flush()
    topic = directory_of(lockstep) / TOPIC_DIRECTORY
    (topic / "partition.metadata.tmp").touch()
    perform(lockstep, ASK)
    lockstep.flush()
    (topic / f"{7:020d}.snapshot").touch()
    perform(lockstep, ASK)
    divergence = told(lockstep)
    assert (divergence.step, divergence.expected) == (3, ((f"{7:020d}.snapshot", None),))


def test_a_missing_or_different_file_is_detected(tmp_path: Path) -> None:
    for replace in (False, True):
        lockstep = held(tmp_path / str(replace))
        lockstep.begin()
        perform(lockstep, OPEN, APPEND, ASK)
        lockstep.flush()
        file = directory_of(lockstep) / TOPIC_DIRECTORY / "leader-epoch-checkpoint"
        if replace:
            other = file.with_name("other")
            other.write_bytes(file.read_bytes()[:-1] + b"\2")
            other.replace(file)
        else:
            file.unlink()
        perform(lockstep, ASK)
        divergence = told(lockstep)
        assert (divergence.step, divergence.aspects) == (3, ("bytes",))
        assert [name for name, _ in divergence.expected] == [file.name]


def test_an_earlier_byte_changed_in_place_is_detected_without_any_other_sign(tmp_path: Path) -> None:
    """The file is as long and as old as before, and no step writes to it."""
    lockstep = held(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, APPEND, APPEND, APPEND, ASK)
    lockstep.flush()
    file = directory_of(lockstep) / TOPIC_DIRECTORY / f"{0:020d}.log"
    status = file.stat()
    with file.open("r+b") as open_file:
        open_file.seek(3)
        open_file.write(b"\1")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    perform(lockstep, Operation("set_clock", (20_000,)))
    divergence = told(lockstep)
    assert (divergence.step, [name for name, _ in divergence.expected]) == (5, [file.name])


def test_a_file_that_has_replaced_an_equal_one_is_compared(tmp_path: Path) -> None:
    lockstep = held(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, APPEND, ASK)
    lockstep.flush()
    file = directory_of(lockstep) / TOPIC_DIRECTORY / "leader-epoch-checkpoint"
    other = file.with_name("other")
    other.write_bytes(file.read_bytes())
    other.replace(file)
    perform(lockstep, ASK, ASK)
    lockstep.flush()
    file.write_bytes(b"2" + file.read_bytes()[1:])
    perform(lockstep, ASK)
    divergence = told(lockstep)
    assert (divergence.step, [name for name, _ in divergence.expected]) == (5, [file.name])


def test_damage_reaches_the_files_of_a_log(tmp_path: Path) -> None:
    lockstep = held(tmp_path)
    log = f"{0:020d}.log"
    lockstep.begin()
    perform(lockstep, OPEN, APPEND, APPEND, Operation("crash_log"))
    perform(lockstep, Operation("damage_log_file", (log, "cut_file", [100])))
    perform(lockstep, Operation("damage_log_file", (f"{0:020d}.index", "remove_file", [])))
    perform(lockstep, Operation("damage_log_file", ("absent.index", "flip_bit", [1, 1])))
    lockstep.flush()
    topic = directory_of(lockstep) / TOPIC_DIRECTORY
    assert (topic / log).read_bytes() == lockstep.primary.files[log]
    assert (topic / log).stat().st_size == 100
    assert not (topic / f"{0:020d}.index").exists()
    assert not (topic / "absent.index").exists()
    perform(lockstep, Operation("open_log", (SETTINGS, 0, 0, False, 10_000)), ASK)
    lockstep.end()


def test_many_files_are_compared_too(tmp_path: Path) -> None:
    """There are more files than remain open between two comparisons."""
    lockstep = held(tmp_path)
    for base in (0, 14):
        lockstep.begin()
        perform(lockstep, OPEN, *(step for _ in range(8) for step in (APPEND, Operation("roll_log"))))
        lockstep.flush()
        assert len(lockstep.primary.files) > 20
        file = directory_of(lockstep) / TOPIC_DIRECTORY / f"{base:020d}.log"
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        perform(lockstep, Operation("set_clock", (20_000,)))
        divergence = told(lockstep)
        assert [name for name, _ in divergence.expected] == [file.name]


def test_other_bytes_and_files_of_a_segment_are_seen(tmp_path: Path) -> None:
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        lockstep = segments(tmp_path / suffix[1:])
        lockstep.begin()
        perform(lockstep, OPEN_SEGMENT, APPEND_TO_SEGMENT, FIND)
        lockstep.flush()
        with (directory_of(lockstep) / f"{0:020d}{suffix}").open("ab") as file:
            file.write(b"\1")
        perform(lockstep, FIND)
        divergence = told(lockstep)
        assert (divergence.participant, divergence.step, divergence.aspects) == (NAME, 3, ("bytes",))


def test_a_renamed_segment_is_compared_under_its_new_name(tmp_path: Path) -> None:
    lockstep = segments(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN_SEGMENT, APPEND_TO_SEGMENT, Operation("rename_segment", ("", ".deleted")))
    lockstep.flush()
    stale = directory_of(lockstep) / f"{0:020d}.log"
    assert stale.with_name(f"{stale.name}.deleted").exists()
    stale.touch()
    lockstep.compare_directories()
    divergence = told(lockstep)
    assert (divergence.step, divergence.aspects) == (2, ("bytes",))
    assert set(divergence.actual) - set(divergence.expected) == {stale.name}


def test_a_text_of_a_segment_is_compared_in_java(tmp_path: Path) -> None:
    """Texts name the directory of each implementation; only another text is a difference."""
    lockstep = segments(tmp_path)
    looked_at: list[str] = []
    hold = lockstep._compare_subject

    def counted(participant: Any, group: int, step: Any) -> None:
        looked_at.append(participant.implementation.name)
        hold(participant, group, step)

    lockstep._compare_subject = counted  # type: ignore[method-assign]
    refused = Operation("read_segment", (0, -1, 100, False))
    lockstep.begin()
    observation = lockstep.perform(OPEN_SEGMENT) and lockstep.perform(refused)
    assert "Invalid max size" in observation.outcome.text
    lockstep.end()
    assert not looked_at

    reference = lockstep.primary.reference
    performed = reference.perform

    def rude(operation: Operation) -> Any:
        seen = performed(operation)
        return seen._replace(outcome=seen.outcome._replace(text="No.")) if seen.outcome.error else seen

    reference.perform = rude
    lockstep.begin()
    perform(lockstep, OPEN_SEGMENT, refused)
    divergence = told(lockstep)
    assert divergence.participant.startswith("jvm "), "both releases have the one reference"
    assert (divergence.step, divergence.aspects) == (1, ("text",))


def test_java_reports_the_step_that_it_executes(tmp_path: Path) -> None:
    """The watchdog needs it for a step that hangs."""
    subject = JvmLog("4.4.0")
    followers = JvmLog.batch_group(1, [(subject, 0)])
    subject.begin(tmp_path)
    followers.begin()
    script = followers.script()
    seen = subject.perform(OPEN)
    for _ in range(3):
        script.perform(Operation("set_clock", (5,)), [(seen, {})], lambda files, _: files, None)
    assert script.steps == 3
    followers.start(script, alone=True)
    assert followers.finish() == 1
    assert followers.stopped_at(0) == 0, "there are files"
    assert followers.performing(0) == script.steps, "it executes none"
    subject.end()


def test_a_reply_too_large_for_java_is_reported(tmp_path: Path) -> None:
    lockstep = held(tmp_path)
    lockstep.begin()
    perform(lockstep, OPEN, Operation("set_clock", (1 << 63,)))
    with pytest.raises(ValueError, match="cannot hold"):
        lockstep.flush()
    lockstep.end()
