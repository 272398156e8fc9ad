"""One Java process that cannot become an orphan."""

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
    """A program under :mod:`conformance.kafka.broker.supervisor`, its output appended to a log file.

    Args:
        command: the program and its arguments.
        log: where standard output and error go.
        directory: the working directory.

    Raises:
        OSError: it cannot be started, or the log cannot be written.
    """

    def __init__(self, command: Sequence[str | Path], *, log: Path, directory: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.log_start = output.tell()
            """How long the log was before this process."""
            self._process = subprocess.Popen(  # noqa: S603  (Java, with arguments of ours)
                # -I -S: nothing of the user's environment, and started in 15 ms.
                [sys.executable, "-I", "-S", SUPERVISOR, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
            )

    @property
    def pid(self) -> int:
        """Process id of the supervisor, which leads the process group that Java is in."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """What it ended with, 128 + N after signal N; None while it runs."""
        status = self._process.poll()
        return status if status is None or status >= 0 else 128 - status

    @property
    def running(self) -> bool:
        """Tell whether it runs."""
        return self.exit_status is None

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), without waiting."""
        self._say(b"T")

    def kill(self) -> None:
        """End it at once (SIGKILL) and wait until it is gone."""
        self._say(b"K")
        self._close()

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended; return whether it has."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        self._close()
        return True

    def _say(self, command: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self._process.stdin.write(command)
            self._process.stdin.flush()

    def _close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # to the supervisor the same as "kill"
        self._process.wait()
