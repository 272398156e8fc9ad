"""Real broker as a local process, from the jars in its release's lock file.

::

    with LocalBroker("4.3.1", config={"log.index.interval.bytes": 64}) as broker:
        ...  # broker.bootstrap is "127.0.0.1:PORT"
        broker.stop()
        ...  # the files in broker.log_dir are complete
        broker.start()

The broker ends with this process, even if this process is killed (:mod:`conformance.kafka.broker.supervisor`).
"""

from __future__ import annotations

from pathlib import Path

from conformance.kafka.broker.broker import Broker
from conformance.kafka.broker.config import Node, new_cluster_id
from conformance.kafka.broker.ports import free_ports
from conformance.kafka.broker.process import JavaCommand, JavaProcess
from conformance.kafka.broker.zookeeper import LocalZooKeeper

FORMAT_LIMIT = 600.0
"""Maximum seconds for formatting the directories with KRaft."""


class LocalBroker(Broker):
    """Broker with its own controller or ZooKeeper; see :class:`Broker` for its arguments."""

    backend = "local"
    _java: JavaCommand | None = None
    _zookeeper: LocalZooKeeper | None = None

    def _new_node(self) -> Node:
        port, other = free_ports(2)
        self._zookeeper = None  # after a failed start, ZooKeeper gets a new port, too
        kraft = self.mode == "kraft"
        return Node(
            self.release,
            self.mode,
            self.directory,
            port,
            self.node_id,
            voters={self.node_id: other} if kraft else {},
            zookeeper=None if kraft else other,
        )

    def _launch(self, node: Node, properties: Path) -> None:
        self._java = self._java or JavaCommand(self.release, self.directory, self._progress, self.build, self.more_jars)
        if node.mode == "kraft":
            self._format(node, properties)
        else:
            self._start_zookeeper(node)
        self._process = self._run("kafka.Kafka", properties)

    def _run(self, main_class: str, *arguments: str | Path) -> JavaProcess:
        assert self._java is not None
        process = JavaProcess(self._java(main_class, *arguments), log=self.log, directory=self.directory)
        self._log_start = process.log_start
        return process

    def _format(self, node: Node, properties: Path) -> None:
        """Format the directories with Kafka's own tool, unless they are formatted."""
        if (node.data / "meta.properties").exists():
            return
        cluster_id = node.cluster_id or new_cluster_id()
        # With "=", because the id may begin with a dash.
        self._process = self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", properties)
        if not self._process.wait(FORMAT_LIMIT):
            raise self._error(f"did not format its storage within {FORMAT_LIMIT:g} s")
        if self._process.exit_status != 0:
            raise self._error(
                f"could not format its storage: kafka.tools.StorageTool ended with status {self._process.exit_status}"
            )

    def _start_zookeeper(self, node: Node) -> None:
        assert self._java is not None
        assert node.zookeeper is not None
        self._zookeeper = self._zookeeper or LocalZooKeeper(self._java, self.directory, node.zookeeper)
        self._zookeeper.start()
        self._zookeeper.await_session_expiry(f"/brokers/ids/{node.node_id}")

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            if self._zookeeper is not None:
                self._zookeeper.stop()
