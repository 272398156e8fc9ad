"""Supervisor of one program, which never outlives the harness: ``python supervisor.py PROGRAM ARGUMENT ...``.

The supervisor is run as a separate process and never imported. The harness writes to its standard input: the byte ``T``
terminates the program (SIGTERM), and ``K`` kills it (SIGKILL). The end of input also kills the program. It occurs
however the harness ends, including ``kill -9``. If the supervisor itself is killed, Linux kills the program.

The exit status is the program's own, or 128 + N after signal N.

A separate process is needed because ``PR_SET_PDEATHSIG`` reacts to the end of the *thread* that started the child, and
setting it needs code between fork and exec, which is not safe in a process with many threads and a JVM.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
# Interval in seconds. Another child of the harness may hold a copy of the input pipe, so that input does not end; then
# only a changed parent id shows that the harness has ended.
ORPHAN_CHECK = 1.0


def die_with_parent() -> None:
    """Let Linux kill the child when this process dies; called in the child before exec."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def serve_commands(child: subprocess.Popen[bytes], parent: int) -> None:
    """Execute the harness's commands until its end."""
    while True:
        readable, _, _ = select.select([0], [], [], ORPHAN_CHECK)
        command = os.read(0, 1) if readable else b"" if os.getppid() != parent else b"-"
        if command == b"T":
            child.terminate()
        elif command in {b"K", b""}:
            child.kill()
        if not command:
            return


def main(command: list[str]) -> int:
    """Run a program to its end; return its status."""
    parent = os.getppid()
    # No other thread runs yet, so code between fork and exec is safe; and this thread runs until the process ends.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)  # noqa: PLW1509, S603
    threading.Thread(target=serve_commands, args=(child, parent), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):
            signal.signal(number, lambda *_: child.terminate())
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))  # skips waiting for the thread that still reads input
