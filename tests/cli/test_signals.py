"""Signals, interrupts and deaths of processes."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupted import interrupt
from thorough_params import thorough_param

from conformance.operations.trace import Trace

# -- SIGTERM and SIGHUP end a run as an error would: no scratch directory is left in memory, and no adapter runs on


ADAPTER = Path(__file__).parents[1] / "adapters" / "line_index.py"
MAIN = """
import sys
from pathlib import Path

from conformance import cli, scratch

scratch.MEMORY = Path(sys.argv.pop(1))
scratch.ENOUGH = 0
cli.main()
"""


def heed():
    """Restore the handler of SIGHUP, which a nohup of the tests ignores, and child processes inherit."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(tmp_path, *arguments):
    """Start a command line with scratch directories below ``memory``, and temporary files below ``tmp``."""
    for name in ("memory", "tmp", "state"):
        (tmp_path / name).mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, tmp_path / "memory", *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), "XDG_STATE_HOME": str(tmp_path / "state")},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,  # noqa: PLW1509 -- no lock is held
    )


def await_files(process, tmp_path):
    """Wait for a file in memory: the run is in the middle of an example."""
    while process.poll() is None:
        if any(path.is_file() for path in (tmp_path / "memory").rglob("*")):
            return
        time.sleep(0.02)
    pytest.fail(f"it ended without a signal: {process.communicate()}")


def children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def is_there(pid):
    """Return True if a process runs; one that has ended may wait for init to reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def left(tmp_path):
    return [path for name in ("memory", "tmp") for path in (tmp_path / name).iterdir()]


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, thorough_param(signal.SIGHUP)], ids=lambda number: number.name)
def test_a_run_of_an_adapter_leaves_no_files(tmp_path, number):
    adapter = shlex.join(["exec:" + sys.executable, str(ADAPTER)])
    with start(tmp_path, "run", "-i", adapter, "--machine", "offset", "--max-examples", "100000") as process:
        await_files(process, tmp_path)
        adapters = children(process.pid)
        assert adapters
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == 128 + number
    assert "Traceback" not in out + err
    assert left(tmp_path) == []
    until = time.monotonic() + 20  # helping processes and multiprocessing's tracker end a moment after their parent
    while any(map(is_there, adapters)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_there, adapters))


@pytest.mark.thorough
def test_a_second_signal_does_not_interrupt_the_cleanup(tmp_path):
    adapter = shlex.join(["exec:" + sys.executable, str(ADAPTER)])
    with start(tmp_path, "run", "-i", adapter, "--machine", "time", "--max-examples", "100000") as process:
        await_files(process, tmp_path)
        for _ in range(50):
            process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert left(tmp_path) == []


@pytest.mark.jvm
@pytest.mark.thorough
def test_a_run_of_kafka_leaves_no_files(tmp_path):
    with start(tmp_path, "run", "--machine", "log", "--kafka", "4.4.0", "--max-examples", "100000") as process:
        await_files(process, tmp_path)
        process.terminate()
        out, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in out + err
    assert left(tmp_path) == []


def test_an_ignored_signal_remains_ignored():
    """As under nohup; and one that something else handles goes there."""
    code = (
        "import os, signal; from kidx.signals import raised_signals\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('handled'))\n"
        "with raised_signals():\n"
        "    for number in (signal.SIGHUP, signal.SIGTERM): os.kill(os.getpid(), number)\n"
        "    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "handled\nstill here\n")


@pytest.mark.parametrize(
    ("block", "code", "out"), [("pass", -signal.SIGHUP, ""), ("os.kill(os.getpid(), 15)", 0, "ended by SIGTERM 143\n")]
)
def test_after_the_block_the_handler_is_restored_unless_a_signal_came(block, code, out):
    """Once the process is to end, nothing interrupts what it does on its way out."""
    program = (
        "import os, signal; from kidx.signals import SignalledError, raised_signals\n"
        "try:\n"
        f"    with raised_signals(): {block}\n"
        "except SignalledError as error: print(error, error.exit_code, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=heed,
    )
    assert (done.returncode, done.stdout) == (code, out)


# -- Interrupts of commands with worker processes: one line, the exit code of the signal, and no process remains ---


GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
LINES = {signal.SIGINT: "{}: interrupted\n", signal.SIGTERM: "{}: ended by SIGTERM\n"}


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Make a log directory with some hundred segments, one of them broken."""
    disk = tmp_path_factory.mktemp("interrupted") / "disk"
    sources = [path for path in sorted(GOLDEN.glob("*-0")) if path.is_dir()]
    for number in range(40):
        shutil.copytree(sources[number % len(sources)], disk / f"t{number}-0")
    return disk


def check(done, program, number):
    """Check the state after an interrupted command, which may have ended before."""
    assert done.left == []
    assert "Traceback" not in done.err
    if done.code == -number:
        # The command was finished. While Python exits, a signal ends it immediately: a shell sees 128 + number.
        assert (done.out[-1:], done.err) == ("\n", ""), done
        return
    assert done.code in (0, 1, 128 + number), done
    if done.code == 128 + number:
        assert done.err.endswith(LINES[number].format(program)), done
        assert done.err.count("\n") == 1, done


@pytest.mark.parametrize(
    ("number", "alone"),
    [(signal.SIGINT, False), thorough_param(signal.SIGTERM, True), thorough_param(signal.SIGTERM, False)],
    ids=["interrupt", "timeout", "stop"],
)
def test_workers_end_with_the_command(disk, number, alone):
    done = interrupt("kidx", "verify", disk, "-q", "--json", "-j", 3, number=number, workers=2, alone=alone)
    check(done, "kidx", number)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command", [("verify", "-q", "--json"), ("repair", "--dry-run", "-q", "--json", "--kafka", "4.4.0")], ids=" ".join
)
def test_every_moment_will_do(disk, command):
    """These include moments in which processes are started, and those in which the command ends normally."""
    drawn = random.Random(7)  # noqa: S311
    for _ in range(6):
        number = drawn.choice([signal.SIGINT, signal.SIGTERM])
        seconds = drawn.random()
        done = interrupt("kidx", *command, disk, "-j", 2, number=number, seconds=seconds, alone=drawn.random() < 0.3)
        check(done, "kidx", number)


@pytest.mark.thorough
def test_workers_of_a_killed_command_end(disk):
    done = interrupt("kidx", "verify", disk, "-q", "-j", 3, number=signal.SIGKILL, workers=2, alone=True)
    assert (done.code, done.left) == (-signal.SIGKILL, [])


@pytest.mark.thorough
def test_helpers_of_a_run_end_with_it():
    adapter = shlex.join([f"exec:{sys.executable}", str(ADAPTER)])
    command = ("run", "-i", adapter, "--machine", "offset", "--kafka", "4.4.0", "--max-examples", 100_000)
    done = interrupt("conformance", *command, "--jobs", 3, workers=3)
    assert done.left == []
    assert done.code == 130
    assert "Traceback" not in done.err
    assert done.err.endswith("conformance: interrupted\n")


def outcome_of(program):
    """Return exit code, output and errors of a Python program."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_signal_whose_exception_python_drops_is_raised_again():
    """As one that comes while a finalizer runs."""
    program = (
        "import os, signal, time\n"
        "from kidx.signals import signalled_exit\n"
        "class Dropping:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGTERM); sum(range(1000)); time.sleep(0)\n"
        "with signalled_exit('x'):\n"
        "    Dropping()\n"
        "    time.sleep(60)\n"
    )
    assert outcome_of(program) == (143, "", "x: ended by SIGTERM\n")


def test_a_signal_is_reported_where_code_replaces_its_exception():
    """As the compiler did while a module was loaded."""
    program = (
        "import os, signal\n"
        "from kidx.signals import signalled_exit\n"
        "with signalled_exit('x'):\n"
        "    try: os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except BaseException: raise SyntaxError('no module')\n"
    )
    assert outcome_of(program) == (143, "", "x: ended by SIGTERM\n")


def test_a_signal_is_deferred_in_the_block():
    program = (
        "import os, signal\n"
        "from kidx.signals import held_signals, signalled_exit\n"
        "with signalled_exit('x'):\n"
        "    with held_signals():\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        print('done', flush=True)\n"
        "    print('never')\n"
    )
    assert outcome_of(program) == (143, "done\n", "x: ended by SIGTERM\n")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("kidx", ["dump", GOLDEN, "--deep-iteration"]),
        thorough_param("kidx", ["verify", GOLDEN, "--json"]),
        thorough_param("kidx", ["lookup", GOLDEN / "create-time-0", "--offset", 3]),
        thorough_param("conformance", ["clauses", "OI-7"]),
        thorough_param("kidx", ["--help"]),
        thorough_param("conformance", ["--help"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_closed_pipe_ends_a_command_quietly(program, arguments):
    """Also where it is closed before the first line, and where errors go into it, too."""
    ours, theirs = os.pipe()
    os.close(ours)
    words = [sys.executable, "-m", program, *map(str, arguments)]
    quiet = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    both = subprocess.run(words, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    assert (quiet.returncode, quiet.stderr) == (141, "")
    assert both.returncode == 141


WHILE_LOADING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[2] and not sent:
            sent.append(name)
            os.kill(os.getpid(), signal.SIGINT)

sent = []
sys.meta_path.insert(0, Interrupting())
main = __import__(sys.argv[1] + ".__main__", fromlist=["main"]).main
module = sys.argv[2]
sys.argv[1:] = ["--help"]
sys.argv[2:] = [module]
main()
"""


@pytest.mark.parametrize("program", ["kidx", thorough_param("conformance")])
@pytest.mark.parametrize("module", ["kidx.signals", "typing", "typer", "kidx.commands.line"])
def test_an_interrupt_while_the_program_loads_is_one_line(program, module):
    """Nothing that takes a moment is imported before an interrupt has a handler."""
    done = subprocess.run(
        [sys.executable, "-c", WHILE_LOADING, program, module], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, LINES[signal.SIGINT].format(program))


# -- Steps that kill their process: a divergence with its steps, if a worker process executes them -----------------


DEADLY = """
import multiprocessing, os, signal
from kidx import OffsetIndex

class Deadly(OffsetIndex):
    def lookup(self, target):
        if target > 5000 and multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().lookup(target)

def open_index(kind, path, base_offset, max_index_size, writable):
    return Deadly(path, base_offset, max_index_size, writable)
"""


@pytest.fixture
def done(typed):
    (typed.work / "deadly.py").write_text(DEADLY)
    path = f"{typed.work}:{os.environ.get('PYTHONPATH', '')}"

    def carry_out(*more):
        command = ("run", "-i", "python:deadly:open_index", "--machine", "offset", "--report", "out", "-j", 2)
        return typed.apart(*command, *more, PYTHONPATH=path)

    return carry_out


@pytest.mark.thorough
def test_the_step_that_kills_a_process_is_a_difference(typed, done):
    ended = done("--max-shrink-time", 20)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    events = [json.loads(line) for line in (typed.work / "out" / "events.ndjson").read_text().splitlines()]
    assert events[-1]["verdict"] == "diverges"
    (told,) = (event for event in events if event["event"] == "Diverged")
    assert told["signature"] == "process died"
    assert told["failure"]["actual"] == "the process died of SIGSEGV"
    trace = Trace.load(typed.work / told["trace"])
    names = [operation.name for operation in trace.operations]
    assert names[0] == "open"
    assert names[-1] == "lookup"
    assert len(names) <= 4
    assert trace.operations[-1].args[0] > 5000
    assert told["replay"] in ended.stdout
