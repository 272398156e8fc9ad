"""Capabilities of an index with the line protocol: which operations it gets, and what is compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.events import Diverged, Result
from conformance.implementations.process import ProcessIndex
from conformance.implementations.process.index_messages import VERSION
from conformance.implementations.process.messages import MalformedReplyError, introduction_from
from conformance.lockstep import Lockstep
from conformance.operations import FILE_OPERATIONS, Operation
from conformance.operations.index_capabilities import INDEX_CAPABILITIES, INDEX_CLAUSES, can_execute
from conformance.operations.log_capabilities import needs_missing_capability
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run

PROGRAM = f"{sys.executable} {Path(__file__).parents[1] / 'adapters' / 'growing_index.py'}"
OPEN = Operation("open", ("offset", "0.index", 0, 80, True))


def lockstep(scratch, *arguments) -> Lockstep:
    return Lockstep([ProcessIndex([*PROGRAM.split(), *arguments], "4.4.0")], scratch)


def performed(participants, *operations):
    """Return the divergences of an example."""
    found = []
    participants.on_divergence = lambda divergence: found.append(divergence) or True
    participants.begin()
    for operation in operations:
        participants.perform(operation)
    participants.end()
    for subject in participants.subjects:
        subject.close()
    return found


def events_of_run(tmp_path, *arguments, release, machines=("offset", "time")):
    events = []
    plan = Plan(
        (release,),
        (f"exec:{PROGRAM} {' '.join(arguments)}".strip(),),
        machines,
        PROFILES["dev"],
        tmp_path,
        seed=3,
        max_examples=25,
        level="must",
        shrink_time=0,
    )
    run(plan, events.append)
    return events


@pytest.mark.thorough
@pytest.mark.parametrize(("arguments", "release"), [((), "4.4.0"), (("--silent",), "4.3.1")])
def test_an_index_without_kafkas_habits_conforms_at_level_must(tmp_path, arguments, release):
    """It preallocates nothing, has one kind of error, and cannot be closed twice."""
    events = events_of_run(tmp_path, *arguments, release=release)
    assert [event for event in events if isinstance(event, Diverged)] == []
    for result in (event for event in events if isinstance(event, Result)):
        assert result.verdicts["AI-1"] == "conforms"


def test_a_file_that_grows_is_compared_by_its_entries(tmp_path):
    """After a crash Kafka finds its room as entries of zeros, and nothing more fits; this index has none."""
    append = Operation("append", (5, 100))
    steps = OPEN, append, Operation("crash"), OPEN, Operation("append", (7, 200)), Operation("lookup", (7,))
    assert performed(lockstep(tmp_path), *steps) == []


def test_an_entry_that_is_lost_on_reopening_is_a_divergence(tmp_path):
    steps = OPEN, Operation("append", (5, 100)), Operation("append", (7, 200)), Operation("close"), OPEN
    (difference,) = performed(lockstep(tmp_path, "--defect", "restart"), *steps)
    assert difference.operation == OPEN
    assert difference.fields == ("entries", "last")


def test_a_program_that_declares_nothing_has_everything(tmp_path):
    (difference,) = performed(lockstep(tmp_path, "--silent"), OPEN)
    assert "AI-3a" in difference.clauses
    about = introduction_from(VERSION, {"ok": {"name": "n", "version": "", "language": "", "kinds": ["offset"]}})
    assert about.declared() == set(INDEX_CAPABILITIES)


def test_no_clause_beyond_the_capabilities_is_named(tmp_path):
    (difference,) = performed(lockstep(tmp_path, "--defect", "lookup"), OPEN, Operation("append", (5, 100)),
                              Operation("lookup", (5,)))  # fmt: skip
    assert "OI-7" in difference.clauses
    assert not any(needs_missing_capability(clause, frozenset()) for clause in difference.clauses)


@pytest.mark.parametrize("named", ["preallocation", ["flight"], [1], None])
def test_an_unknown_capability_is_rejected(named):
    about = {"name": "n", "version": "", "language": "", "kinds": ["offset"], "index_capabilities": named}
    with pytest.raises(MalformedReplyError, match="index_capabilities is a list of any of preallocation, read_only"):
        introduction_from(VERSION, {"ok": about})


def test_operations_of_undeclared_capabilities_are_neither_drawn_nor_executed(tmp_path):
    participants = lockstep(tmp_path)
    assert not any(map(participants.supports, ("resize", "trim", "delete")))
    assert participants.can_execute([OPEN, Operation("close"), OPEN])
    for operations in (
        [Operation("open", ("offset", "0.index", 0, 80, False))],
        [Operation("open", ("offset", "0.index", -5, 80, True))],
        [Operation("open", ("time", "0.timeindex", 0, 11, True))],
        [Operation("open", ("time", "0.timeindex", 2**63 - 11, 120, True))],
        [Operation("open", ("transaction", "missing/0.txnindex", 0, 0, True))],
        [OPEN, Operation("rename", ("missing/0.index",))],
        [OPEN, Operation("close"), Operation("close")],
        [OPEN, Operation("close"), Operation("lookup", (0,))],
        [OPEN, Operation("delete")],
    ):
        assert not participants.can_execute(operations)
        assert can_execute(operations, frozenset(INDEX_CAPABILITIES))
    closed = performed(participants, OPEN, Operation("close"), Operation("close"))
    assert closed == []
    assert participants.statistics.unsupported == {("growing 4.4.0", "close"): 1}


def test_level_must_uses_only_operations_of_a_broker(tmp_path):
    """Neither of an index that says nothing of its capabilities, nor of one in Python."""
    participants = lockstep(tmp_path, "--silent")
    asked = ([Operation("open", ("offset", "missing/0.index", 0, 80, True))], [OPEN, Operation("close")] * 2)
    twice = [OPEN, Operation("close"), Operation("close")]
    assert all(map(participants.can_execute, (*asked, twice)))
    participants.count_at("must")
    assert [participants.can_execute(steps) for steps in (*asked, twice)] == [False, True, False]
    for subject in participants.subjects:
        subject.close()


def test_entries_are_corrupted(tmp_path):
    steps = [OPEN, *(Operation("append", (number, 100 * number)) for number in (1, 2, 3)), Operation("crash")]
    damages = [Operation("cut_file", (16,)), Operation("pad_file", (8, 1)), Operation("swap_ranges", (0, 1, 8))]
    assert {damage.name for damage in damages} < FILE_OPERATIONS
    (difference,) = performed(lockstep(tmp_path, "--defect", "restart"), *steps, *damages, OPEN)
    assert difference.fields == ("entries", "last")
    assert performed(lockstep(tmp_path), *steps, *damages, OPEN) == []


def test_capacity_is_the_maximal_size_after_entries_are_removed(tmp_path):
    """Bytes that a corruption has added to a file are no capacity."""
    steps = [OPEN, *(Operation("append", (number, number)) for number in (1, 2)), Operation("crash")]
    padded = [*steps, Operation("pad_file", (80, 1)), OPEN]
    appends = [Operation("append", (number, number)) for number in range(5, 17)]
    for emptied in (Operation("truncate"), Operation("reset")):
        assert performed(lockstep(tmp_path / emptied.name), *padded, emptied, *appends) == []


def test_every_capability_has_its_clauses():
    assert INDEX_CLAUSES.keys() == INDEX_CAPABILITIES.keys()
