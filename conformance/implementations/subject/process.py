"""A server program that cannot become an orphan: started, stopped by SIGTERM or SIGKILL, and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, Self

from conformance.errors import ToolError
from conformance.kafka.broker.process import SUPERVISOR
from conformance.kafka.client.connection import Address
from conformance.kafka.polling import Deadline

READY: Final = 60.0
"""Seconds until it has to listen."""
END: Final = 30.0
"""Seconds until it has to end after SIGTERM."""
_LONGEST: Final = 300
_LAST: Final = 400


class ServerProcess:
    """A server; a context manager that starts it, and ends it and whatever it has started.

    Args:
        name: how messages call it.
        command: the program and its arguments.
        address: where it listens; None if the first line that it prints says that.
    """

    def __init__(self, name: str, command: Sequence[str], address: Address | None = None) -> None:
        self.name = name
        self.command = list(command)
        self._told = address
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._first = b""
        self._last = b""
        self._has_line = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)

    def start(self) -> Address:
        """Start it; where it listens, once it does.

        Raises:
            ToolError: it cannot be started, ends, does not listen in time, or another server is there already.
        """
        if not self.command or shutil.which(self.command[0]) is None:
            raise ToolError(f"{self.name} cannot be started: there is no program {' '.join(self.command[:1])!r}")
        if self._told is not None and _listens(self._told):
            raise ToolError(f"a server listens at {self._told} already, and {self.name} is to be started there")
        self._first, self._last = b"", b""
        self._has_line.clear()
        self._process = subprocess.Popen(  # noqa: S603 -- the catalogue's command, or the user's own
            [sys.executable, "-I", "-S", SUPERVISOR, *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._told is None else subprocess.STDOUT,
            start_new_session=True,  # a process group of its own, which signals go to
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        try:
            return self._await_address()
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def stop(self, *, clean: bool) -> None:
        """Stop it, by SIGTERM or by SIGKILL.

        Raises:
            ToolError: it does not end after SIGTERM, or still listens.
        """
        ended = self._end(signal.SIGTERM if clean else signal.SIGKILL)
        if not ended:
            raise ToolError(f"{self.name} does not end within {END:g} s of SIGTERM")
        if self._told is not None and _listens(self._told):
            raise ToolError(f"{self.name} has ended, and a server listens at {self._told}: it must stay in foreground")

    def _await_address(self) -> Address:
        deadline = Deadline(READY)
        assert self._process is not None
        if self._told is None:
            if not self._has_line.wait(deadline.left):
                raise ToolError(f"{self.name} does not say where it listens within {READY:g} s")
            line = self._first.decode("utf-8", "replace").strip()
            if not line:
                raise ToolError(f"{self.name} has ended before it said where it listens")
            return Address.parse(line, f"what {self.name} prints first")
        while not _listens(self._told):
            if self._process.poll() is not None:
                last = " ".join(self._last.decode("utf-8", "replace").split())[-_LAST:]
                raise ToolError(f"{self.name} has ended with status {self._process.returncode}: {last}")
            if not deadline.pause():
                raise ToolError(f"{self.name} does not listen at {self._told} within {READY:g} s")
        return self._told

    def _read(self, output: IO[bytes]) -> None:
        """Takes its first line and its last words; the rest is dropped, so that it never waits for a reader."""
        with output, suppress(OSError, ValueError):
            self._first = output.readline(_LONGEST)
            self._last = self._first
            self._has_line.set()
            while block := os.read(output.fileno(), 1 << 16):
                self._last = (self._last + block)[-4 * _LAST :]
        self._has_line.set()

    def _end(self, number: signal.Signals) -> bool:
        """Signals the whole group; whether it has ended by itself."""
        process, self._process = self._process, None
        if process is None:
            return True
        with suppress(OSError):
            os.killpg(process.pid, number)
        try:
            process.wait(END)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)  # what its program has left behind
            process.wait()
            with suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            if self._reader is not None:
                self._reader.join(END)
        return True


def _listens(address: Address) -> bool:
    with suppress(OSError), socket.create_connection(address, 1.0):
        return True
    return False
