"""Java processes that end with the harness, even if it is killed, and command lines that run a release's classes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.kafka.broker.config import JVM_OPTIONS, logging_configuration
from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import load_release
from kidx.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Step


class JavaCommand:
    """Command that runs a main class of a release or a build.

    The constructor writes the logging configuration and the JVM's arguments into ``directory``. ``more_jars`` are
    at the end of the class path.

    Raises:
        ToolError: the release does not exist, Java is missing, or a jar cannot be fetched.
    """

    def __init__(
        self,
        release: str,
        directory: Path,
        progress: Callable[[Step], None] | None = None,
        build: Build | None = None,
        more_jars: Iterable[Path] = (),
    ) -> None:
        jars: Iterable[Path] = class_path(release, "broker", progress=progress) if build is None else build.jars
        logging = load_release(release).logging if build is None else build.logging
        configuration, text, option = logging_configuration(logging, directory)
        configuration.write_text(text, "utf-8")
        # An @-file keeps the class path of fifty jars out of the command line.
        arguments = directory / "java.args"
        arguments.write_text(java_arguments([*jars, *more_jars], option), "utf-8")
        self._java = find_java().executable
        self._arguments = arguments

    def __call__(self, main_class: str, *arguments: str | Path) -> list[str]:
        """Return the command line."""
        return [str(self._java), f"@{self._arguments}", main_class, *(str(argument) for argument in arguments)]


def java_arguments(jars: Iterable[Path], logging_option: str) -> str:
    """Return the content of an @-file: the options of a broker's JVM and its class path."""
    lines = [*JVM_OPTIONS, logging_option, "-cp", os.pathsep.join(str(jar) for jar in jars)]
    return "".join(f'"{_escaped(line)}"\n' for line in lines)


def _escaped(argument: str) -> str:
    return argument.replace("\\", "\\\\").replace('"', '\\"')


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
