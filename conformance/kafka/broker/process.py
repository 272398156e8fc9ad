"""Java process that ends with the harness, even if the harness is killed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPERVISOR = Path(__file__).with_name("supervisor.py")


class JavaProcess:
    """Program run by :mod:`conformance.kafka.broker.supervisor`, with its output appended to a log file.

    Args:
        command: the program and its arguments.
        log: file for standard output and standard error.
        directory: the working directory.

    Raises:
        OSError: the program cannot be started, or the log cannot be written.
    """

    def __init__(self, command: Sequence[str | Path], *, log: Path, directory: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.log_start = output.tell()
            """Size of the log in bytes before this process."""
            self._process = subprocess.Popen(  # noqa: S603  (Java, with the harness's own arguments)
                # -I -S ignores the user's environment and starts in 15 ms.
                [sys.executable, "-I", "-S", SUPERVISOR, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                start_new_session=True,  # only the harness handles a Ctrl-C at the terminal
            )

    @property
    def pid(self) -> int:
        """Process id of the supervisor, which is also the id of the process group with Java."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Exit status, or 128 + N after signal N; None while the process runs."""
        status = self._process.poll()
        return status if status is None or status >= 0 else 128 - status

    @property
    def running(self) -> bool:
        """True while the process runs."""
        return self.exit_status is None

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""
        self._send(b"T")

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""
        self._send(b"K")
        self._close()

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the process; return False if it still runs after the timeout."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        self._close()
        return True

    def _send(self, command: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the process has ended
            self._process.stdin.write(command)
            self._process.stdin.flush()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # the supervisor treats the end of input as "kill"
        self._process.wait()
