"""Cluster of several brokers of one release, as local processes.

::

    with LocalCluster("4.3.1") as cluster:
        cluster.members[2].kill()
        cluster.members[2].start()

With KRaft every broker is also a controller, so that one of the three may be down. ZooKeeper, in its mode, is a single
process that runs as long as the cluster. All files are in one directory, the files of broker 2 in ``broker-2``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from conformance.errors import ToolError
from conformance.kafka.broker.broker import PORT_TRIES, START_LIMIT, BrokerError, port_was_taken
from conformance.kafka.broker.config import Mode, Node, default_mode, modes_of, new_cluster_id
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.broker.ports import free_ports
from conformance.kafka.broker.process import JavaCommand
from conformance.kafka.broker.zookeeper import LocalZooKeeper
from conformance.kafka.polling import Deadline
from conformance.kafka.releases import load_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from conformance.kafka.jar_fetch import Step

SIZE: Final = 3

CONFIG: Final[dict[str, object]] = {
    # Followers that are down leave the in-sync replicas soon. Leadership moves only on request.
    "replica.lag.time.max.ms": 3000,
    "auto.leader.rebalance.enable": "false",
    "replica.fetch.wait.max.ms": 100,
    "replica.fetch.backoff.ms": 100,
}


class Member(LocalBroker):
    """Broker of a cluster; the cluster chooses the nodes of all members."""

    def __init__(
        self,
        node: Node,
        config: Mapping[str, object],
        zookeeper: LocalZooKeeper | None,
        progress: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(node.release, node.directory, config, mode=node.mode, progress=progress)
        self.node = self._node = node
        self.node_id = node.node_id
        self._shared = zookeeper

    def _start_zookeeper(self, node: Node) -> None:
        assert self._shared is not None
        self._shared.start()
        self._shared.await_session_expiry(f"/brokers/ids/{node.node_id}")


class LocalCluster:
    """Cluster of :data:`SIZE` brokers; a context manager.

    Args:
        release: a locked release: one with a lock file of its jars.
        config: properties of all brokers, which override :data:`CONFIG`.
        mode: ``"kraft"`` or ``"zookeeper"``; by default the usual mode of the release.
        base: parent of the cluster's directory; by default the system's directory for temporary files.
        progress: called with the progress of fetching jars.

    Raises:
        UnknownReleaseError: the release is not locked.
        ToolError: the release cannot run in this mode.
    """

    def __init__(
        self,
        release: str,
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
        self.members: dict[int, Member] = {}
        self.ready_seconds = 0.0
        """Duration of the start in seconds."""
        self._config = CONFIG | dict(config or {})
        self._progress = progress
        self._base = base
        self._directory: Path | None = None
        self._zookeeper: LocalZooKeeper | None = None

    @property
    def directory(self) -> Path:
        """Directory with all files of the cluster; created on first use."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix=f"kidx-cluster-{self.release}-", dir=self._base))
        return self._directory

    @property
    def running(self) -> list[Member]:
        """Running members, in the order of their ids."""
        return [member for member in self.members.values() if member.running]

    # -- starting and stopping -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all brokers, and wait until each answers.

        Raises:
            BrokerError: a broker ended, or did not answer in time. The directory is kept.
            ToolError: Java is missing, or the jars cannot be fetched.
        """
        deadline = Deadline(START_LIMIT)
        for last in (False,) * (PORT_TRIES - 1) + (True,):
            self._choose_nodes()
            try:
                self._together(lambda member: member.begin(member.node))
                for member in self.members.values():
                    member.await_ready(member.node, deadline)
            except BaseException as error:
                self.end()
                if last or not (isinstance(error, BrokerError) and port_was_taken(error)):
                    raise
                shutil.rmtree(self.directory, ignore_errors=True)
            else:
                self.ready_seconds = deadline.elapsed
                return

    def _choose_nodes(self) -> None:
        """Create a member with free ports for each broker; start ZooKeeper if the mode needs it."""
        ids = range(1, SIZE + 1)
        ports = free_ports(2 * SIZE + 1)
        kraft = self.mode == "kraft"
        self.directory.mkdir(parents=True, exist_ok=True)
        if not kraft:
            java = JavaCommand(self.release, self.directory, self._progress)
            self._zookeeper = LocalZooKeeper(java, self.directory, ports[-1])
            self._zookeeper.start()
        cluster_id = new_cluster_id()
        for node_id in ids:
            node = Node(
                self.release,
                self.mode,
                self.directory / f"broker-{node_id}",
                ports[node_id - 1],
                node_id,
                voters=dict(zip(ids, ports[SIZE:-1], strict=True)) if kraft else {},
                zookeeper=None if kraft else ports[-1],
                cluster_id=cluster_id,
            )
            self.members[node_id] = Member(node, self._config, self._zookeeper, self._progress)

    def stop(self) -> None:
        """Stop all running brokers cleanly and concurrently.

        If they stopped one after the other, the last one could not move its leadership to another broker.

        Raises:
            BrokerError: a broker had died, or did not shut down cleanly.
        """
        self._together(lambda member: member.stop(), self.running)
        self.end()

    def _together(self, act: Callable[[Member], None], members: Iterable[Member] | None = None) -> None:
        """Call a function for each member, or for some members, in parallel."""
        with ThreadPoolExecutor(SIZE, thread_name_prefix="kidx-cluster") as pool:
            for done in [pool.submit(act, member) for member in members or self.members.values()]:
                done.result()

    def end(self) -> None:
        """End all processes, without waiting for a clean stop."""
        try:
            for member in self.members.values():
                member.close()
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
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        self.end()
        if error is None:
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            error.add_note(f"The cluster's directory is kept: {self.directory}")
