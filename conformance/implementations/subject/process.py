"""Server process that always ends with its owner; it can be stopped by SIGTERM or SIGKILL, and restarted.

The server of a third-party implementation has a data directory if it persists records.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, Self

from conformance.errors import ToolError
from conformance.implementations.subject.build import build
from conformance.kafka.broker.process import SUPERVISOR
from conformance.kafka.client.connection import Address
from conformance.kafka.polling import Deadline
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.subjects import Subject

READY: Final = 60.0
"""Maximum time in seconds until the server listens."""
END: Final = 30.0
"""Maximum time in seconds until the server ends after SIGTERM."""
_LONGEST: Final = 300  # bytes of the line with the address
_LAST: Final = 400  # characters at the end of the output that a message quotes
_BLOCK: Final = 1 << 16  # bytes per read


class ServerProcess:
    """Server; a context manager that starts it, and ends it with all processes that it has started.

    Args:
        name: The name in messages.
        command: The program and its arguments.
        address: The address that it listens at, or None if it prints the address as its first line.
    """

    def __init__(self, name: str, command: Sequence[str], address: Address | None = None) -> None:
        self.name = name
        self.command = list(command)
        self._address = address
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self._first = b""
        self._last = b""
        self._has_line = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)

    def start(self) -> Address:
        """Start the server; return its address once it listens.

        Raises:
            ToolError: It cannot be started, ends, does not listen in time, or another server uses the address.
        """
        if not self.command or shutil.which(self.command[0]) is None:
            raise ToolError(f"cannot start {self.name}: no program {' '.join(self.command[:1])!r}")
        if self._address is not None and _listens(self._address):
            raise ToolError(f"cannot start {self.name}: another server listens at {self._address}")
        self._first, self._last = b"", b""
        self._has_line.clear()
        self._process = subprocess.Popen(  # noqa: S603 -- a command of the catalogue, or of the user
            [sys.executable, "-I", "-S", SUPERVISOR, *self.command],  # it ends the server when this process ends
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if self._address is None else subprocess.STDOUT,
            start_new_session=True,  # a separate process group, which receives signals
        )
        readers = [(self._keep_last, self._process.stderr or self._process.stdout)]
        if self._address is None:
            readers.append((self._read_line, self._process.stdout))
        self._readers = [threading.Thread(target=read, args=(output,), daemon=True) for read, output in readers]
        for reader in self._readers:
            reader.start()
        try:
            return self._await_address()
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def stop(self, *, clean: bool) -> None:
        """Stop the server, by SIGTERM or by SIGKILL.

        Raises:
            ToolError: It does not end after SIGTERM, or still listens.
        """
        ended = self._end(signal.SIGTERM if clean else signal.SIGKILL)
        if not ended:
            raise ToolError(f"{self.name} does not end within {END:g} s of SIGTERM")
        if self._address is not None and _listens(self._address):
            raise ToolError(f"{self.name} has ended, but its address is in use: it must remain in the foreground")

    def _await_address(self) -> Address:
        deadline = Deadline(READY)
        assert self._process is not None
        if self._address is None:
            if not self._has_line.wait(deadline.left):
                raise ToolError(f"{self.name} does not print its address within {READY:g} s")
            line = self._first.decode("utf-8", "replace").strip()
            if not line:
                raise ToolError(f"{self.name} has ended before it printed its address{self._last_words()}")
            return Address.parse(line, f"the first line of {self.name}")
        while not _listens(self._address):
            if self._process.poll() is not None:
                raise ToolError(f"{self.name} has ended with status {self._process.returncode}{self._last_words()}")
            if not deadline.pause():
                raise ToolError(f"{self.name} does not listen at {self._address} within {READY:g} s")
        return self._address

    def _last_words(self) -> str:
        """End what an ended server has left running, and return the end of its output, as a message quotes it."""
        self._end(signal.SIGKILL)  # the output is read until no process has it open
        last = " ".join(self._last.decode("utf-8", "replace").split())[-_LAST:]
        return f": {last}" if last else ""

    def _read_line(self, output: IO[bytes]) -> None:
        """Read the first line and drop the rest, so that the server never waits for a reader."""
        with output, suppress(OSError, ValueError):
            self._first = output.readline(_LONGEST)
            self._has_line.set()
            while os.read(output.fileno(), _BLOCK):
                pass
        self._has_line.set()

    def _keep_last(self, output: IO[bytes]) -> None:
        """Read the output and keep its end."""
        with output, suppress(OSError, ValueError):
            while block := os.read(output.fileno(), _BLOCK):
                self._last = (self._last + block)[-4 * _LAST :]

    def _end(self, number: signal.Signals) -> bool:
        """Send a signal to the process group; return True if the program ended within the limit."""
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
                os.killpg(process.pid, signal.SIGKILL)  # remaining processes of its program
            process.wait()
            with suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            for reader in self._readers:
                reader.join(END)
        return True


def _listens(address: Address) -> bool:
    with suppress(OSError), socket.create_connection(address, 1.0):
        return True
    return False


@contextmanager
def server_of(subject: Subject) -> Iterator[ServerProcess]:
    """Build the server if necessary; yield its process, not started. Process and data are removed after the block.

    Raises:
        ToolError: It cannot be built.
    """
    out = build(subject)
    with scratch_directory() as data:
        words = [word.replace("{out}", str(out)).replace("{data}", str(data)) for word in subject.start]
        with ServerProcess(f"the subject {subject.name}", words) as process:
            yield process
