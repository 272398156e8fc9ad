"""A real broker as a local process, from the locked jars.

::

    with LocalBroker("4.3.1", config={"log.index.interval.bytes": 64}) as broker:
        ...  # broker.bootstrap is "127.0.0.1:PORT"
        broker.stop()
        ...  # the files in broker.log_dir are complete
        broker.start()

It is always stopped: at the end of the block, at the end of the interpreter, and also when this process is
killed (:mod:`conformance.kafka.broker.supervisor`). What it needs lies in one directory, which is removed in
the end, and kept if anything went wrong.
"""

from __future__ import annotations

import atexit
import base64
import os
import shutil
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Self

from conformance.errors import ToolError
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.java_command import JavaCommand
from conformance.kafka.broker.polling import Deadline
from conformance.kafka.broker.ports import HOST, free_ports
from conformance.kafka.broker.process import JavaProcess
from conformance.kafka.broker.settings import Mode, Node, default_mode, modes_of, server_properties
from conformance.kafka.broker.wire import NotReadyError, ask_metadata
from conformance.kafka.broker.zookeeper import LocalZooKeeper
from conformance.kafka.releases import load_release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from conformance.kafka.fetch import Step

# Ready within 10 s even when both cores are busy; past a minute nothing more is coming.
START_LIMIT = 60.0
STOP_LIMIT = 30.0
FORMAT_LIMIT = 60.0
# Between the moment a port is found free and the one the broker takes it, another harness may have taken it.
PORT_TRIES = 5

# 128 + SIGTERM: a JVM whose shutdown hooks ran to the end.
_CLEAN_STATUS = (0, 143)
_CLEAN_MARK = ".kafka_cleanshutdown"

_open: weakref.WeakSet[LocalBroker] = weakref.WeakSet()


class LocalBroker:
    """One broker, with a controller or a ZooKeeper of its own.

    Args:
        release: a locked release.
        directory: where it lives; it is kept in the end, and a broker that lived there before comes up again with
            its data. By default a new directory, removed if all went well.
        config: broker properties, which win over everything that is set here.
        mode: ``"kraft"`` or ``"zookeeper"``; by default what the release was made for.
        base: where to make the new directory; by default the system's place for temporary files.
        progress: told how far the fetching of jars is.

    Raises:
        UnknownReleaseError: the release is not locked.
        ToolError: it cannot run in this mode.
    """

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
    ) -> None:
        self.release = load_release(release).name
        self.mode: Mode = mode or default_mode(release)
        if self.mode not in modes_of(release):
            raise ToolError(f"Kafka {release} does not run with {self.mode} here, but with {modes_of(release)[0]}")
        self.config = dict(config or {})
        self.ready_seconds = 0.0
        """How long the last start took."""
        self._progress = progress
        self._temporary = directory is None
        self._directory = Path(directory).absolute() if directory is not None else None
        self._base = base
        self._java: JavaCommand | None = None
        self._node: Node | None = None
        self._process: JavaProcess | None = None
        self._zookeeper: LocalZooKeeper | None = None
        self._log_start = 0
        self._creator = os.getpid()
        _open.add(self)

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> Path:
        """Everything of this broker; made when it is first asked for."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix=f"kidx-broker-{self.release}-", dir=self._base))
        return self._directory

    @property
    def log_dir(self) -> Path:
        """Kafka's ``log.dirs``: a directory for each partition."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """The file with everything that the broker printed, over all its starts."""
        return self.directory / "broker.log"

    @property
    def output(self) -> str:
        """What it printed since the last start."""
        return self.log.read_bytes()[self._log_start :].decode("utf-8", errors="replace") if self.log.exists() else ""

    @property
    def port(self) -> int:
        """Where it listens, also while it is down."""
        if self._node is None:
            raise RuntimeError("the broker has not been started")
        return self._node.port

    @property
    def bootstrap(self) -> str:
        """What a client takes as bootstrap server."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Tell whether its process runs."""
        return self._process is not None and self._process.running

    def __repr__(self) -> str:
        where = self.bootstrap if self._node else "not started"
        return f"LocalBroker({self.release!r}, {where}, {'running' if self.running else 'down'}, {self._directory})"

    def check(self) -> None:
        """Make sure that it has not died; to be called when a client's request failed.

        Raises:
            BrokerError: it has.
        """
        if self._process is not None and not self._process.running:
            raise self._error(f"died with status {self._process.exit_status}")

    # -- starting --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it and wait until it serves; again after ``stop`` or ``kill``, with its data and on its port.

        Raises:
            BrokerError: it ended, or did not serve in time. The directory is kept.
            ToolError: no Java, or the jars cannot be had.
        """
        if self.running:
            raise RuntimeError(f"{self!r} is running already")
        self.directory.mkdir(parents=True, exist_ok=True)
        deadline = Deadline(START_LIMIT)
        self._java = self._java or JavaCommand(self.release, self.directory, self._progress)
        if self._node is not None:
            self._start(self._node, deadline)
        else:
            self._start_first(deadline)
        self.ready_seconds = deadline.elapsed

    def _start_first(self, deadline: Deadline) -> None:
        for last in (False,) * (PORT_TRIES - 1) + (True,):
            port, other = free_ports(2)
            kraft = self.mode == "kraft"
            node = Node(
                self.release,
                self.mode,
                self.directory,
                port,
                self.node_id,
                voters={self.node_id: other} if kraft else {},
                zookeeper=None if kraft else other,
            )
            try:
                self._start(node, deadline)
            except BrokerError as error:
                self._zookeeper = None
                if last or not _port_was_taken(error):
                    raise
            else:
                self._node = node
                return

    def _start(self, node: Node, deadline: Deadline) -> None:
        assert self._java is not None
        try:
            properties = self.directory / "server.properties"
            properties.write_text(server_properties(node, self.config), "utf-8")
            if node.mode == "kraft":
                self._format(node, properties)
            else:
                self._start_zookeeper(node)
            self._process = self._run("kafka.Kafka", properties)
            self._await_ready(node, self._process, deadline)
        except BaseException:
            # Also on Ctrl-C: whatever runs by now is not left to the caller.
            self._end()
            raise

    def _run(self, main_class: str, *arguments: str | Path) -> JavaProcess:
        assert self._java is not None
        process = JavaProcess(self._java(main_class, *arguments), log=self.log, directory=self.directory)
        self._log_start = process.log_start
        return process

    def _format(self, node: Node, properties: Path) -> None:
        """Give the directories a cluster id, as Kafka's own tool does it; once."""
        if (node.data / "meta.properties").exists():
            return
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")
        # "=": the id may begin with a dash.
        self._process = self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", properties)
        if not self._process.wait(FORMAT_LIMIT):
            raise self._error(f"could not format its storage within {FORMAT_LIMIT:g} s")
        if self._process.exit_status != 0:
            raise self._error(f"could not format its storage: status {self._process.exit_status}")

    def _start_zookeeper(self, node: Node) -> None:
        assert self._java is not None
        assert node.zookeeper is not None
        self._zookeeper = self._zookeeper or LocalZooKeeper(self._java, self.directory, node.zookeeper)
        self._zookeeper.start()
        self._zookeeper.await_forgotten(f"/brokers/ids/{node.node_id}")

    def _await_ready(self, node: Node, process: JavaProcess, deadline: Deadline) -> None:
        while not _serves(node):
            if not process.running:
                raise self._error(f"did not start but ended with status {process.exit_status}")
            if not deadline.pause():
                raise self._error(f"was not ready within {deadline.limit:g} s")

    # -- stopping --------------------------------------------------------------------------------------------------

    def stop(self, limit: float = STOP_LIMIT) -> None:
        """Stop it cleanly (SIGTERM) and wait; its files are complete then. Does nothing if it is down.

        Raises:
            BrokerError: it had died, or did not shut down cleanly. The directory is kept.
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
        """Kill it (SIGKILL): nothing is flushed, nothing is closed. A ZooKeeper runs on until ``stop`` or the end."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def close(self, *, keep: bool = False) -> None:
        """End it however it is, without waiting for a clean stop, and remove its directory unless ``keep``."""
        self._end()
        _open.discard(self)
        if self._temporary and self._directory is not None and not keep:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _end(self) -> None:
        try:
            self.kill()
        finally:
            if self._zookeeper is not None:
                self._zookeeper.stop()

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
        """End it with the interpreter, unless a forked child's."""
        if os.getpid() == self._creator:
            self.close()

    # -- what went wrong -------------------------------------------------------------------------------------------

    def _error(self, what: str) -> BrokerError:
        return BrokerError(f"the broker of Kafka {self.release} {what}", self.log, since=self._log_start)


def _port_was_taken(error: BrokerError) -> bool:
    return "Address already in use" in error.tail


def _serves(node: Node) -> bool:
    """Tell whether this very broker serves: it knows itself, under the cluster id that its own directory holds."""
    try:
        metadata = ask_metadata(node.port)
        meta = (node.data / "meta.properties").read_text("utf-8")
    except (NotReadyError, OSError):
        return False
    return (
        f"cluster.id={metadata.cluster_id}\n" in meta
        and metadata.brokers.get(node.node_id) == node.port
        and metadata.controller in metadata.brokers
    )


@atexit.register
def _close_all() -> None:
    for broker in list(_open):
        broker.close_at_exit()
