"""A program with the line protocol: its replies are outcomes, and so is any failure."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import sys
import time
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from line_programs import ADAPTERS, PROTOCOL, Validator, command, spec, valid, variant, written

from conformance.errors import ToolError
from conformance.implementations.process import ProcessIndex, StartError, line_process
from conformance.implementations.process.index_messages import REQUESTS, VERSION, state_from
from conformance.implementations.process.line_process import (
    HEAD,
    TAIL,
    LineProcess,
    LineProcessError,
    StandardError,
    is_group_alive,
)
from conformance.implementations.process.messages import MalformedReplyError, introduction_from, outcome_from
from conformance.implementations.process.schema import schema
from conformance.implementations.spec import Spec, implementation_factory, parse_spec
from conformance.lockstep import DivergenceError, Lockstep
from conformance.lockstep.divergence import failure_json
from conformance.machines.offset import OffsetMachine
from conformance.operations import ERROR_KINDS, KINDS, SIGNATURES, Observation, Operation, Outcome, State
from conformance.operations.index import ESSENTIAL
from conformance.operations.outcomes import FAILURE
from conformance.operations.trace import Trace
from conformance.operations.trace_document import schema_text

TRACE = json.loads((files("conformance") / "schemas" / "trace.json").read_text())


@pytest.fixture
def start(tmp_path):
    """Start adapters by name, in the same empty directory, and end them."""
    started = []

    def start(name: str, *arguments: str, release: str = "4.4.0", deadline: float = 10.0) -> ProcessIndex:
        index = ProcessIndex([*command(name), *arguments], release, deadline=deadline)
        started.append(index)
        index.begin(tmp_path)
        return index

    yield start
    for index in started:
        index.close()


def perform(index: ProcessIndex, name: str, *arguments) -> Observation:
    return index.perform(Operation(name, arguments))


def open_offset(index: ProcessIndex) -> Observation:
    return perform(index, "open", "offset", "0.index", 0, 80, True)


def failure_of(observation: Observation) -> str:
    assert observation.outcome.error == FAILURE, observation
    assert observation.state is None
    return observation.outcome.text


# -- a program that behaves --------------------------------------------------------------------------------------


def test_a_process_executes_operations_and_returns_its_state(start):
    index = start("line_index")
    assert open_offset(index) == Observation(Outcome(), State(0, 10, False, 80, (0,)))
    assert perform(index, "append", 7, 120) == Observation(Outcome(), State(1, 10, False, 80, (7,)))
    assert perform(index, "lookup", 9).outcome == Outcome(None, (7, 120))
    assert perform(index, "fetch_upper_bound", 0, 0, 100).outcome == Outcome(None, (7, 120))
    assert perform(index, "fetch_upper_bound", 0, 0, 121).outcome == Outcome()
    refusal = perform(index, "append", 7, 120)
    assert refusal.outcome.error == "invalid_offset"
    assert refusal.state == State(1, 10, False, 80, (7,))
    assert perform(index, "resize", 8) == Observation(Outcome(None, True), State(1, 1, True, 8, (7,)))


def test_times_and_transactions_come_back_as_tuples_with_all_64_bits(start):
    index = start("line_index")
    perform(index, "open", "time", "0.timeindex", 0, 120, True)
    assert perform(index, "maybe_append", 2**63 - 1, 7, False).state.last == (2**63 - 1, 7)
    perform(index, "close")
    assert perform(index, "open", "transaction", "0.txnindex", 0, -1, True).state == State(0, None, None, None, ())
    assert perform(index, "append_aborted", -1, 0, 2**63 - 1, 5).state == State(1, None, None, None, (2**63 - 1,))
    assert perform(index, "collect_aborted", 0, 10).outcome.value == (((-1, 0, 2**63 - 1, 5),), False)


def test_a_bulk_operation_stops_at_the_first_error(start):
    index = start("line_index")
    open_offset(index)
    observation = perform(index, "bulk_append", 5, 0, 2, 100, 12)
    assert observation.outcome.error == "invalid_argument"
    assert observation.state == State(10, 10, True, 80, (23,))
    perform(index, "close")
    perform(index, "open", "time", "0.timeindex", 0, 1200, True)
    assert perform(index, "bulk_maybe_append", 5, 0, 2, 100, 12).state.last == (27, 1100)


def test_a_crash_kills_the_process_and_keeps_the_file(start, tmp_path):
    index = start("line_index")
    open_offset(index)
    perform(index, "append", 7, 120)
    pid = index._holder[0].pid
    assert perform(index, "crash") == Observation(Outcome(), None)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (tmp_path / "0.index").stat().st_size == 80
    assert open_offset(index).state == State(10, 10, True, 80, (0,))


def test_opening_over_an_open_index_does_not_let_the_process_clean_up(start, tmp_path):
    index = start("line_index", "--release", "3.9.2", release="3.9.2")
    open_offset(index)
    perform(index, "open", "offset", "1.index", 1, 80, True)
    assert (tmp_path / "0.index").stat().st_size == 80  # a close would have trimmed it


def test_the_end_of_an_example_closes_the_index_and_keeps_the_process(start, tmp_path):
    index = start("line_index", "--release", "3.9.2", release="3.9.2")
    open_offset(index)
    pid = index._holder[0].pid
    index.end()
    assert (tmp_path / "0.index").stat().st_size == 0
    (tmp_path / "0.index").unlink()
    index.begin(tmp_path)
    assert open_offset(index).state.entries == 0
    assert index._holder[0].pid == pid


def test_an_operation_outside_the_protocol_is_unsupported(start):
    index = start("line_index")
    open_offset(index)
    for name in SIGNATURES:
        assert index.supports(name) == (name in REQUESTS or name in ("crash", "bulk_append", "bulk_maybe_append"))
    assert perform(index, "rename", "1.index").outcome.error == "unsupported"
    assert perform(index, "append", 7, 120).state.entries == 1


def test_missing_capabilities_are_known_from_the_start(start):
    index = start("odd/reticent")
    assert not index.supports("lookup")
    assert not index.reports_state
    assert index.supports("bulk_append")
    assert open_offset(index) == Observation(Outcome(), None)
    assert perform(index, "lookup", 7).outcome.error == "unsupported"
    assert all(index.supports(name) for name in ESSENTIAL)


def test_a_kind_that_was_not_introduced_is_unsupported(tmp_path):
    code = 'print(\'{"ok":{"name":"n","version":"1","language":"l","kinds":["time"]}}\', flush=True); input()'
    index = ProcessIndex([sys.executable, "-c", f"input(); {code}"], "4.4.0")
    index.begin(tmp_path)
    assert open_offset(index).outcome.error == "unsupported"
    index.close()


def test_a_closed_index_may_omit_its_state(start):
    index = start("odd/discreet")
    open_offset(index)
    assert perform(index, "close") == Observation(Outcome(), None)
    assert perform(index, "lookup", 1) == Observation(Outcome("closed", None, "the index is closed"), None)
    assert open_offset(index).state is not None


def test_the_release_is_passed_in_the_command(start):
    index = start("line_index", "--release", "{release}", release="3.9.2")
    assert index.command[-1] == "3.9.2"
    assert index.name == "line-index 3.9.2"


def test_much_output_on_stderr_does_not_block_and_its_end_is_retained(start):
    index = start("odd/loud")
    open_offset(index)
    for offset in range(1, 5):
        assert perform(index, "append", offset, 0).state.entries == offset
    assert 0 < len(index._holder[0].stderr) <= HEAD + TAIL + 80


# -- programs that do not ----------------------------------------------------------------------------------------


def test_after_a_failure_the_next_example_has_a_new_process(start, tmp_path):
    index = start("bad/segfaults")
    open_offset(index)
    failure_of(perform(index, "truncate_to", 3))
    index.end()
    (tmp_path / "0.index").unlink()
    index.begin(tmp_path)
    assert open_offset(index).state == State(0, 10, False, 80, (0,))


def test_stderr_is_shown_with_the_failure(start):
    text = failure_of(open_offset(start("bad/dies")))
    assert text.startswith("ended (exit status 3) instead of replying")
    assert "stderr says:\npanic: index out of range [5] with length 5" in text


def test_the_first_and_last_lines_of_a_long_crash_are_retained():
    said = StandardError()
    said.add(b"started\n")
    said.begin()
    said.add(b"panic: no memory\n" + b"".join(b"\tframe %d\n" % number for number in range(60)) + b"exit 2\n")
    lines = str(said).splitlines()
    assert lines[0] == "panic: no memory"
    assert lines[1] == "    frame 0"
    assert lines[12] == "[... 46 lines omitted ...]"
    assert lines[-1] == "exit 2"
    said.begin()
    assert str(said).endswith("exit 2")


def test_the_beginning_and_the_end_of_megabytes_on_stderr_are_retained():
    said = StandardError()
    for number in range(3000):
        said.add(b"line %d\n" % number)
    text = str(said)
    assert text.startswith("line 0\n")
    assert text.endswith("line 2999")
    assert "bytes omitted ...]" in text
    assert len(text) < HEAD + TAIL + 80


def test_a_failure_between_examples_is_retained_without_harm(start, tmp_path):
    index = start("bad/dies_on_close")
    open_offset(index)
    index.end()
    assert "could not close" in index.failures_between_examples[0]
    (tmp_path / "0.index").unlink()
    index.begin(tmp_path)
    assert open_offset(index).outcome == Outcome()


def begun(words: list[str], directory: Path) -> ProcessIndex:
    index = ProcessIndex(words, "4.4.0")
    index.begin(directory)
    return index


def test_an_error_from_the_state_of_an_open_index_is_a_failure(tmp_path):
    index = begun(variant("if op == 'state': reply = {'error': 'closed', 'message': ''}"), tmp_path)
    assert "an open index returns its state" in failure_of(open_offset(index))


def test_a_state_of_another_shape_is_a_failure(tmp_path):
    index = begun(variant("if op == 'state': reply['ok']['last'] = []"), tmp_path)
    assert "ok of the reply to state: Expected `array` of length >= 1 - at `$.last`" in failure_of(open_offset(index))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["/nowhere/my-index"], "/nowhere/my-index"),
        ([str(ADAPTERS)], "Permission denied"),
        ([sys.executable, "-c", "raise SystemExit('no such option')"], "no such option"),
        ([sys.executable, "-c", "input(); print('hello'); input()"], "not JSON"),
        ([sys.executable, "-c", "input(); print('{\"ok\": null}'); input()"], "the reply to start is"),
        ([sys.executable, "-c", "input(); print('\\xff' * 9); input()"], "not JSON"),
        ([sys.executable, "-c", "input(); print('[' * 100000); input()"], "not JSON"),
    ],
)
def test_a_program_that_does_not_introduce_itself_is_one_clear_line(words, text):
    with pytest.raises(StartError) as error:
        ProcessIndex([*words], "4.4.0", start_deadline=10)
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_program_that_is_missing_on_restart_fails_the_open(tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command('line_index'))}\n")
    program.chmod(0o755)
    index = ProcessIndex([str(program)], "4.4.0")
    index.begin(tmp_path)
    open_offset(index)
    perform(index, "crash")
    program.unlink()
    assert "could not be started again" in failure_of(open_offset(index))


def test_child_processes_of_a_program_die_with_it(tmp_path):
    # The shell remains the parent, because a command follows the adapter.
    index = ProcessIndex(["sh", "-c", f"{shlex.join(command('line_index'))}; true"], "4.4.0")
    index.begin(tmp_path)
    open_offset(index)
    perform(index, "append", 7, 120)
    children = Path(f"/proc/{index._holder[0].pid}/task/{index._holder[0].pid}/children").read_text().split()
    assert children
    perform(index, "crash")
    assert not any(has_memory(int(child)) for child in children)


def has_memory(pid: int) -> bool:
    """Return True if a process can still write to its mappings; a dying one frees its memory before its pipes."""
    try:
        return bool(Path(f"/proc/{pid}/maps").read_text())
    except OSError:
        return False


# -- the pipe ----------------------------------------------------------------------------------------------------


def python(code: str) -> LineProcess:
    return LineProcess([sys.executable, "-c", code])


def test_a_reply_may_be_longer_than_a_pipe_and_come_in_pieces():
    peer = python(
        "input(); import sys; [sys.stdout.write('x' * 1000) for _ in range(1000)]; print(flush=True); input()"
    )
    assert peer.ask("go", 10) == "x" * 1_000_000
    peer.kill()


def test_a_request_may_be_longer_than_a_pipe():
    peer = python("print(len(input()), flush=True); input()")
    assert peer.ask("x" * 1_000_000, 10) == "1000000"
    peer.kill()


def test_a_program_that_does_not_read_is_given_up():
    peer = python("import signal; signal.pause()")
    with pytest.raises(LineProcessError, match=r"did not read its input within 0\.5 s") as error:
        peer.ask("x" * 1_000_000, 0.5)
    assert error.value.reason == "deaf"
    assert not peer.alive


def test_a_program_that_closed_its_output_is_given_up():
    peer = python("import os, signal; os.close(1); signal.pause()")
    with pytest.raises(LineProcessError, match="closed its output") as error:
        peer.ask("hello", 10)
    assert error.value.reason == "ended"


def test_half_a_line_is_quoted():
    peer = python("input(); import sys; sys.stdout.write('{\"ok\":nu'); sys.stdout.flush(); sys.exit(4)")
    with pytest.raises(LineProcessError, match=r"exit status 4.*leaving .*nu.* without a line break"):
        peer.ask("hello", 10)


def test_bytes_that_are_no_text_are_quoted():
    peer = python("input(); import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); input()")
    with pytest.raises(LineProcessError, match="not UTF-8"):
        peer.ask("hello", 10)


def test_an_exit_between_two_requests_is_reported_as_such():
    peer = python("import sys; print(input(), flush=True); sys.exit(5)")
    assert peer.ask("hello", 10) == "hello"
    peer._process.wait(10)
    with pytest.raises(LineProcessError, match=r"ended \(exit status 5\) after its reply to hello"):
        peer.ask("again", 10)


KEEPS_THE_PIPES = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"


def await_output(peer: LineProcess) -> None:
    """Wait until its program has written; a process with many class loaders has descriptors above 1,023."""
    with selectors.DefaultSelector() as selector:
        selector.register(peer._stdout, selectors.EVENT_READ)
        assert selector.select(60)


def await_end(peer: LineProcess) -> None:
    """Wait until its process group is empty; a process that has closed its pipes may still be ending."""
    while is_group_alive(peer.pid):
        time.sleep(0.01)


@pytest.mark.parametrize("before", [True, False])
def test_an_exit_is_reported_while_a_child_keeps_the_pipes_open(before):
    """It may end before the request or after it: the child is killed, and the exit status is reported."""
    peer = python(f"{KEEPS_THE_PIPES}; {'input();' * (not before)} print('oh', file=sys.stderr); sys.exit(3)")
    if before:
        peer._process.wait(10)
    with pytest.raises(
        LineProcessError, match=r"^ended \(exit status 3\), while a process .* keeps its output open"
    ) as error:
        peer.ask("hello", 60)
    assert error.value.reason == "ended"
    assert "stderr says:\noh" in str(error.value)
    await_end(peer)


def test_an_exit_without_reading_is_reported_while_a_child_keeps_the_pipes_open():
    peer = python(f"{KEEPS_THE_PIPES}; sys.exit(3)")
    with pytest.raises(LineProcessError, match=r"^ended \(exit status 3\), while a process .* keeps its input open"):
        peer.ask("x" * 1_000_000, 60)


def test_the_last_reply_of_a_program_that_has_ended_counts():
    peer = python(f"{KEEPS_THE_PIPES}; print(input(), flush=True)")
    assert peer.ask("hello", 60) == "hello"
    assert peer.finish(None, 60) == (0, "")


def test_a_daemon_with_its_own_session_is_not_waited_for(monkeypatch, tmp_path):
    """It runs on, keeps the pipes and even writes to them; every process in the group of the program has ended."""
    monkeypatch.setattr(line_process, "_GRACE", 3600.0)  # waiting for the end of the pipes would take forever
    note = tmp_path / "daemon"
    daemon = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid()))\nwhile 1: print('.'); time.sleep(.01)"
    peer = python(
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-uc', {daemon!r}], start_new_session=True,"
        f" stdout=sys.stderr); subprocess.Popen(['sleep', '60']); print(input(), flush=True); input()"
    )
    assert peer.ask("hello", 60) == "hello"
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    try:
        peer.kill()
        await_end(peer)
        os.kill(int(note.read_text()), 0)
    finally:
        os.kill(int(note.read_text()), signal.SIGKILL)


def test_a_late_line_belongs_to_the_previous_request():
    peer = python("import os; print(input(), flush=True); os.read(0, 1); print('more', flush=True); input()")
    assert peer.ask("hello", 10) == "hello"
    os.write(peer._stdin, b"!")  # continue without a request
    await_output(peer)
    with pytest.raises(LineProcessError, match=r"wrote more than one line, 'more.* as well, to hello") as error:
        peer.ask("again", 10)
    assert error.value.reason == "noisy"


def test_a_program_that_ends_without_reading_does_not_break_our_pipe():
    peer = python("pass")
    peer._process.wait(10)
    with pytest.raises(LineProcessError, match="exit status 0"):
        peer.ask("hello", 10)


@pytest.mark.thorough
def test_a_flood_without_an_end_is_given_up():
    peer = LineProcess(["yes"])
    with pytest.raises(LineProcessError, match=r"more than one line|before any request"):
        peer.ask("hello", 10)
    peer = python("input(); import os\nwhile True: os.write(1, bytes(65536))")
    with pytest.raises(LineProcessError, match="without a line break") as error:
        peer.ask("hello", 60)
    assert error.value.reason == "malformed"
    assert len(str(error.value)) < 1000


def test_a_greeting_is_not_taken_for_a_reply():
    peer = python("print('Welcome', flush=True); input()")
    await_output(peer)
    with pytest.raises(LineProcessError, match=r"^wrote 'Welcome.* before any request$"):
        peer.ask("hello", 10)


def test_a_program_that_has_ended_before_the_request_is_reported():
    peer = python("import sys; print('no disk', file=sys.stderr); sys.exit(3)")
    peer._process.wait(60)
    with pytest.raises(LineProcessError) as error:
        peer.ask("hello", 10)
    assert str(error.value) == "ended (exit status 3) before any request; its stderr says:\nno disk"


def test_a_flood_does_not_prevent_a_stop():
    peer = LineProcess(["yes"])
    status, written = peer.finish(None, 0.2)
    assert status is None
    assert written.startswith("y\ny\n")


def test_a_program_may_close_its_stderr():
    peer = python("import os; os.close(2); print(input(), flush=True); print(len(input()), flush=True)")
    assert peer.ask("hello", 10) == "hello"
    assert peer.ask("x" * 300_000, 10) == "300000"
    peer.kill()


def test_a_second_kill_does_nothing():
    peer = python("input()")
    peer.kill()
    peer.kill()
    assert not peer.alive


# -- in lockstep -------------------------------------------------------------------------------------------------


def hold(index: ProcessIndex, scratch: Path, examples: int, machine=OffsetMachine, **more) -> Lockstep:
    lockstep = Lockstep([index], scratch)
    run_state_machine_as_test(
        machine.bind(lockstep),
        settings=settings(
            max_examples=examples,
            stateful_step_count=20,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )
    return lockstep


@pytest.mark.thorough
def test_a_crash_is_found_shrunk_and_saved(tmp_path):
    index = ProcessIndex(command("bad/segfaults"), "4.4.0")
    with pytest.raises(DivergenceError) as error:
        hold(index, tmp_path / "scratch", 50, phases=(Phase.generate, Phase.shrink))
    divergence = error.value.divergence
    assert divergence.operation.name == "truncate_to"
    assert divergence.actual[0] == FAILURE
    assert [operation.name for operation in error.value.operations][-1] == "truncate_to"
    assert len(error.value.operations) <= 4
    trace = Trace("offset", "4.4.0", error.value.operations, failure_json(divergence))
    document = json.loads(trace.save(tmp_path).read_text())
    jsonschema.validate(document, TRACE)
    index.close()


@pytest.mark.thorough
def test_wrong_digits_are_a_divergence(tmp_path):
    index = ProcessIndex(command("bad/doubles"), "4.4.0")
    with pytest.raises(DivergenceError):
        hold(index, tmp_path / "scratch", 200, phases=(Phase.generate,))
    index.close()


def test_files_elsewhere_are_a_divergence(tmp_path):
    index = ProcessIndex(command("bad/elsewhere"), "4.4.0")
    with pytest.raises(DivergenceError) as error:
        hold(index, tmp_path / "scratch", 10, phases=(Phase.generate,))
    assert error.value.divergence.aspects == ("bytes",)
    assert error.value.divergence.operation.name == "open"
    index.close()


# -- what -i may say ---------------------------------------------------------------------------------------------


def test_specs_are_taken_apart():
    assert parse_spec("jvm") == Spec("jvm")
    assert parse_spec("broker") == Spec("broker")
    assert parse_spec("exec:./my-index --mode 'a b'") == Spec("exec", ("./my-index", "--mode", "a b"))
    assert parse_spec("python:my.index:Factory.open") == Spec("python", ("my.index", "Factory.open"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "jmv",
        "jvm:",
        "exec",
        "exec:",
        "exec:  ",
        "exec:'a",
        "exec:''",
        "python:",
        "python:m",
        "python:m:",
        "python::f",
    ],
)
def test_a_bad_spec_is_one_clear_line(text):
    with pytest.raises(ToolError) as error:
        implementation_factory(text)
    assert " ".join(text.split()) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_broker_cannot_be_driven_as_an_index():
    with pytest.raises(ToolError, match="broker machine"):
        implementation_factory("broker")


def test_an_exec_spec_starts_the_program():
    text = f"{spec(command('line_index'))} --release {{release}}"
    index = implementation_factory(text, deadline=5)("3.9.2", None)
    assert index.name == f"{text} 3.9.2"
    assert index.about.kinds == KINDS
    index.close()


# -- the schema and the code accept the same ---------------------------------------------------------------------

_LONGS = st.sampled_from((0, 1, -1, 7, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1))
_SCALARS = _LONGS | st.sampled_from((None, True, False, 7.0, 1.5, "", "x"))
_VALUES = (
    _SCALARS
    | st.lists(_SCALARS, max_size=3)
    | st.lists(_LONGS, min_size=2, max_size=2)
    | st.fixed_dictionaries(
        {},
        optional={
            "aborted": st.lists(st.lists(_SCALARS, min_size=3, max_size=4) | st.just([1, 2, 3, 4]), max_size=2)
            | _SCALARS,
            "complete": st.booleans() | _SCALARS,
            "extra": _SCALARS,
        },
    )
)
_REPLIES = (
    _VALUES
    | st.fixed_dictionaries({"ok": _VALUES}, optional={"extra": _SCALARS})
    | st.fixed_dictionaries(
        {"error": st.sampled_from((*ERROR_KINDS, "nonsense", 1, None))},
        optional={"message": st.text(max_size=3) | _SCALARS, "ok": _SCALARS, "extra": _SCALARS},
    )
    | st.fixed_dictionaries({"unsupported": st.sampled_from((True, False, 1, "x"))}, optional={"extra": _SCALARS})
)


def accepts(function, *arguments, **more) -> bool:
    try:
        function(*arguments, **more)
    except MalformedReplyError:
        return False
    return True


@settings(max_examples=settings.default.max_examples * 4, deadline=None)
@given(reply=_REPLIES, operation=st.sampled_from(sorted(REQUESTS)))
def test_the_schema_and_the_code_accept_the_same_replies(reply, operation):
    assert accepts(outcome_from, VERSION, REQUESTS[operation], reply) == valid(f"{operation}_reply", reply)


_STATES = st.fixed_dictionaries(
    {"entries": _LONGS | _SCALARS, "last": st.lists(_LONGS, max_size=3) | st.lists(_SCALARS, max_size=2) | _SCALARS},
    optional={"max_entries": _LONGS, "full": st.booleans() | _SCALARS, "length": _LONGS, "extra": _SCALARS},
) | st.builds(
    lambda numbers, full, last: (
        {**dict(zip(("entries", "max_entries", "length"), numbers, strict=True)), "full": full} | {"last": last}
    ),
    st.tuples(_LONGS, _LONGS, _LONGS),
    st.booleans() | _SCALARS,
    st.lists(_LONGS, max_size=3),
)


@settings(max_examples=settings.default.max_examples * 4, deadline=None)
@given(state=_STATES, kind=st.sampled_from(KINDS))
def test_the_schema_and_the_code_accept_the_same_states(state, kind):
    reply = {"ok": state}
    assert accepts(state_from, kind, reply) == valid(f"{kind}_state_reply", reply)
    assert accepts(state_from, kind, {"unsupported": True})


@settings(max_examples=settings.default.max_examples * 4, deadline=None)
@given(reply=_REPLIES | st.builds(lambda state: {"ok": state}, _STATES), kind=st.sampled_from(KINDS))
def test_the_schema_and_the_code_accept_the_same_errors_of_a_state(reply, kind):
    """Only a closed index may reply to a state request with an error."""

    def accepts_open(reply):
        return accepts(state_from, kind, reply, is_open=True)

    assert accepts_open(reply) == valid(f"open_{kind}_state_reply", reply)
    assert accepts(state_from, kind, reply) == valid(f"{kind}_state_reply", reply)
    refusal = {"error": "closed", "message": "the index is closed"}
    assert accepts(state_from, kind, refusal)
    assert valid(f"{kind}_state_reply", refusal)
    assert not accepts_open(refusal)
    assert not valid(f"open_{kind}_state_reply", refusal)


def test_a_reason_is_complete_and_its_subject_is_truncated(tmp_path):
    """The beginning of a reply of a megabyte is quoted; its fault and the request are given in full."""
    index = begun(variant("if op == 'lookup': reply = {'error': 'x' * 1_000_000, 'message': ''}"), tmp_path)
    open_offset(index)
    text = failure_of(perform(index, "lookup", 7))
    assert len(text) < 2000
    assert "unknown error kind 'xxx" in text
    assert f"; choose from {', '.join(ERROR_KINDS)})" in text
    assert text.endswith('to {"op":"lookup","target":7}')


@settings(max_examples=settings.default.max_examples * 2, deadline=None)
@given(
    about=st.fixed_dictionaries(
        {"name": st.sampled_from(("n", "", 1)), "version": st.sampled_from(("1", 1))},
        optional={
            "language": st.sampled_from(("rust", None)),
            "kinds": st.lists(st.sampled_from((*KINDS, "x", 1)), max_size=3) | _SCALARS,
            "extra": _SCALARS,
        },
    )
)
def test_the_schema_and_the_code_accept_the_same_introductions(about):
    assert accepts(introduction_from, VERSION, {"ok": about}) == valid("start_reply", {"ok": about})


def test_the_schema_matches_the_types():
    """``python -m conformance.implementations.process.schema`` writes it."""
    assert (files("conformance") / "schemas" / "protocol.json").read_text() == schema_text(schema())


def test_the_schema_has_every_operation_of_the_protocol_and_its_arguments():
    jsonschema.Draft202012Validator.check_schema(PROTOCOL)
    names = {reference["$ref"].removeprefix("#/$defs/").removesuffix("_request") for reference in PROTOCOL["anyOf"]}
    assert {name for name in names if "log" not in name} == {*REQUESTS, "start", "state", "stop"}
    for name in REQUESTS:
        assert PROTOCOL["$defs"][f"{name}_request"]["required"] == ["op", *SIGNATURES[name]]
        assert f"{name}_reply" in PROTOCOL["$defs"]
    assert PROTOCOL["$defs"]["error_kind"]["enum"] == list(ERROR_KINDS)


def test_the_schema_of_traces_has_every_operation_on_an_index():
    jsonschema.Draft202012Validator.check_schema(TRACE)
    for name, arguments in SIGNATURES.items():
        assert TRACE["$defs"][name]["required"] == ["op", *arguments]
    step = {"op": "append", "offset": 1, "position": 2}
    trace = {"format": "kidx-trace", "version": 2, "machine": "offset", "release": "3.9.2", "steps": [step]}
    jsonschema.validate(trace, TRACE)
    for broken in ({**trace, "steps": [{"op": "append", "offset": 1}]}, {**trace, "version": 3}, {**trace, "more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, TRACE)


@pytest.mark.thorough
def test_requests_match_the_schema(tmp_path):
    log = tmp_path / "requests"
    code = (
        f"log = open({str(log)!r}, 'a')\n"
        "class Logging(Adapter):\n"
        "    def parse(self, line):\n"
        "        log.write(line); log.flush(); return super().parse(line)\n"
        "Logging().run()\n"
    )
    index = ProcessIndex(written(code, "line_index"), "4.4.0")
    hold(index, tmp_path / "scratch", 15, phases=(Phase.generate,))
    index.close()
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(requests) > 200
    for request in {json.dumps(request): request for request in requests}.values():
        assert Validator(PROTOCOL).is_valid(request), request
    assert requests[0] == {"op": "start", "protocol": 1}
    assert requests[-1] == {"op": "stop"}
