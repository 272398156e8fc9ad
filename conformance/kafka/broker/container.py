"""Real broker in a container, from the image of its release (:mod:`conformance.kafka.broker.image`).

The broker's directory is mounted in the container at the same path as on this machine, so that the harness can read and
change the files of a stopped broker. The port for clients is published on the loopback address only. Every start uses a
new container, which is removed when it has ended.

This module needs testcontainers, so import it only where it is needed.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.kafka.broker.broker import Broker
from conformance.kafka.broker.config import Node, zookeeper_properties
from conformance.kafka.broker.container_process import ContainerProcess, KafkaContainer
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.image import CONTROLLER_PORT, USER_ID, ZOOKEEPER_PORT, require_image
from conformance.kafka.broker.ports import free_ports

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


class ContainerBroker(Broker):
    """Broker in a container; see :class:`Broker` for its arguments.

    Raises:
        NoEngineError: No Docker engine answers; raised on start.
        NoImageError: The engine has no image of the release; raised on start.
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
            # The container has its own network, in which these ports are always free.
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
                f"cannot start the container of Kafka {self.release}: {_explanation(error)}",
                self.log,
                since=self._log_start,
            ) from error

    @property
    def _lease_file(self) -> Path:
        return self.directory / "lease"

    def _hold_lease(self) -> None:
        """Lock the file that shows the container that this process runs; the kernel releases the lock when it ends."""
        if self._lease is None:
            self._lease = self._lease_file.open("ab")
            try:
                fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._release_lease()
                raise ToolError(f"another broker uses {self.directory}") from error

    def _release_lease(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            self._release_lease()


def _hand_over(directory: Path) -> str:
    """Make the broker's user the owner of a directory; return ``user:group`` of the broker, which is never root.

    If this process is not root, the broker runs as the same user. In both cases this process can read, change and
    remove the files.
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
