"""Programs that fail, each in one way: what ``conformance smoke`` and an operation say of each, and runs of a crash.

The run continues after a crash, reports it, and finds later defects.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from line_programs import (
    CORRUPT,
    EOF,
    EVERY,
    FILE,
    LONGS,
    REFUSAL,
    SCENARIO,
    START,
    STOP,
    UNKNOWN,
    command,
    spec,
    variant,
    written,
)
from thorough_params import thorough_param

from conformance.events import Diverged, Event, Result
from conformance.experiments.smoke.checks import smoke
from conformance.implementations.process import ProcessIndex, ProcessLog
from conformance.implementations.process.line_process import WAITED
from conformance.implementations.try_out import TRIED_ON_LOGS
from conformance.lockstep import Divergence
from conformance.lockstep.divergence import Decision
from conformance.machines import MACHINES
from conformance.operations import Operation, Outcome
from conformance.operations.outcomes import FAILURE
from conformance.report.remarks import describe_failures
from conformance.runs import machine_run
from conformance.runs.chunks import FAILURES, ChunkResult
from conformance.runs.plan import Plan
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import run

CRASHING = "python:tests.adapters.crashing_index:open_index"
PROGRAM = spec(command("crashing_index"))


class Fault(NamedTuple):
    """Way of failing.

    Attributes:
        program: name of an adapter, or a statement that changes the replies of one.
        check: the check of ``conformance smoke`` that shows it.
        hint: what it advises.
        sent, came: the request that it is attributed to, and what came.
        steps: operations on an index after its first append, the last of which has the failure as its outcome.
    """

    program: str
    check: str
    hint: str
    sent: str = ""
    came: str = ""
    steps: tuple[Operation, ...] | None = None


LOOKUP, CLOSE, CUT = Operation("lookup", (7,)), Operation("close"), Operation("truncate_to", (3,))
APPEND = Operation("append", (7, 120))
KIND = "unknown error kind"
TYPES = "schemas/protocol.json"
# fmt: off
FAULTS = (
    Fault("bad/banner", START, "standard error", '"start"', "Welcome to my index"),
    Fault("bad/garbage", SCENARIO, "standard error", '"lookup"', "more than one line", (APPEND, LOOKUP)),
    Fault("bad/chatty", SCENARIO, "exactly one line", '"append"', "more than one line", (APPEND,)),
    Fault("bad/hangs", SCENARIO, "Flush standard output", '"lookup"', "waiting for a lock", (APPEND, LOOKUP)),
    Fault("bad/late", SCENARIO, "Flush standard output", '"open"', "no reply within 1 s", ()),
    Fault("bad/dies", SCENARIO, "exit status", '"append"', "panic: index out of range", ()),
    Fault("bad/dies_on_close", SCENARIO, "exit status", '"close"', "could not close", (APPEND, CLOSE)),
    Fault("bad/segfaults", EVERY, "exit status", '"truncate_to"', "killed by SIGSEGV", (APPEND, CUT)),
    Fault("bad/floats", SCENARIO, TYPES, '"lookup"', "[7.0, 120.0]", (APPEND, LOOKUP)),
    Fault("bad/doubles", LONGS, "not as doubles", '"state"', "9223372036854774784"),
    Fault("bad/saturates", LONGS, "JSON library uses doubles: 9007199254740993 comes", '"state"', "9007199254740992"),
    Fault("bad/exponents", LONGS, "your JSON library uses doubles, and writes them", '"lookup"', "e+18"),
    Fault("bad/null_delete", EVERY, TYPES, '"delete"', "Expected `bool`, got `null`"),
    Fault("bad/null_resize", EVERY, TYPES, '"resize"', "Expected `bool`, got `null`"),
    Fault("bad/talkative_flush", EVERY, TYPES, '"flush"', "Expected `null`, got `bool`"),
    Fault("bad/bare_state", EVERY, TYPES, '"state"', "Object missing required field `full`"),
    Fault("bad/corrupt_by_class", CORRUPT, "protocol.json", '"sanity_check"', f"{KIND} 'CorruptIndexException'"),
    Fault("bad/dies_of_corruption", CORRUPT, "exit status", '"sanity_check"', "uncaught: corrupt index"),
    Fault("bad/elsewhere", FILE, "use the path of open unchanged", '"append"', '{"ok": null}'),
    Fault("bad/unknown_kind", REFUSAL, TYPES, '"append"', "IllegalArgumentException", (APPEND, APPEND)),
    Fault("bad/obliging", UNKNOWN, '{"unsupported": true}', '"no_such_operation"', '{"ok": null}'),
    Fault("bad/stays", STOP, "end when stop is read", '"stop"', "nothing in time"),
    Fault("bad/stays", EOF, "standard input ends", "the end of its input", "nothing in time"),
    Fault("if op == 'open': reply = {'error': 'io', 'message': 'no'}", SCENARIO,
          "rejected although it is valid: io: no"),
    Fault("if op == 'state': reply = {'error': 'closed', 'message': ''}", SCENARIO, "or declares state as unsupported"),
    Fault("if op == 'no_such_operation': reply = {'error': 'io', 'message': ''}", UNKNOWN, "unsupported"),
    Fault("if op == 'stop': sys.exit(1)", STOP, "exit status 0"),
    Fault("if op == 'stop': print('bye')", STOP, "write logs to standard error"),
    Fault("if op == 'stop': reply = {'unsupported': True}", STOP, "to stop: end, with"),
    Fault("if op == 'append': reply = {'ok': None}; Path(self.index.path).write_bytes(bytes(80))", FILE,
          "all are zero"),
)
NO_GOOD = """def reply_to(self, op, request):
    reply = super().reply_to(op, request)
    return {"error": "no_good"} if "error" in reply else reply"""
FAULTS_OF_LOGS = (
    Fault("def do_list_offsets(self, targets): return [[int(float(1 << 53)), 0, 0]]",
          "log: keeps integers of 64 bits", "uses doubles"),
    Fault("def do_open_log(self, path, **rest): super().do_open_log(path + '-0', **rest)",
          "log: writes its batches to the files in the given directory", "contains nothing"),
    Fault("def do_state(self): return {**super().do_state(), 'end_offset': 1.0}",
          "log: opens, appends, looks up and closes", "Expected `int`, got `float`"),
    Fault("def do_append(self, **_): raise OutOfRangeError('no')",
          "log: opens, appends, looks up and closes", "was rejected although it is valid"),
    Fault("def do_retention(self): return True",
          "log: answers every request, or declares it unsupported", "Expected `int`, got `bool`"),
    Fault(NO_GOOD, "log: continues after an error", f"{KIND} 'no_good'"),
    Fault("def reply_to(self, op, request):\n    getattr(self, f'do_{op}')\n    return super().reply_to(op, request)",
          "log: declares an operation that it does not know as unsupported", "exit status 1"),
)
# fmt: on
SPOILT = (
    ("list_offsets", "do_list_offsets", "[[1000.0, 0, 0]]", "Expected `int`, got `float`"),
    ("apply_retention", "do_retention", "True", "Expected `int`, got `bool`"),
    ("read_log", "do_read", "'###'", "ok of the reply to read"),
    ("roll_log", "do_state", "{'start_offset': 0}", "missing required field `end_offset`"),
    ("roll_log", "do_state", "{'start_offset': 0, 'end_offset': 0, 'size': 1}", "unknown field `size`"),
    ("roll_log", "do_roll", "1", "Expected `null`"),
)


def some(faults):
    """Return the faults as parameters; one in three runs without ``--thorough``."""
    return [fault if number % 3 == 0 else thorough_param(fault) for number, fault in enumerate(faults)]


def smoked(fault, words):
    report = smoke(spec(words), deadline=1.0)
    assert report.exit_code == 1
    failed = {check.name: check for check in report.checks if check.verdict == "failed"}
    assert fault.check in failed, "\n".join(report.lines())
    found = failed[fault.check]
    assert fault.sent in found.sent
    assert fault.came in found.came
    assert fault.hint in found.hint + found.came
    return [*failed]


@pytest.mark.thorough
@pytest.mark.parametrize("fault", some(FAULTS), ids=lambda fault: fault.program[:24])
def test_a_broken_adapter_is_caught_with_the_request_that_broke_it(fault):
    named = fault.program.startswith("bad/")
    failed = smoked(fault, command(fault.program) if named else variant(fault.program))
    assert failed[0] == fault.check or not named or fault.program == "bad/stays"


@pytest.mark.thorough
@pytest.mark.parametrize("fault", some(FAULTS_OF_LOGS), ids=lambda fault: fault.program.partition("(")[0])
def test_a_broken_log_fails_where_it_is_broken(fault):
    smoked(fault, written(f"class Bad(Adapter):\n  {fault.program}\nBad('4.4.0').run()"))


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.steps is not None], ids=lambda fault: fault.program)
def test_misbehaviour_is_the_outcome_of_the_operation_that_caused_it(tmp_path, fault):
    opening = Operation("open", ("offset", "0.index", 0, 80, True))
    index = ProcessIndex(command(fault.program), "4.4.0", deadline=1.0)
    index.begin(tmp_path)
    *earlier, last = [index.perform(operation) for operation in (opening, *fault.steps)]
    assert all(each.outcome.error is None for each in earlier)
    assert (last.outcome.error, last.state) == (FAILURE, None)
    assert fault.came.replace(", ", ",") in last.outcome.text
    request = fault.steps[-1].name if fault.steps else "open"
    assert any(f'"op":"{name}"' in last.outcome.text for name in (request, "state"))
    # Until the example is over, everything fails alike; the next one has a new process.
    assert index.perform(Operation("append", (8, 120))) == last
    index.end()
    assert index.perform(opening).outcome == last.outcome
    assert not index._holder
    index.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "method", "value", "said"), SPOILT, ids=[row[2][:20] for row in SPOILT])
def test_a_reply_of_another_type_is_a_failure(name, method, value, said, tmp_path):
    log = ProcessLog(
        written(f"class Bad(Adapter):\n  def {method}(self, *_, **__): return {value}\nBad('4.4.0').run()"), "4.4.0"
    )
    log.begin(tmp_path)
    seen = log.perform(Operation("open_log", ({"segment.bytes": 300}, 0, 0, True, 10_000)))
    if seen.outcome.error is None:
        seen = log.perform(next(each for each in TRIED_ON_LOGS.operations if each.name == name))
    assert seen.outcome.error == FAILURE
    assert said in seen.outcome.text
    log.close()


def carried_out(implementation, directory, **options):
    events: list[Event] = []
    options = {"max_examples": 60, "replays": False, "shrink_time": 2.0} | options
    plan = Plan(("4.4.0",), (implementation,), ("offset",), PROFILES["dev"], directory, **options)
    assert not run(plan, events.append)
    (result,) = (event for event in events if isinstance(event, Result))
    return result, {event.signature.partition(":")[0]: event for event in events if isinstance(event, Diverged)}


def check(result, found, examples):
    assert {"append", "lookup"} <= {shape.removeprefix("bulk_") for shape in found}
    failures = result.details["failures"]
    assert result.examples >= examples
    assert failures["examples"] == result.examples
    assert failures["cut short"] > 3
    assert failures["not executed"] == 0
    line = describe_failures(result)
    assert (
        f"failed in {failures['cut short']} of {result.examples} examples of the offset machine, which ended there"
        in line
    )
    assert line.endswith("Fix this first: it may hide other divergences.")


@pytest.mark.thorough
def test_a_crash_does_not_hide_a_later_defect(tmp_path):
    result, found = carried_out(CRASHING, tmp_path, max_examples=30)
    check(result, found, 30)


@pytest.mark.thorough
def test_a_program_that_has_ended_is_started_again(tmp_path):
    result, found = carried_out(PROGRAM, tmp_path, max_examples=20, shrink_time=1.0)
    check(result, found, 20)


@pytest.mark.thorough
def test_a_budget_bounds_the_crashes_and_the_run_reports_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(machine_run, "FAILURES", 4)
    result, found = carried_out(CRASHING, tmp_path)
    failures = result.details["failures"]
    assert failures["cut short"] >= 4
    assert result.examples < 60
    assert failures["not executed"] == 60 - result.examples
    assert (
        f"{failures['not executed']} of 60 examples were not executed: it dropped out of the run."
        in describe_failures(result)
    )
    assert any("append" in shape for shape in found)


def failure(text):
    outcome = Outcome(FAILURE, None, text)
    return Divergence(1, Operation("append"), "mine", "4.4.0", "kidx", ("outcome",), Outcome(None, None), outcome, ())


def test_a_slow_program_drops_out_with_its_third_failure():
    late = ChunkResult()
    for number in range(1, 4):
        late.note_failure(failure(f"{WAITED[0]} 10 s to …"))
        assert bool(late.gone(FAILURES)) is (number == 3)
    ended = ChunkResult()
    for _ in range(3):
        ended.note_failure(failure("ended (exit status 3) instead of replying to …"))
    assert not ended.gone(FAILURES)
    assert ended.failed == {"mine": Counter({"append: failure": 3})}


def test_results_after_it_dropped_out_do_not_count():
    total = ChunkResult()
    for number in range(3):
        chunk = ChunkResult(
            number, examples=10, steps=50, dropout_scores={"mine": 2}, failed={"mine": Counter({"a": 2})}
        )
        total.add(chunk, 4)
    assert total.examples == 30
    assert total.left == {"mine": (20, 100)}
    assert total.failed == {"mine": Counter({"a": 4})}


def test_what_crashes_without_an_effect_is_left_out_of_later_examples_and_named(tmp_path):
    """The rest of the machine is still exercised; the steps of other divergences do not include the skipped ones."""
    name = "python:tests.adapters.crashing_index:open_crashing_lookups"
    result, found = carried_out(name, tmp_path, max_examples=20, shrink_time=0.5, jobs=1)
    failures = result.details["failures"]
    assert failures["not survived"] == ["lookup"]
    assert failures["avoided"] > failures["cut short"]
    line = describe_failures(result)
    assert "Nothing was compared after lookup: it failed each time." in line
    assert f"{failures['avoided']} steps like those at which it failed were skipped" in line
    others = [event for signature, event in found.items() if signature.removeprefix("bulk_") != "lookup"]
    assert "truncate" in {event.signature.partition(":")[0] for event in others}
    assert all("lookup" not in step for event in others for step in event.steps)


def test_a_crash_excludes_only_arguments_of_its_class(tmp_path):
    """A negative target and a target of zero exercise the same clauses: both are before the first entry."""
    name = "python:tests.adapters.crashing_index:open_crashing_below_zero"
    subject = MACHINES["offset"].subject(name, "4.4.0")
    lockstep = MACHINES["offset"].new_lockstep([subject], tmp_path, on_divergence=lambda _: Decision.SKIP_EXAMPLE)
    (participant,) = lockstep.subjects_compared
    participant.crashed = set()
    opening = Operation("open", ("offset", "0.index", 0, 80, True)), Operation("append", (7, 100))
    active = []
    for entries, target in ((1, -1), (1, 0), (0, 0), (1, 0), (1, -2)):
        participant.skipped.clear()
        with lockstep.example():
            for operation in (*opening[: entries + 1], Operation("lookup", (target,))):
                lockstep.perform(operation)
            active.append((entries, target, participant.active, bool(participant.skipped)))
    assert active == [
        (1, -1, False, False),  # crashes
        (1, 0, True, True),  # may crash as well
        (0, 0, True, False),  # does not crash with zero, in an empty index
        (1, 0, False, False),  # is compared, and wrong
        (1, -2, True, True),
    ]
