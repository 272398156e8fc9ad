"""Base class of the brokers that the harness starts and stops, and the error of a broker."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self

from conformance.errors import ToolError
from conformance.kafka.broker.config import Mode, Node, default_mode, modes_of, server_properties
from conformance.kafka.broker.ports import HOST
from conformance.kafka.client import Address, Client, ClientError, kafka_python
from conformance.kafka.polling import Deadline
from conformance.kafka.releases import load_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Step

TAIL_LINES = 30
_CAUSE_LINES = 12
_MAX_LINE_LENGTH = 300
# A start at level INFO writes about 200 KiB.
_MAX_BYTES = 4 << 20
_ERROR_MARKS = (" FATAL ", " ERROR ", "Exception: ", "Error: ")


class BrokerError(ToolError):
    """Broker that did not start, did not stop, or died; the message is one line and names the broker's log.

    The last lines of the log are in ``tail``, and in a note of the exception, so that a traceback shows them.
    """

    def __init__(self, message: str, log: Path, *, since: int = 0) -> None:
        self.log = log
        lines = _lines_of(log, since)
        cause = next((n for n, line in enumerate(lines) if any(mark in line for mark in _ERROR_MARKS)), None)
        self.tail = "\n".join(_excerpt(lines, cause))
        reason = "" if cause is None else f" ({lines[cause].strip()[:_MAX_LINE_LENGTH]})"
        super().__init__(f"{message}{reason}: see {log}")
        if self.tail:
            self.add_note(f"From {log}:\n{self.tail}")


def _lines_of(log: Path, since: int) -> list[str]:
    """Return the lines of a log after its first ``since`` bytes; empty if the log cannot be read."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(since, end - _MAX_BYTES))
            return file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _excerpt(lines: list[str], cause: int | None) -> list[str]:
    """Return the last lines, and before them the first error: a failing broker writes many lines when it shuts down."""
    start = max(0, len(lines) - TAIL_LINES)
    shown = [] if cause is None or cause >= start else [*lines[cause : min(cause + _CAUSE_LINES, start)], "[…]"]
    return [line[:_MAX_LINE_LENGTH] for line in shown + lines[start:]]


# A broker is ready within 10 s, or within minutes if each core of the machine runs ten processes. A broker that
# cannot start exits, so a long limit costs no time.
START_LIMIT = 600.0
STOP_LIMIT = 30.0
_RESPONSE_TIMEOUT_S = 2.0
# Another harness may take a port between the moment it is found free and the moment the broker listens on it.
PORT_TRIES = 5

# 143 is 128 + SIGTERM: a JVM whose shutdown hooks have completed.
_CLEAN_STATUS = (0, 143)
_CLEAN_MARK = ".kafka_cleanshutdown"

Backend = Literal["local", "container"]

# Messages of Java and of Docker engines about a port that is in use.
_PORT_TAKEN = ("Address already in use", "address already in use", "port is already allocated")

_open: weakref.WeakSet[Broker] = weakref.WeakSet()
"""All brokers of this process that were not closed."""


class Process(Protocol):
    """Process that runs a broker."""

    log_start: int
    """Size of the log in bytes before this process."""

    @property
    def running(self) -> bool:
        """True while the process runs."""

    @property
    def exit_status(self) -> int | None:
        """Exit status, or 128 + N after signal N; None while the process runs."""

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""

    def kill(self) -> None:
        """Send SIGKILL, and wait until the process has ended."""

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the process; return False if it still runs after the timeout."""


class Broker(ABC):
    """Broker with its own controller or ZooKeeper; a context manager.

    Args:
        release: a locked release (one with a lock file of its jars); with a build, any release that kidx implements.
        directory: directory of the broker's files, which is kept on exit. If it has the data of an earlier broker,
            this broker continues with them. By default a new directory, removed unless an error occurs.
        config: broker properties, which override all properties set here.
        mode: ``"kraft"`` or ``"zookeeper"``; by default the usual mode of the release.
        base: parent of the new directory; by default the system's directory for temporary files.
        progress: called with the progress of fetching jars.
        build: build whose jars are used instead of the release's own; only as a local process.
        more_jars: jars at the end of the class path; only as a local process.

    Raises:
        UnknownReleaseError: the release is not locked.
        ToolError: the release cannot run in this mode.
    """

    backend: ClassVar[Backend]
    host: ClassVar[str] = HOST
    node_id = 1

    def __init__(
        self,
        release: str,
        directory: str | os.PathLike[str] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        mode: Mode | None = None,
        base: str | os.PathLike[str] | None = None,
        progress: Callable[[Step], None] | None = None,
        build: Build | None = None,
        more_jars: Iterable[Path] = (),
    ) -> None:
        self.release = load_release(release).name if build is None else release
        self.build = build
        self.more_jars = tuple(more_jars)
        self.mode: Mode = mode or default_mode(release)
        if self.mode not in modes_of(release):
            raise ToolError(f"Kafka {release} does not run with {self.mode} here, but with {modes_of(release)[0]}")
        self.config = dict(config or {})
        self.ready_seconds = 0.0
        """Duration of the last start in seconds."""
        self._progress = progress
        self._temporary = directory is None
        self._directory = Path(directory).absolute() if directory is not None else None
        self._base = base
        self._node: Node | None = None
        self._process: Process | None = None
        self._log_start = 0
        self._creator = os.getpid()
        _open.add(self)

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """Directory with all files of the broker; created on first use."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix=f"kidx-broker-{self.release}-", dir=self._base))
        return self._directory

    @property
    def log_dir(self) -> Path:
        """Kafka's ``log.dirs``, with one directory per partition."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """File with the output of all starts of the broker."""
        return self.directory / "broker.log"

    @property
    def output(self) -> str:
        """Output since the last start."""
        return self.log.read_bytes()[self._log_start :].decode("utf-8", errors="replace") if self.log.exists() else ""

    @property
    def port(self) -> int:
        """Port of the broker; it is reserved while the broker is down."""
        if self._node is None:
            raise RuntimeError("the broker has not been started")
        return self._node.port

    @property
    def bootstrap(self) -> str:
        """Bootstrap server for a client."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """True if the broker's process runs."""
        return self._process is not None and self._process.running

    def __repr__(self) -> str:
        where = self.bootstrap if self._node else "not started"
        state = "running" if self.running else "down"
        return f"{type(self).__name__}({self.release!r}, {where}, {state}, {self._directory})"

    def check(self) -> None:
        """Check, after a failed request, that the broker has not died.

        Raises:
            BrokerError: the broker has died.
        """
        if self._process is not None and not self._process.running:
            raise self._error(f"died with status {self._process.exit_status}")

    def connect(self) -> Client:
        """Return a client of the broker, which raises failures as this broker's errors.

        Raises:
            BrokerError: here and in the client: the broker died, does not answer, or rejects a request.
            ToolError: kafka-python is not installed.
        """
        return Client(Address(self.host, self.port), explain=self._explained)

    def _explained(self, error: ClientError) -> BrokerError:
        self.check()
        return self._error(error.what)

    # -- starting --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the broker, and wait until it answers; after ``stop`` or ``kill`` it has the same data and port.

        Raises:
            BrokerError: the broker ended, or did not answer in time. The directory is kept.
            ToolError: Java, an engine or kafka-python is missing, or the jars cannot be fetched.
        """
        if self.running:
            raise RuntimeError(f"{self!r} is running already")
        kafka_python()  # needed to check whether the broker is ready
        deadline = Deadline(START_LIMIT)
        if self._node is not None:
            self._start(self._node, deadline)
        else:
            self._start_first(deadline)
        self.ready_seconds = deadline.elapsed

    def _start_first(self, deadline: Deadline) -> None:
        for last in (False,) * (PORT_TRIES - 1) + (True,):
            node = self._new_node()
            try:
                self._start(node, deadline)
            except BrokerError as error:
                if last or not port_was_taken(error):
                    raise
            else:
                self._node = node
                return

    def _start(self, node: Node, deadline: Deadline) -> None:
        try:
            self.begin(node)
            self.await_ready(node, deadline)
        except BaseException:
            # After any error, including Ctrl-C, the processes must end: the caller does not know about them.
            self._end()
            raise

    def begin(self, node: Node) -> None:
        """Start the broker's process with the settings of a node, without waiting until the broker answers.

        Raises:
            BrokerError: the process could not be started.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        properties.write_text(server_properties(node, self.config), "utf-8")
        self._launch(node, properties)

    @abstractmethod
    def _new_node(self) -> Node:
        """Return a node with free ports."""

    @abstractmethod
    def _launch(self, node: Node, properties: Path) -> None:
        """Start the processes that the node needs, such as ZooKeeper, and the broker as ``self._process``."""

    def await_ready(self, node: Node, deadline: Deadline) -> None:
        """Wait until the broker answers.

        Raises:
            BrokerError: the broker ended, or did not answer in time.
        """
        while not _serves(node):
            assert self._process is not None
            if not self._process.running:
                raise self._error(f"did not start but ended with status {self._process.exit_status}")
            if not deadline.pause():
                raise self._error(f"was not ready within {deadline.limit:g} s")

    # -- stopping --------------------------------------------------------------------------------------------------

    def stop(self, limit: float = STOP_LIMIT) -> None:
        """Stop the broker cleanly (SIGTERM), and wait until its files are complete; no effect if it is down.

        Raises:
            BrokerError: the broker had died, or did not shut down cleanly. The directory is kept.
        """
        if self._process is None:
            return
        try:
            self.check()
            self._process.terminate()
            if not self._process.wait(limit):
                raise self._error(f"did not stop within {limit:g} s and was killed")
            status = self._process.exit_status
            if status not in _CLEAN_STATUS or not (self.log_dir / _CLEAN_MARK).exists():
                raise self._error(f"did not shut down cleanly: status {status}")
        finally:
            self._end()

    def kill(self) -> None:
        """Kill the broker (SIGKILL), so that no file is flushed or closed. ZooKeeper runs until ``stop`` or exit."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def close(self, *, keep: bool = False) -> None:
        """Kill the broker if it runs, and remove a temporary directory, unless ``keep`` is True."""
        self._end()
        _open.discard(self)
        if self._temporary and self._directory is not None and not keep:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _end(self) -> None:
        """Kill the broker if it runs, and end all processes that were started for it."""
        self.kill()

    # -- as a context manager --------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self._leave(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.stop()
            except BaseException as failure:
                self._leave(failure)
                raise
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        self.close(keep=error is not None)
        if error is not None and self._temporary:
            error.add_note(f"The broker's directory is kept: {self.directory}")

    def close_at_exit(self) -> None:
        """Close the broker on exit of the interpreter, but not on exit of a forked child."""
        if os.getpid() == self._creator:
            self.close()

    # -- errors ----------------------------------------------------------------------------------------------------

    def _error(self, what: str) -> BrokerError:
        return BrokerError(f"the broker of Kafka {self.release} {what}", self.log, since=self._log_start)


def port_was_taken(error: BrokerError) -> bool:
    """Return True if a broker could not start because another process listens on its port."""
    return any(message in f"{error}\n{error.tail}" for message in _PORT_TAKEN)


def _serves(node: Node) -> bool:
    """Return True if this broker answers; its node id and cluster id distinguish it from others on the port."""
    try:
        with Client(Address(HOST, node.port), limit=_RESPONSE_TIMEOUT_S) as client:
            metadata = client.metadata()
        meta = (node.data / "meta.properties").read_text("utf-8")
    except (ClientError, OSError):
        return False
    return (
        f"cluster.id={metadata.cluster_id}\n" in meta
        and any(known == node.node_id and at.port == node.port for known, at in metadata.brokers.items())
        and metadata.controller in metadata.brokers
    )


@atexit.register
def _close_all() -> None:
    for broker in list(_open):
        broker.close_at_exit()
