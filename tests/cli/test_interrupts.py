"""Interrupts of commands with worker processes: one line, the exit code of the signal, and no process remains."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interrupted import interrupt
from thorough_params import thorough_param

GOLDEN = Path(__file__).parents[1] / "golden" / "3.9.2"
ADAPTER = Path(__file__).parents[1] / "adapters" / "line_index.py"
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
