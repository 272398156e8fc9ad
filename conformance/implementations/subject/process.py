"""Third-party implementations: their builds, with the tools of their languages and in the cache, and their servers.

A server process always ends with its owner; it can be stopped by SIGTERM or SIGKILL, and restarted. It has a data
directory if it persists records. The jars of a library of Java classes are treated as a build of Kafka.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import contextmanager, suppress
from importlib.resources import as_file
from typing import IO, TYPE_CHECKING, Final, Self

from conformance.errors import ToolError
from conformance.kafka.broker.process import SUPERVISOR
from conformance.kafka.builds import Build
from conformance.kafka.client.connection import Address
from conformance.kafka.jar_fetch import cache_directory
from conformance.kafka.polling import Deadline
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

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


LIMIT: Final = 900.0
"""Maximum duration of a build in seconds."""
_LAST_LINES: Final = 400
"""Number of characters at the end of a failed build's output that a message quotes."""


def missing_tools(subject: Subject) -> list[str]:
    """Return the required programs that are missing from the PATH."""
    return [tool for tool in subject.needs if shutil.which(tool) is None]


def place_of(subject: Subject) -> Path:
    """Return the build directory, which exists if the implementation is built.

    Its name depends on the sources, and on the version of Python if they need it: wheels are for one version.
    """
    with as_file(subject.folder) as sources:
        digest = hashlib.sha256(json.dumps([subject.build, dict(subject.environment), subject.version]).encode())
        for path in sorted(path for path in sources.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(sources)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    if "python3" in subject.needs:
        digest.update(_python_tag())
    return cache_directory() / "subjects" / f"{subject.name}-{digest.hexdigest()[:16]}"


def _python_tag() -> bytes:
    """Return the cache tag of the ``python3`` on the PATH, such as ``cpython-311``; empty if it does not exist."""
    command = ["python3", "-c", "import sys; print(sys.implementation.cache_tag)"]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603 -- a constant
    except (OSError, subprocess.CalledProcessError):
        return b""


def build(subject: Subject) -> Path:
    """Build the implementation unless it is built; return its directory, which is complete as soon as it exists.

    Raises:
        ToolError: A tool is missing, or the build fails or takes too long.
    """
    place = place_of(subject)
    if place.is_dir():
        return place
    if missing := missing_tools(subject):
        raise ToolError(f"the subject {subject.name} requires {', '.join(missing)} on the PATH")
    partial = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    try:
        with _one_at_a_time(place.parent):
            if place.is_dir():  # another process has built it
                return place
            with as_file(subject.folder) as sources:
                shutil.copytree(sources, partial / "sources")
            _run(subject, partial)
            partial.rename(place)
    except OSError as error:
        raise ToolError(f"the subject {subject.name} cannot be built in {place.parent}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return place


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Lock a directory, so that one process builds and the others wait. The end of the process releases the lock."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def command_of(subject: Subject) -> list[str]:
    """Build the implementation, unless it is built; return the command that starts it.

    In the commands of the catalogue, ``{out}`` is the build directory.

    Raises:
        ToolError: As :func:`build`.
    """
    out = build(subject)
    return [word.replace("{out}", str(out)) for word in subject.start]


def _run(subject: Subject, partial: Path) -> None:
    command = [word.replace("{out}", str(partial)) for word in subject.build]
    message = f"the subject {subject.name} cannot be built"
    try:
        done = subprocess.run(  # noqa: S603 -- a command of the package's own catalogue
            command,
            cwd=partial / "sources",
            env={**os.environ, **subject.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{message}: {subject.build[0]} was not done within {LIMIT:g} s") from None
    if done.returncode:
        last = " ".join(done.stdout.decode("utf-8", "replace").split())[-_LAST_LINES:]
        raise ToolError(f"{message}: {subject.build[0]} ended with status {done.returncode}: {last}")


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


_JAVA_8: Final = 52
"""Class file format of Java 8; whether Java can load newer classes is noticed when they are loaded."""


def classes_of(subject: Subject, release: str) -> Build:
    """Build the implementation if necessary; return its jars, with the release with which they are compared.

    Raises:
        ToolError: The implementation cannot be built, or has no jars.
    """
    jars = tuple(sorted((build(subject) / "lib").glob("*.jar")))
    if not jars:
        raise ToolError(f"the subject {subject.name} was built without jars in lib")
    return Build(f"subject:{subject.name}", jars, subject.version, release, _JAVA_8, is_kafka=False)
