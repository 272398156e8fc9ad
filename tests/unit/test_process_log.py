"""A log with the line protocol, version 2: driven, compared according to its capabilities, and its failures."""

from __future__ import annotations

import base64
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import line_programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_programs import PROTOCOL, valid, written
from machine_runs import run_machine
from thorough_params import thorough_except, thorough_param

from conformance.errors import NotDrivenError
from conformance.implementations.process import ProcessLog, StartError
from conformance.implementations.process import log_messages as messages
from conformance.implementations.process.log_messages import REQUESTS, VERSION
from conformance.implementations.process.messages import MalformedReplyError, Stop, line_of, outcome_from
from conformance.implementations.process.schema import definition_name
from conformance.implementations.try_out import TRIED_ON_LOGS as TRY_OUT
from conformance.lockstep import DivergenceError
from conformance.lockstep.scopes.log import LogLockstep
from conformance.lockstep.scopes.tolerances import TOLERANCES, results_from_records
from conformance.machines.log import LogMachine
from conformance.operations import OK, Operation, Outcome
from conformance.operations.batches import encode
from conformance.operations.log import LOG_ERROR_KINDS, LOG_OPS, LogObservation
from conformance.operations.log_capabilities import CAPABILITIES, missing
from conformance.runs.replay import replay_operations
from conformance.strategies.batches import BatchPlan, RecordDamage
from kidx.records import Codec

KILLED = "a killed process has not created the files that releasing a log creates"
SETTINGS = {"segment.bytes": 300, "segment.index.bytes": 120, "index.interval.bytes": 0}
OPEN = Operation("open_log", (SETTINGS, 0, 0, True, 10_000))


def command(*arguments: str) -> list[str]:
    return [*line_programs.command("line_log"), "{release}", *arguments]


@pytest.fixture
def start():
    """Start the adapter, and end it."""
    started = []

    def start(*arguments: str, release: str = "4.4.0") -> ProcessLog:
        log = ProcessLog(command(*arguments), release)
        started.append(log)
        return log

    yield start
    for log in started:
        log.close()


def append(base: int, timestamp: int = 1000) -> Operation:
    return Operation("append_as_follower", ([{"base": base, "epoch": 0, "records": [[0, timestamp]]}], 0))


def held(log: ProcessLog, path: Path) -> LogLockstep:
    lockstep = LogLockstep([log], path)
    lockstep.begin()
    return lockstep


# -- a program that behaves --------------------------------------------------------------------------------------


def test_a_log_executes_every_request_and_returns_its_state(start, tmp_path):
    log = start()
    assert all(log.supports(name) for name in (*REQUESTS, *ProcessLog.essential))
    log.begin(tmp_path)
    opened = log.perform(OPEN)
    assert opened.outcome == OK
    assert opened.state[:6] == (0, 0, 0, 0, 0, ((0, 0),))
    assert log.perform(append(0)).state.end_offset == 1
    assert log.perform(Operation("list_offsets", ((1000, -1, 2000),))).outcome.value == ((1000, 0, 0), (-1, 1, 0), None)
    found = log.perform(Operation("read_log", (0,))).outcome.value
    content = (tmp_path / "t-0" / f"{0:020d}.log").read_bytes()
    assert found[:2] == (0, len(content))
    assert log.perform(Operation("delete_records", (5,))).outcome.error == "out_of_range"
    assert log.perform(Operation("close_log", (True,))) == (OK, None)


def test_a_crash_kills_the_process_and_keeps_the_files(start, tmp_path):
    log = start()
    log.begin(tmp_path)
    log.perform(OPEN)
    log.perform(append(0))
    pid = log._holder[0].pid
    assert log.perform(Operation("crash_log")) == (OK, None)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert log.perform(OPEN).state.end_offset == 1


@pytest.mark.thorough
@pytest.mark.parametrize("release", [thorough_param("2.4.1"), thorough_param("3.9.2"), "4.4.0"])
def test_the_reference_behind_pipes_conforms(start, tmp_path, release):
    """No step differs; long runs of it are not part of the tests."""
    log = start(release=release)
    lockstep = LogLockstep([log], tmp_path)
    run_machine(LogMachine, lockstep, settings.default.max_examples * 30 // 100, seed=2)
    assert lockstep.statistics.steps > 100
    assert not lockstep.statistics.unsupported
    assert set(log.excused) <= {KILLED}
    assert not log.failures_between_examples


# -- less than everything ----------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("capability", thorough_except(list(CAPABILITIES)[:2], CAPABILITIES))
def test_a_log_that_lacks_a_capability_conforms_in_the_rest(start, tmp_path, capability):
    log = start("--without", capability)
    assert log.capabilities == frozenset(CAPABILITIES) - {capability}
    lockstep = LogLockstep([log], tmp_path)
    run_machine(LogMachine, lockstep, settings.default.max_examples * 20 // 100, seed=1)
    assert lockstep.statistics.steps > 100
    assert not lockstep.statistics.unsupported


def test_a_log_without_lookups_by_time_gets_special_targets_only(start, tmp_path):
    log = start("--without", "time_lookups")
    assert log.capabilities == frozenset(CAPABILITIES) - {"time_lookups"}
    lockstep = LogLockstep([log], tmp_path)
    replay_operations(lockstep, [OPEN, append(0), Operation("list_offsets", ([0, -1, -3, -2],))])
    log.perform(OPEN)
    log.perform(append(0))
    answers = log.perform(Operation("list_offsets", ([0, -1, -3, -2],))).outcome.value
    assert answers == ("not asked", (-1, 1, 0), "not asked", (-1, 0, 0))
    assert log.excused == {"lookups by time are not requested": 1}


def test_a_log_that_does_not_declare_lookups_by_time_has_them_if_it_finds_a_record():
    """Programs were written before the capability had a name."""
    code = """
class Old(Adapter):
  def do_start(self, protocol):
    about = super().do_start(protocol)
    return {**about, "capabilities": [name for name in about["capabilities"] if name != "time_lookups"]}
Old("4.4.0").run()
"""
    log = ProcessLog(written(code), "4.4.0")
    assert log.capabilities == frozenset(CAPABILITIES)
    log.close()


def test_a_log_that_has_recovered_more_is_checked_by_its_records(start, tmp_path):
    """Its time index is rebuilt, so retention deletes the segment; without it, its records would seem to be younger."""
    log = start("--without", "recovery_point")
    lockstep = held(log, tmp_path)
    settings = {"segment.bytes": 300, "retention.ms": 5000, "message.timestamp.type": "LogAppendTime"}
    lockstep.perform(Operation("open_log", (OPEN.args[0] | settings, 0, 0, True, 10_000)))
    for base in range(4):
        batch = {"base": base, "epoch": 0, "records": [[0, 1000 + base]]}
        lockstep.perform(Operation("append_as_follower", ([batch], 0)))
    lockstep.perform(Operation("set_clock", (86_400_000,)))
    lockstep.perform(Operation("append_as_leader", ([{"records": [[0, 1000]]}], 0)))
    lockstep.perform(Operation("crash_log"))
    lockstep.perform(Operation("damage_log_file", (f"{0:020d}.timeindex", "remove_file", [])))
    lockstep.perform(Operation("open_log", (OPEN.args[0] | settings, 0, 5, False, 86_400_000)))
    lockstep.perform(Operation("update_high_watermark", (5,)))
    lockstep.perform(Operation("apply_retention"))
    answers = lockstep.perform(Operation("list_offsets", ([1000],))).outcome.value
    assert answers == ((1000, 0, 0),)  # of the reference, which has kept it
    lockstep.end()
    assert log.excused["the log decided itself whether to recover segments"]


def test_a_killed_process_makes_no_files(start, tmp_path):
    """In old releases, closing the handles of a segment makes the index files that nothing had opened yet."""
    log = start(release="2.4.1")
    lockstep = held(log, tmp_path)
    for operation in (OPEN, Operation("roll_log"), Operation("crash_log"), OPEN, append(0), Operation("roll_log")):
        lockstep.perform(operation)
    lockstep.end()
    assert log.excused == {KILLED: 1}


def test_missing_state_fields_are_not_compared_and_are_named(start, tmp_path):
    log = start("--hidden", "producers", "--hidden", "recovery_point")
    lockstep = held(log, tmp_path)
    lockstep.perform(OPEN)
    lockstep.end()
    assert log.excused == {"the state does not include producers": 1, "the state does not include recovery_point": 1}


def test_a_closed_log_without_epochs_need_not_have_their_file(start, tmp_path):
    """Directories are compared when a log is closed, as fairly as files after every step."""
    log = start("--without", "epochs")
    lockstep = LogLockstep([log], tmp_path)
    log.perform = lambda operation, perform=log.perform: without_epochs(tmp_path, perform(operation))
    lockstep.groups[0].subjects[0].perform = log.perform
    replay_operations(lockstep, [OPEN, append(0), Operation("close_log", (True,))])
    assert log.excused["leader epochs of answers and of their checkpoint are not compared"] == 3


def without_epochs(scratch: Path, seen):
    (scratch / "0" / "t-0" / "leader-epoch-checkpoint").unlink(missing_ok=True)
    return seen


TRUSTING = """
class Trusting(Adapter):
  def do_open_log(self, **its): super().do_open_log(**{**its, "recovery_point": 1 << 62})
  def do_start(self, protocol):
    about = super().do_start(protocol)
    return {**about, "capabilities": [name for name in about["capabilities"] if name != "recovery_point"]}
Trusting("4.4.0").run()
"""
"""Adapter that recovers its last segment only, and declares that it receives no recovery point."""


def zeroed(log, path, recovery_point, end=24):
    """Return the lockstep of three segments, the first of which lost this many bytes of its time index in a crash."""
    settings = {**SETTINGS, "segment.bytes": 150}
    lockstep = held(log, path)
    lockstep.perform(Operation("open_log", (settings, 0, 0, True, 10_000)))
    for offset, timestamp in enumerate((80, 60, 70, 50, 90, 40)):
        lockstep.perform(append(offset, timestamp))
    lockstep.perform(Operation("crash_log"))
    if end:
        lockstep.perform(Operation("damage_log_file", (f"{0:020d}.timeindex", "zero_range", [0, end])))
    lockstep.perform(Operation("open_log", (settings, 0, recovery_point, False, 10_000)))
    return lockstep


@pytest.mark.thorough
@pytest.mark.parametrize("recovery_point", [0, 1, 6])
def test_recovering_less_is_no_excuse_for_an_index_that_was_zeroed(tmp_path, recovery_point):
    """Kafka rebuilds the time index after its recovery point, and trusts the zeros before it."""
    log = ProcessLog(written(TRUSTING), "4.4.0")
    lockstep = zeroed(log, tmp_path, recovery_point)
    asked = Operation("list_offsets", ((41, 61, 81, -3),))
    if recovery_point == 6:
        assert lockstep.perform(asked).outcome.value[:2] == ((70, 2, 0), (70, 2, 0))
    else:
        with pytest.raises(DivergenceError) as error:
            lockstep.perform(asked)
        assert error.value.divergence.expected[1][:2] == ((80, 0, 0), (80, 0, 0))
        assert "LG-70" in error.value.divergence.clauses
    log.close()


@pytest.mark.parametrize("end", [0, 24])
def test_a_wrong_result_counts_even_where_kafka_returns_another(tmp_path, end):
    """Before its recovery point Kafka trusts the zeros: 61 gives offset 2 instead of 0, and 4 is as wrong."""
    log = ProcessLog(
        written("class Lying(Adapter):\n  def answer(self, target): return [90, 4, 0]\nLying('4.4.0').run()"), "4.4.0"
    )
    lockstep = zeroed(log, tmp_path, 6, end)
    with pytest.raises(DivergenceError) as error:
        lockstep.perform(Operation("list_offsets", ((61,),)))
    assert error.value.divergence.expected[1] == (((70, 2, 0) if end else (80, 0, 0)),)
    assert {"LO-6"} <= set(error.value.divergence.clauses)
    assert ("LG-70" in error.value.divergence.clauses) == bool(end)
    log.close()


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD], ids=lambda codec: codec.label)
def test_records_that_cannot_be_read_lead_to_no_answer(codec):
    plan = BatchPlan(steps=(0, 1), ages=(1, 2), leader_epoch=0)
    data = RecordDamage("stream", 0, 0x40, codec).of(plan, 0, 1000)
    assert results_from_records(Operation("list_offsets", ((5, -3),)), (LogObservation(OK, None), {"0.log": data})) == [
        (),
        (),
    ]


FILLED = [OPEN, *(append(offset) for offset in range(12)), Operation("update_high_watermark", (12,))]


def test_a_log_whose_close_fails_is_still_queried(start, tmp_path):
    """A full index takes no last entry; the log remains open like the reference."""
    settings = {**SETTINGS, "segment.index.bytes": 24}
    first, second, third = ({"base": base, "epoch": 0, "records": [[0, 0]]} for base in range(3))
    transactional = {**second, "producer": [1, 0, 0], "transactional": True}
    plain = {**third, "producer": [1, 0, 0]}
    calls = [first, second, third], [transactional, plain], [first, second]
    lockstep = held(start(release="4.3.1"), tmp_path)
    lockstep.perform(Operation("open_log", (settings, 0, 0, True, 0)))
    for batches in calls:
        lockstep.perform(Operation("append_as_follower", (batches, 0)))
    closed = lockstep.perform(Operation("close_log", (True,)))
    assert closed.outcome.error == "invalid_argument"
    assert closed.state is not None
    lockstep.end()


def test_segments_may_be_deleted_immediately_if_declared(start, tmp_path):
    log = start("--without", "deferred_deletion")
    lockstep = held(log, tmp_path)
    for operation in (*FILLED, Operation("delete_records", (9,)), append(12), Operation("list_offsets", ((1000, -2),))):
        lockstep.perform(operation)
    assert log.excused == {"segments before the log start were deleted before retention ran": 1}
    # After retention the expected state is the same again, and a log that respects it needs no tolerance.
    lockstep.perform(Operation("roll_log"))
    log.excused.clear()
    lockstep.perform(append(13))
    lockstep.end()
    assert not log.excused


def test_segments_must_remain_if_not_declared(tmp_path):
    log = ProcessLog(
        written(
            "class Eager(Adapter):\n  def tidy(self): self.log.delete_segments_before_start()\nEager('4.4.0').run()"
        ),
        "4.4.0",
    )
    lockstep = held(log, tmp_path)
    for operation in FILLED:
        lockstep.perform(operation)
    with pytest.raises(DivergenceError) as error:
        lockstep.perform(Operation("delete_records", (9,)))
    assert error.value.divergence.aspects == ("state", "bytes")
    log.close()


def test_a_wrong_start_is_not_excused_with_deletion(tmp_path):
    code = (
        "class Far(Adapter):\n"
        "  def do_delete_records(self, offset): super().do_delete_records(offset + 1)\n"
        "Far('4.4.0', ('deferred_deletion',)).run()"
    )
    log = ProcessLog(written(code), "4.4.0")
    lockstep = held(log, tmp_path)
    for operation in FILLED:
        lockstep.perform(operation)
    with pytest.raises(DivergenceError) as error:
        lockstep.perform(Operation("delete_records", (9,)))
    assert "start_offset" in error.value.divergence.fields
    assert not log.excused
    log.close()


@pytest.mark.parametrize(
    ("full", "differs"), [("[*self.log.segments][-1].size + 68 > 300", False), ("True", True)], ids=["full", "early"]
)
def test_a_segment_at_a_gap_may_begin_where_the_previous_one_ends(tmp_path, full, differs):
    """No reader sees which offset names it; that there is one more than Kafka has is a difference."""
    code = (
        "class Named(Adapter):\n"
        "  def do_append(self, **request):\n"
        f"    if {full}: self.log.roll()\n"
        "    return super().do_append(**request)\n"
        "Named('4.4.0').run()"
    )
    log = ProcessLog(written(code), "4.4.0")
    lockstep = held(log, tmp_path)
    steps = [OPEN, *map(append, (0, 1, 2, 3, 10, 11)), Operation("list_offsets", ((1000, -1),)), append(20)]
    with pytest.raises(DivergenceError) if differs else nullcontext():
        for operation in steps:
            lockstep.perform(operation)
    words = "a segment has another base offset between the end of the previous one and its first record"
    assert log.excused == ({} if differs else {words: 1})
    log.close()


@pytest.mark.parametrize(("begins", "differs"), [("offset", False), ("offset + 1", True)])
def test_a_truncation_that_leaves_no_record_may_begin_a_segment(tmp_path, begins, differs):
    code = (
        "class Restarting(Adapter):\n"
        "  def do_truncate(self, offset):\n"
        f"    if offset == 1: self.log.truncate_fully_and_start_at({begins})\n"
        "    return offset == 1 or super().do_truncate(offset)\n"
        "Restarting('4.4.0').run()"
    )
    log = ProcessLog(written(code), "4.4.0")
    lockstep = held(log, tmp_path)
    batch = {"base": 0, "epoch": 0, "records": [[0, 0], [1, 0]]}
    steps = [OPEN, Operation("append_as_follower", ([batch], 0)), Operation("update_high_watermark", (1,))]
    for operation in (*steps, Operation("delete_records", (1,))):
        lockstep.perform(operation)
    with pytest.raises(DivergenceError) if differs else nullcontext():
        for operation in (Operation("truncate_log", (1,)), append(1), Operation("truncate_log", (2,))):
            lockstep.perform(operation)
    assert bool(log.excused) is not differs
    log.close()


def test_bytes_after_the_entries_of_a_truncated_index_are_optional():
    """Kafka keeps removed entries in the preallocated tail; a log without one has no bytes to keep."""
    log = encode([{"base": 0, "epoch": 0, "records": [[0, 50]]}])
    offsets, times = (
        bytes.fromhex("0000000100000044"),
        bytes.fromhex("000000000000003200000000000000000000005a00000001"),
    )
    expected = {f"{0:020d}.log": log, f"{0:020d}.index": offsets, f"{0:020d}.timeindex": times}
    operation, state = Operation("truncate_log", (1,)), LogObservation(OK, None)

    def differ(**files):
        named = {f"{0:020d}.{suffix}": data for suffix, data in files.items()}
        mine, theirs = TOLERANCES["preallocation"].normalize(operation, (state, expected), (state, named), {})
        return sorted(name for name in {*mine[1], *theirs[1]} if mine[1].get(name) != theirs[1].get(name))

    assert differ(log=log, timeindex=times[:12]) == []
    assert differ(log=log, index=offsets, timeindex=times) == []
    assert differ(log=log) == [f"{0:020d}.timeindex"]
    expected[f"{0:020d}.log"] = log[:16] + b"\t" + log[17:]  # a magic that none has
    assert differ(log=expected[f"{0:020d}.log"]) == [f"{0:020d}.index", f"{0:020d}.timeindex"]


def test_a_recovered_entry_of_zeros_is_not_one_from_a_crash(start, tmp_path):
    """Kafka counts the preallocated tail after a crash as entries; a log without ``preallocation`` has none."""
    lacking = ("clean_flag", "preallocation", "producers", "transactions", "recovery_point", "epochs")
    log = start(*(word for name in lacking for word in ("--without", name)))
    lockstep = held(log, tmp_path)
    for crash in ([], [Operation("crash_log")]):
        for step in (OPEN, append(0, timestamp=0), *crash, OPEN, append(1, timestamp=0), append(2, timestamp=0)):
            lockstep.perform(step)
        lockstep.end()
        lockstep.begin()
    assert not lockstep.statistics.dropped


def test_an_entry_of_zeros_is_indistinguishable_from_padding():
    """The only entry is for the first record, with timestamp 0; only Kafka has bytes of truncated entries."""
    name = f"{0:020d}.timeindex"
    expected = {name: bytes(12) + bytes.fromhex("000000000000000100000002") + bytes(96)}
    seen = [(LogObservation(OK, None), files) for files in (expected, {name: bytes(12)})]
    mine, theirs = TOLERANCES["preallocation"].normalize(Operation("truncate_log", (1,)), *seen, {name: 12})
    assert mine == theirs


def test_bytes_after_a_truncation_are_distinguished_from_entries_by_count(tmp_path):
    """The entry of a removed record comes after the entries, with an offset that the log has again."""
    code = (
        "class Tidy(Adapter):\n"
        "  def do_truncate(self, offset):\n"
        "    done = super().do_truncate(offset)\n"
        "    for index in (segment.time_index for segment in self.log.segments):\n"
        "      with open(index.path, 'r+b') as file: file.truncate(index.size_in_bytes)\n"
        "    return done\n"
        "Tidy('4.4.0', ('preallocation',)).run()"
    )
    log = ProcessLog(written(code), "4.4.0")
    lockstep = held(log, tmp_path)
    rolled = Operation("roll_log")
    for operation in (OPEN, append(0), rolled, Operation("truncate_log", (0,)), append(0, 500), Operation("crash_log")):
        lockstep.perform(operation)
    lockstep.end()
    log.close()


def test_indexes_are_compared_by_entries_without_preallocation():

    def plain(operation, seen):
        return TOLERANCES["preallocation"].normalize(operation, seen, seen, {})[0]

    entry, room = b"\0\0\0\1\0\0\0\2", bytes(16)
    padded = ({}, {"0.index": entry + room, "0.timeindex": bytes(24), "0.log": room})
    assert plain(OPEN, padded)[1] == {"0.index": entry, "0.log": room}
    assert plain(OPEN, ({}, {"0.index": entry + entry}))[1] == {"0.index": entry + entry}


def test_operations_of_missing_capabilities_are_unsupported_and_never_executed(start, tmp_path):
    log = start("--without", "clock", "--without", "transactions", "--without", "producers")
    log.begin(tmp_path)
    stamped = Operation("open_log", (SETTINGS | {"message.timestamp.type": "LogAppendTime"}, 0, 0, True, 10_000))
    assert log.perform(stamped).outcome.error == "unsupported"
    log.perform(OPEN)
    batch = {"base": 0, "epoch": 0, "records": [[0, 1]], "producer": [1, 0, 0], "transactional": True}
    assert log.perform(Operation("append_as_follower", ([batch], 0))).outcome.error == "unsupported"
    assert log.perform(Operation("set_clock", (1,))).outcome.error == "unsupported"
    assert log.perform(append(0)).state.end_offset == 1


def test_every_requirement_of_an_operation_is_a_capability():
    everything = frozenset(CAPABILITIES)
    for operation in (OPEN, *TRY_OUT.operations):
        assert not missing(operation, everything)
    assert missing(Operation("close_log", (False,)), everything - {"clean_flag"}) == "clean_flag"
    damage = Operation("damage_log_file", ("0.txnindex", "remove_file", ()))
    assert missing(damage, everything - {"transactions"}) == "transactions"
    gap = Operation("append_as_leader", ([{"records": [[1, 0]]}], 0))
    assert missing(gap, everything - {"validation"}) == "validation"


# -- programs without a log --------------------------------------------------------------------------------------


def test_an_adapter_of_protocol_1_has_no_log():
    with pytest.raises(NotDrivenError, match="has no log"):
        ProcessLog(line_programs.command("line_index"), "4.4.0")


STRICT = """
from line_index import Adapter
class Strict(Adapter):
    def parse(self, line):
        request = super().parse(line)
        assert request.get("protocol", 1) == 1
        return request
Strict().run()
"""


def test_an_adapter_that_insists_on_protocol_1_has_no_log():
    with pytest.raises(NotDrivenError, match="has no log"):
        ProcessLog(written(STRICT), "4.4.0")


def test_a_program_that_does_not_start_is_reported_as_such():
    with pytest.raises(StartError, match="exit status 3"):
        ProcessLog([sys.executable, "-c", "import sys; sys.exit(3)"], "4.4.0")


ABLE = """
class Able(Adapter):
    def do_start(self, protocol):
        return super().do_start(protocol) | {"capabilities": ["flight"]}
Able("4.4.0").run()
"""


def test_an_unknown_capability_is_a_malformed_introduction():
    with pytest.raises(StartError, match="flight"):
        ProcessLog(written(ABLE), "4.4.0")


# -- the schema --------------------------------------------------------------------------------------------------


def test_every_request_matches_the_schema():
    assert {operation.name for operation in TRY_OUT.operations} == set(REQUESTS)
    of_kafka = {
        "offset_snapshot",
        "assign_topic_id",
        "rename_log",
        "delete_log",
        "fail_log",
        "topic_id",
        "clean_log",
        "crash_cleaning",
        "verify_transaction",
        "append_verified",
        "fetch",
        "bytes_after",
        "raise_high_watermark",
        "late_transactions",
    }
    assert set(REQUESTS) | {"open_log", "crash_log", "damage_log_file"} | of_kafka == set(LOG_OPS)
    for operation in TRY_OUT.operations:
        request = REQUESTS[operation.name](*operation.args)
        document = json.loads(line_of(request))
        assert valid(f"{definition_name(VERSION, type(request))}_request", document), document
        assert not valid(f"{definition_name(VERSION, type(request))}_request", document | {"more": 1})
    opened = json.loads(line_of(messages.OpenLog("/t-0", *OPEN.args)))
    assert valid("open_log_request", opened)
    names = {reference["$ref"].removeprefix("#/$defs/") for reference in PROTOCOL["anyOf"]}
    assert {f"{definition_name(VERSION, each)}_request" for each in VERSION.replies if each is not Stop} <= names
    assert PROTOCOL["$defs"]["log_error_kind"]["enum"] == list(LOG_ERROR_KINDS)


_SCALARS = st.sampled_from((None, True, 0, 7, -1, 1 << 63, 7.0, "", "AAAA"))
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4), max_leaves=8)
_STATES = st.fixed_dictionaries(
    {"start_offset": _SCALARS},
    optional={
        "end_offset": _SCALARS,
        "segments": st.lists(st.lists(st.sampled_from((0, 1, None)), max_size=3), max_size=2) | _SCALARS,
        "producers": st.just([[1, 0, 0, 5, -1, [[0, 0, 0, 5]]]]) | _VALUES,
        "ongoing": _VALUES,
        "more": _SCALARS,
    },
)
_REFUSALS = st.fixed_dictionaries(
    {"error": st.sampled_from((*LOG_ERROR_KINDS[:2], "full", 1))}, optional={"message": _SCALARS, "more": _SCALARS}
)
_ANSWERS = st.lists(st.none() | st.lists(st.sampled_from((0, -1, 5, 5.0)), min_size=2, max_size=4), max_size=3)


@settings(max_examples=settings.default.max_examples * 4, deadline=None)
@given(
    st.sampled_from(tuple(each for each in VERSION.replies if each not in (messages.Start, Stop))),
    (
        st.fixed_dictionaries({"ok": _VALUES | _STATES | _ANSWERS})
        | _REFUSALS
        | st.just({"unsupported": True})
        | _VALUES
    ),
)
def test_the_schema_and_the_code_accept_the_same_replies(kind, reply):
    try:
        outcome_from(VERSION, kind, reply)
        accepted = True
    except MalformedReplyError:
        accepted = False
    if kind is messages.Read and isinstance(reply, dict) and isinstance(reply.get("ok"), str):
        return  # JSON Schema does not look into base64
    assert accepted == valid(f"{definition_name(VERSION, kind)}_reply", reply)


def test_batches_are_base64_of_their_bytes():
    request = messages.Append("follower", b"\0\1\2", 0, False)
    assert base64.b64decode(json.loads(line_of(request))["batches"]) == b"\0\1\2"
    assert outcome_from(VERSION, messages.Read, {"ok": "AAEC"}).value == b"\0\1\2"
    assert outcome_from(VERSION, messages.OF_OPERATION["roll_log"], {"error": "io"}) == Outcome("io")


def test_the_fault_of_a_reply_is_told_on_one_escaped_line():
    with pytest.raises(MalformedReplyError) as error:
        outcome_from(VERSION, messages.State, {"ok": {"start_offset": 0, "end_offset": 0, "e\n\x1b[3m" + "x" * 999: 1}})
    assert str(error.value).startswith(r"ok of the reply to state: Object contains unknown field `e\n\x1b[3mxxx")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


def test_a_request_is_ascii_whatever_the_path_is():
    line = line_of(messages.OpenLog("/t\u00e9\udcff", *OPEN.args))
    assert line.isascii()
    assert json.loads(line)["path"] == "/t\u00e9\udcff"


# -- the clause that a maintainer would name -----------------------------------------------------------------------

PLAIN = """
import shutil
class Plain(Adapter):
  def do_start(self, protocol): return {**super().do_start(protocol), "capabilities": ["time_lookups"]}
"""
FORGETFUL = """
  def do_open_log(self, path, **rest):
    shutil.rmtree(path)
    Path(path).mkdir()
    super().do_open_log(path, **rest)
Plain("4.4.0").run()
"""
SEGMENTS = """
class Plain(Adapter):
  def do_start(self, protocol): return {**super().do_start(protocol), "capabilities": ["segments", "time_lookups"]}
"""
NEVER_ROLLS = """
  def do_open_log(self, settings, **rest):
    super().do_open_log(settings={**settings, "segment.bytes": 100_000, "segment.index.bytes": 100_000}, **rest)
Plain("4.4.0").run()
"""
ENTRIES_BY_FIRST_OFFSET = """
  def do_append(self, **what):
    result = super().do_append(**what)
    for index in (segment.offset_index for segment in self.log.segments):
      with open(index.path, "r+b") as file:
        if file.read(4) != bytes(4): file.seek(3); file.write(bytes([1]))
    return result
Plain("4.4.0").run()
"""
WITHOUT_TIMES = """
  def do_truncate(self, offset):
    done = super().do_truncate(offset)
    for path in Path(self.log.directory).glob("*.timeindex"): path.write_bytes(bytes(path.stat().st_size - 1) + b"\\1")
    return done
Plain("4.4.0").run()
"""
TWO = Operation("append_as_follower", ([{"base": 1, "epoch": 0, "records": [[0, 1000], [1, 1000]]}], 0))
OPEN_PLAIN = Operation("open_log", ({**SETTINGS, "segment.index.bytes": 1200}, 0, 0, True, 10_000))
WITHOUT_EPOCH = """
  def do_read(self, **where):
    data = bytearray(base64.b64decode(super().do_read(**where)))
    data[12:16] = bytes([0, 0, 0, 9]) if data else b""
    return base64.b64encode(data).decode()
Plain("4.4.0").run()
"""
FROM_THE_START = """
  def do_read(self, offset, max_bytes): return super().do_read(0, max_bytes)
Plain("4.4.0").run()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "steps", "named"),
    [
        (FORGETFUL, [Operation("close_log", (True,)), OPEN_PLAIN], {"LG-81"}),
        (WITHOUT_EPOCH, [Operation("read_log", (0,))], {"LG-1", "LG-82"}),
        (FROM_THE_START, [append(1, 2000), Operation("read_log", (1,))], {"LG-80"}),
        (SEGMENTS + NEVER_ROLLS, [append(at) for at in range(1, 6)], {"SEG-4", "SEG-20"}),
        (SEGMENTS + ENTRIES_BY_FIRST_OFFSET, [TWO], {"SEG-4", "SEG-5"}),
        (SEGMENTS + WITHOUT_TIMES, [append(1, 2000), Operation("truncate_log", (1,))], {"SEG-38", "LG-83"}),
    ],
    ids=["restart", "epoch", "read", "roll", "entry", "truncation"],
)
def test_a_grave_defect_is_reported_with_its_declared_clause_only(tmp_path, code, steps, named):
    log = ProcessLog(written(PLAIN + code), "4.4.0")
    lockstep = LogLockstep([log], tmp_path)
    with pytest.raises(DivergenceError) as error:
        replay_operations(lockstep, [OPEN_PLAIN, append(0), *steps])
    log.close()
    difference = error.value.divergence
    assert set(difference.clauses) == named
    assert difference.counts("must")


UNFINISHED = """
  def do_append(self, **what):
    result = super().do_append(**what)
    for path in Path(self.log.directory).glob("*.timeindex"): path.write_bytes(bytes(path.stat().st_size))
    return result
Plain("4.4.0").run()
"""
FIRST_OF_BATCH = """
  def do_roll(self):
    base = list(self.log.segments)[-1].base_offset
    super().do_roll()
    name = Path(self.log.directory) / f"{base:020d}.timeindex"
    data = name.read_bytes()
    name.write_bytes(data[:-1] + bytes([data[-1] - 1]))
Plain("4.4.0").run()
"""
UNTIMED = """
  def answer(self, target): return None if target == -3 else super().answer(target)
Plain("4.4.0").run()
"""
EMPTY = Operation("append_as_follower", ([{"base": 1, "epoch": 0, "records": [[0, 3000]], "empty": True}], 0))
FOUND = """
  def answer(self, target): return [1000, 0, -1] if target == -3 else super().answer(target)
Plain("4.4.0").run()
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "steps"),
    [
        (UNFINISHED, [append(0), append(1, 2000)]),
        (FIRST_OF_BATCH, [TWO, Operation("roll_log")]),
        (UNTIMED, [append(0, -1), Operation("list_offsets", ((-3,),))]),
        (FOUND, [append(0), EMPTY, Operation("list_offsets", ((-3,),))]),
    ],
    ids=["unfinished", "first", "untimed", "empty"],
)
def test_results_with_the_same_or_the_promised_records_do_not_count(tmp_path, code, steps):
    log = ProcessLog(written(SEGMENTS + code), "4.4.0")
    lockstep = LogLockstep([log], tmp_path)
    with pytest.raises(DivergenceError) as error:
        replay_operations(lockstep, [OPEN_PLAIN, *steps])
    log.close()
    assert not error.value.divergence.counts("must"), error.value.divergence


# -- several right ways --------------------------------------------------------------------------------------------


def test_none_and_minus_ones_both_mean_no_result(tmp_path):
    code = """
  def answer(self, target):
    found = super().answer(target)
    return None if found is None or found[1] < 0 else found
Plain("4.4.0").run()
"""
    other = code.replace("None if found is None or found[1] < 0 else found", "found or [-1, -1, -1]")
    for each in (code, other):
        log = ProcessLog(written(PLAIN + each), "4.4.0")
        lockstep = held(log, tmp_path)
        for step in (OPEN_PLAIN, append(0), Operation("list_offsets", ((-5, -6, -1, 1000, 5000),))):
            lockstep.perform(step)
        log.close()


@pytest.mark.parametrize("shorter", [True, False])
def test_a_truncation_inside_a_batch_may_end_where_the_batch_began(tmp_path, shorter):
    code = f"""
  def do_truncate(self, offset): return super().do_truncate(1 if {shorter} and offset == 2 else offset)
Plain("4.4.0").run()
"""
    log = ProcessLog(written(PLAIN + code), "4.4.0")
    lockstep = held(log, tmp_path)
    for step in (OPEN_PLAIN, append(0), TWO, Operation("truncate_log", (2,))):
        lockstep.perform(step)
    lockstep.perform(append(1 if shorter else 2, 3000))
    lockstep.perform(Operation("read_log", (1,)))
    assert log.excused["a truncation inside a batch moves the end to the begin of that batch"] == shorter
    # Deleted records do not return, and neither does a whole batch.
    lockstep.end()
    lockstep.begin()
    deleted = Operation("update_high_watermark", (2,)), Operation("delete_records", (2,))
    steps = OPEN_PLAIN, append(0), TWO, *deleted, Operation("truncate_log", (2,))
    if shorter:
        with pytest.raises(DivergenceError) as error:
            replay_operations(lockstep, list(steps))
        assert {"LG-7", "LG-69"} <= set(error.value.divergence.clauses)
    else:
        replay_operations(lockstep, list(steps))
    log.close()
