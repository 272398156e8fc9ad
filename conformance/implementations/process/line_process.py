"""Program that replies to each line with one line, and all the ways in which it can fail.

The program may reply too late, not at all, or twice. It may die, fill the pipe of stderr, or stop reading its input. In
every case, :meth:`LineProcess.ask` returns within the deadline, with a reply or with a :class:`LineProcessError` that
describes the failure and ends with the output on stderr.

One thread and ``poll`` are enough: a request takes a write, two polls and a read.

The beginning and the end of the latest output on stderr, and the end of earlier output, are kept. A panic states its
cause first and then lists threads; a traceback states its cause last.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from conformance.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD: Final = 2048
"""Number of bytes that are kept from the beginning of the output after a request."""
TAIL: Final = 2048
"""Number of bytes that are kept from the end of the output."""
_FIRST_LINES: Final = 12
_LAST_LINES: Final = 4


class StandardError:
    """Shortened text of a program's stderr."""

    def __init__(self) -> None:
        self._earlier = b""
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def begin(self) -> None:
        """Mark the beginning of a request, to which later output belongs."""
        if self._first:
            self._earlier = bytes(self._earlier + self._first + self._last)[-TAIL:]
            self._first.clear()
            self._last.clear()
            self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add output."""
        room = HEAD - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        surplus = len(self._last) - TAIL
        if surplus > 0:
            self._left_out += surplus
            del self._last[:surplus]

    def __str__(self) -> str:
        """Return the first and last lines since the last request, or if it had no output, the end of earlier output."""
        if not self._first:
            return _cut(_text(self._earlier).split("\n"), 0)
        if self._left_out:
            return _cut([*_text(self._first).split("\n"), *_text(self._last).split("\n")], self._left_out)
        return _cut(_text(self._first + self._last).split("\n"), 0)


def _text(data: bytes | bytearray) -> str:
    return bytes(data).decode("utf-8", "replace").strip().expandtabs(4)


def _cut(lines: list[str], left_out: int) -> str:
    """Join the first and the last lines; ``left_out`` bytes between them are missing already."""
    surplus = len(lines) - _FIRST_LINES - _LAST_LINES
    if surplus <= 1 and not left_out:
        return "\n".join(lines)
    more = f" and {left_out} bytes" if left_out else ""
    first, last = lines[:_FIRST_LINES], lines[max(_FIRST_LINES, len(lines) - _LAST_LINES) :]
    return "\n".join((*first, f"[... {max(surplus, 0)} lines{more} omitted ...]", *last))


WAITED: Final = ("gave no reply within", "did not read its input within")
"""Beginnings of the descriptions of failures for which the harness waited until a deadline."""

STDERR_SAYS: Final = "; its stderr says:\n"
"""Separator between the description of a failure and the program's output."""

LONGEST_REPLY: Final = 16 << 20
"""Maximum length of a line in bytes; a longer line is malformed."""

_CHUNK: Final = 1 << 16
_GRACE: Final = 5.0  # seconds that the kernel gets to end a killed process
_AFTER_END: Final = 1.0  # seconds in which a child process of an ended program may still reply
_UNASKED: Final = " before any request"
_GLANCE: Final = 50  # milliseconds after which a program that has not replied is checked: does it still run?


Reason = Literal["late", "deaf", "ended", "noisy", "malformed"]
"""Reason of a failure: no reply in time; input not read; ended; more than one line; not a reply of the protocol."""


class LineProcessError(Exception):
    """Failure of a program to reply properly; the message describes the failure and contains the request."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LineProcess:
    """Running program.

    It leads its own process group, so that its child processes (of a shell, or of ``go run``) end with it.

    Args:
        command: The program and its arguments.

    Raises:
        OSError: The program cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 -- the command of the user
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in pipes if pipe is not None)
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._received = b""
        self._complaints = StandardError()
        self._stderr_ended = False
        self._asked = ""
        self.alive = True

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """First and last lines that it has written to stderr since the last request."""
        return str(self._complaints)

    def ask(self, request: str, deadline: float) -> str:
        """Write one line and read one.

        Args:
            request: The line, without the line break.
            deadline: The time limit in seconds for both.

        Returns:
            The reply, without the line break.

        Raises:
            LineProcessError: There is no reply, or more than one; the program has then been killed.
        """
        if self._poll.poll(0) or self._received:
            self._expect_silence()
        self._asked = request
        self._complaints.begin()
        until = time.monotonic() + deadline
        self._write(request.encode() + b"\n", until, deadline)
        while b"\n" not in self._received:
            if not self._read(until):
                if self._process.poll() is not None:
                    self._ended(", while a process that it has started keeps its output open, instead of replying")
                self._fail("late", f"{WAITED[0]} {deadline:g} s", request)
            if len(self._received) > LONGEST_REPLY:
                self._fail(
                    "malformed", f"wrote {len(self._received)} bytes without a line break instead of a reply", request
                )
        line, _, self._received = self._received.partition(b"\n")
        if self._received:
            self._expect_silence(first=line + b"\n")
        try:
            return line.decode()
        except UnicodeDecodeError:
            self._fail("malformed", f"replied with bytes that are not UTF-8, {quoted(repr(line))},", request)

    def fail(self, what: str) -> NoReturn:
        """Reject the reply to the last request, and kill the program.

        Raises:
            LineProcessError: Always; the message is ``what`` and the request.
        """
        self._fail("malformed", what, self._asked)

    def finish(self, request: str | None, deadline: float) -> tuple[int | None, str]:
        """Wait until the program ends, after a last request, or after the end of its input if the request is None.

        Returns:
            The exit status (None if the program had to be killed), and the output to stdout since the call.
        """
        until = time.monotonic() + deadline
        with contextlib.suppress(LineProcessError, OSError):
            if request is not None:
                self._asked = request
                self._write(request.encode() + b"\n", until, deadline)
            else:
                self._close_stdin()
            while self._read(until):
                pass
        status = self._exit_status(max(0.0, until - time.monotonic()))
        written = self._received
        self.kill()
        return status, written.decode("utf-8", "replace")

    def kill(self) -> None:
        """Kill the process group with SIGKILL and wait for its end; a second call does nothing."""
        if not self.alive:
            return
        self.alive = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self._drain(time.monotonic() + _GRACE)
        self._close_stdin()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    # -- reading and writing -----------------------------------------------------------------------------------

    def _write(self, data: bytes, until: float, deadline: float) -> None:
        while True:
            try:
                written = os.write(self._stdin, data)
            except BlockingIOError:
                written = 0
            except OSError:  # a broken pipe
                self._ended()
            if written == len(data):
                return
            data = data[written:]
            self._make_room(until, deadline)

    def _make_room(self, until: float, deadline: float) -> None:
        """Wait until the program reads its input, and read stderr in the meantime."""
        room = select.poll()
        room.register(self._stdin, select.POLLOUT)
        if not self._stderr_ended:
            room.register(self._stderr, select.POLLIN)
        ready = dict(room.poll(min(_milliseconds(until), _GLANCE)))
        if not ready and self._process.poll() is not None:
            self._ended(", while a process that it has started keeps its input open, instead of replying")
        if time.monotonic() > until:
            self._fail("deaf", f"{WAITED[1]} {deadline:g} s", self._asked)
        self._listen(ready)

    def _read(self, until: float) -> bool:
        """Wait for output; return False if the time is up. The end of the output is a failure.

        The wait also ends when the program has ended, because child processes may keep the output open indefinitely.
        """
        has_ended = False
        while True:
            ready = self._poll.poll(min(_milliseconds(until), _GLANCE))
            if time.monotonic() > until:
                return False
            if not ready:
                if not has_ended and self._process.poll() is not None:
                    has_ended, until = True, min(until, time.monotonic() + _AFTER_END)
                continue
            if len(ready) > 1 or ready[0][0] != self._stdout:
                self._listen(dict(ready))
                if not any(pipe == self._stdout for pipe, _ in ready):
                    continue
            data = os.read(self._stdout, _CHUNK)
            if not data:
                self._ended()
            self._received += data
            return True

    def _listen(self, ready: dict[int, int]) -> None:
        """Read the output on stderr."""
        if self._stderr not in ready:
            return
        data = os.read(self._stderr, _CHUNK)
        if not data:
            self._stderr_ended = True
            self._poll.unregister(self._stderr)
        self._complaints.add(data)

    def _expect_silence(self, first: bytes = b"") -> None:
        """Fail if the program wrote to standard output without a request. Output on stderr is allowed.

        Args:
            first: The line that was read at the same time; then it is unknown which of the two lines is the reply.
        """
        ready = dict(self._poll.poll(0))
        self._listen(ready)
        if self._stdout in ready:
            data = os.read(self._stdout, _CHUNK)
            if not data:
                self._ended(" after its reply" if self._asked else _UNASKED)
            self._received += data
        if self._received:
            said = quoted(repr((first + self._received).decode("utf-8", "replace")))
            if not self._asked:
                self._fail("noisy", f"wrote {said}{_UNASKED}", "")
            self._fail("noisy", f"wrote more than one line, {said} {'in one go' if first else 'as well'},", self._asked)

    def _drain(self, until: float) -> None:
        """Read both pipes until no process of the group can write to them or to a file any more.

        Killed processes keep the pipes open until they end, so the end of the pipes is the end of the group. A daemon
        with its own session also keeps the pipes open, and is not killed; if one exists, the processes of the group are
        checked.
        """
        waiting = select.poll()
        for pipe in (self._stdout, self._stderr):
            waiting.register(pipe, select.POLLIN)
        ended, look = 0, time.monotonic() + _GLANCE / 1000
        while ended < 2 and time.monotonic() < until:
            for pipe, _ in waiting.poll(_GLANCE):
                data = os.read(pipe, _CHUNK)
                if not data:
                    waiting.unregister(pipe)
                    ended += 1
                elif pipe == self._stderr:
                    self._complaints.add(data)
            if time.monotonic() >= look:
                if not is_group_alive(self._process.pid):
                    return
                look = time.monotonic() + _GLANCE / 1000

    # -- the end -----------------------------------------------------------------------------------------------

    def _ended(self, when: str = "") -> NoReturn:
        status = self._exit_status(1.0)
        rest = f", leaving {quoted(repr(self._received.decode('utf-8', 'replace')))} without a line break"
        how = "closed its output" if status is None else f"ended ({_in_words(status)})"
        self._fail("ended", how + (rest if self._received else "") + (when or " instead of replying"), self._asked)

    def _fail(self, reason: Reason, what: str, request: str) -> NoReturn:
        self.kill()
        message = f"{what} to {quoted(request)}" if request else what
        if self.stderr:
            message += STDERR_SAYS + self.stderr
        raise LineProcessError(reason, message)

    def _exit_status(self, deadline: float) -> int | None:
        try:
            return self._process.wait(deadline)
        except subprocess.TimeoutExpired:
            return None

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def is_group_alive(group: int) -> bool:
    """Return True if a process of a group is still active; a process that only waits to be reaped is not."""
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- names are all it takes
    except OSError:
        processes = []
    if not processes:  # no Linux
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        return True
    return any(_is_member(process, group) for process in processes)


def _is_member(process: str, group: int) -> bool:
    try:
        # The name may contain any character; after it come the state, the parent and the group.
        state, _, its_group = Path("/proc", process, "stat").read_bytes().rpartition(b") ")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(its_group) == group and state not in b"ZX"


def _milliseconds(until: float) -> int:
    # Rounded up: a wait of less than a millisecond must not become a busy one.
    return max(0, int((until - time.monotonic()) * 1000) + 1)


def _in_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"
