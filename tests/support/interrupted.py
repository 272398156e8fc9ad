"""Interrupt of a kidx or conformance command as by a terminal: all its processes receive the signal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60.0
"""Seconds after which a process counts as hanging."""


class Interrupted(NamedTuple):
    """Result of an interrupted command.

    Attributes:
        code: The exit code, negative if a signal ended the process; None if it hung.
        out, err: The output; on a terminal all of it is in ``err``.
        left: The processes of the session that still ran at the end; they were killed.
    """

    code: int | None
    out: str
    err: str
    left: list[int]


def session_of(pid: int) -> list[int]:
    """Return the running processes of a session."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                state, _, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(session) == pid and state != "Z":
                found.append(int(place.name))
    return found


def catches(pid: int, number: int) -> bool:
    """Return True if a process has a handler for a signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def until(happens, process) -> bool:
    """Wait until a condition is true; return False if the process ends or hangs before."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.001)
    return False


def interrupt(
    module: str,
    *arguments: object,
    number: int = signal.SIGINT,
    seconds: float = 0.0,
    workers: int = 0,
    alone: bool = False,
    terminal: bool = False,
) -> Interrupted:
    """Start a program and send it a signal.

    Args:
        module: The module of the program, such as ``kidx``.
        arguments: The arguments of the program.
        number: The signal.
        seconds: The delay before the signal, counted from the moment at which the program handles signals.
        workers: The number of worker processes that must run before the delay begins.
        alone: True to send the signal only to the first process, like ``timeout`` and ``kill``.
        terminal: True to connect standard output and standard error to a terminal.
    """
    ours, theirs = pty.openpty() if terminal else (None, subprocess.PIPE)
    with subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_heed,  # noqa: PLW1509 -- no lock is held
        env=os.environ | {"COLUMNS": "200", "TERM": "xterm"},
    ) as process:
        if terminal:
            os.close(theirs)
        heeded = until(lambda: catches(process.pid, signal.SIGTERM), process)
        if heeded and until(lambda: len(session_of(process.pid)) > workers, process):
            time.sleep(seconds)
            if process.poll() is None:
                (os.kill if alone else os.killpg)(process.pid, number)
        out, err = _read(process, ours)
        end = time.monotonic() + PATIENCE / 3
        while (left := session_of(process.pid)) and time.monotonic() < end:
            time.sleep(0.01)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        code = process.returncode
    return Interrupted(code, out, err, left)


def _heed() -> None:
    """Restore the default handler, because a background job of a shell ignores interrupts, and so do its children."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _read(process, terminal: int | None) -> tuple[str, str]:
    if terminal is None:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return "", "hangs"
        return out.decode(), err.decode()
    pieces = []
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not data:
            break
        pieces.append(data)
    os.close(terminal)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return "", "hangs"
    return "", b"".join(pieces).decode(errors="replace")
