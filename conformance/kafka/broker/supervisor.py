"""Runs one program and sees to it that it never outlives us: ``python supervisor.py PROGRAM ARGUMENT ...``.

Run as a program of its own, never imported. Standard input is the line to the harness: the byte ``T``
terminates the program (SIGTERM), ``K`` kills it (SIGKILL), and so does the end of input, which comes however
the harness ends, ``kill -9`` included. Should this process itself be killed, Linux kills the program.

The exit status is the program's own, or 128 + N after signal N.

Why a process in between: ``PR_SET_PDEATHSIG`` counts the death of the *thread* that started the child, and
setting it needs code between fork and exec, which is not safe in a process full of threads and a JVM.
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
# Some other child of the harness may hold a copy of our line; then only our parent's number tells.
ORPHAN_CHECK = 1.0


def die_with_parent() -> None:
    """In the child, before exec: be killed when this process dies, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def obey(child: subprocess.Popen[bytes], parent: int) -> None:
    """Do what the harness says until it is gone."""
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
    # Still one thread here, so that code between fork and exec is safe, and it is the thread that lives longest.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)  # noqa: PLW1509, S603
    threading.Thread(target=obey, args=(child, parent), daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):
            signal.signal(number, lambda *_: child.terminate())
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))  # at once: a thread still waits for input
