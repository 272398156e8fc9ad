"""A real broker in a container, from the image of its release (:mod:`conformance.kafka.broker.image`).

Its directory is mounted where it lies on this machine, so that the harness reads and changes the files of a stopped
broker as it does with a local one; ports of clients are published on the loopback address only. The container is a
new one at every start and is removed when it has ended.

Needs testcontainers, so it is imported where it is needed.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.kafka.broker.broker import Broker
from conformance.kafka.broker.container_process import ContainerProcess, KafkaContainer
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.image import CONTROLLER_PORT, USER_ID, ZOOKEEPER_PORT, require_image
from conformance.kafka.broker.ports import free_ports
from conformance.kafka.broker.settings import Node, zookeeper_properties

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


class ContainerBroker(Broker):
    """One broker in a container; :class:`Broker` says what it is made of.

    Raises:
        NoEngineError: when it is started: no Docker engine answers.
        NoImageError: when it is started: the engine has no image of the release.
    """

    backend = "container"
    _lease: BinaryIO | None = None

    def _new_node(self) -> Node:
        (port,) = free_ports(1)
        kraft = self.mode == "kraft"
        return Node(
            self.release,
            self.mode,
            self.directory,
            port,
            self.node_id,
            # In a network of its own, where these ports are always free.
            voters={self.node_id: CONTROLLER_PORT} if kraft else {},
            zookeeper=None if kraft else ZOOKEEPER_PORT,
            listen="0.0.0.0",  # noqa: S104  (of the container)
        )

    def _launch(self, node: Node, properties: Path) -> None:
        image = require_image(self.release)
        if node.zookeeper is not None:
            text = zookeeper_properties(self.directory / "zookeeper", node.zookeeper)
            (self.directory / "zookeeper.properties").write_text(text, "utf-8")
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._hold_lease()
        user = _hand_over(self.directory)
        environment = {
            "KIDX_PROPERTIES": str(properties),
            "KIDX_LOG": str(self.log),
            "KIDX_LEASE": str(self._lease_file),
            "KIDX_CLUSTER_ID": node.cluster_id,
        }
        container = KafkaContainer(image, self.directory, port=node.port, user=user, environment=environment)
        try:
            self._process = ContainerProcess(container, log_start=self._log_start)
        except container.engine_errors as error:
            raise BrokerError(
                f"the container of Kafka {self.release} could not be started: {_explanation(error)}",
                self.log,
                since=self._log_start,
            ) from error

    @property
    def _lease_file(self) -> Path:
        return self.directory / "lease"

    def _hold_lease(self) -> None:
        """Lock the file whose lock tells the container that we live; the system lets go of it when we do not."""
        if self._lease is None:
            self._lease = self._lease_file.open("ab")
            try:
                fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._let_go()
                raise ToolError(f"another broker lives in {self.directory}") from error

    def _let_go(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            self._let_go()


def _hand_over(directory: Path) -> str:
    """Make a directory the broker's, and return the ``user:group`` that it runs as: never root, and ours if we are not.

    Either way its files are ours to read, to change and to remove.
    """
    if os.getuid() != 0:
        return f"{os.getuid()}:{os.getgid()}"
    for parent, _, files in os.walk(directory):
        os.chown(parent, USER_ID, USER_ID)
        for name in files:
            os.chown(os.path.join(parent, name), USER_ID, USER_ID, follow_symlinks=False)  # noqa: PTH118
    return f"{USER_ID}:{USER_ID}"


def _explanation(error: Any) -> str:
    return getattr(error, "explanation", None) or str(error)
