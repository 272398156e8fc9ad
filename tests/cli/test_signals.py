"""SIGTERM and SIGHUP end a run as an error would: no scratch directory is left in memory, and no adapter runs on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from thorough_params import thorough_param

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
