"""Real broker in a container, from the image of its release (:mod:`conformance.kafka.broker.image`).

The broker's directory is mounted in the container at the same path as on this machine, so that the harness can read and
change the files of a stopped broker. The port for clients is published on the loopback address only. Every start uses a
new container, which is removed when it has ended.

This module needs testcontainers, so import it only where it is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Self

import requests
from docker import errors
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from conformance.errors import ToolError
from conformance.kafka.broker.broker import Broker, BrokerError
from conformance.kafka.broker.config import Node, zookeeper_properties
from conformance.kafka.broker.image import CONTROLLER_PORT, USER_ID, ZOOKEEPER_PORT, require_image
from conformance.kafka.broker.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

# Exit status of a broker if the Docker engine no longer answers: the broker counts as ended.
_LOST = 255


class KafkaContainer(DockerContainer):
    """Container of an image from ``docker/Dockerfile``.

    Args:
        directory: directory that is mounted in the container at the same path.
        port: port that is published on the loopback address.
        user: ids of user and group in the container, as ``user:group``.
        environment: variables that ``docker/start.sh`` reads.
    """

    engine_errors: ClassVar[tuple[type[Exception], ...]] = (errors.DockerException, requests.RequestException)

    def __init__(self, image: str, directory: Path, *, port: int, user: str, environment: Mapping[str, str]) -> None:
        super().__init__(image, user=user, labels={"io.kidx": "broker"})
        self.with_envs(**environment)
        self.with_volume_mapping(str(directory), str(directory), "rw")
        # DockerContainer's own method would publish the port on every address.
        self.ports[f"{port}/tcp"] = (HOST, port)  # type: ignore[assignment]

    def start(self) -> Self:
        """Start the container; remove it if it cannot be started."""
        # Ryuk, which removes leftover containers, needs an image that may be missing. The lease replaces Ryuk.
        with_ryuk = not testcontainers_config.ryuk_disabled
        testcontainers_config.ryuk_disabled = True
        try:
            super().start()
        except BaseException:
            self.remove()
            raise
        finally:
            testcontainers_config.ryuk_disabled = not with_ryuk
        return self

    def remove(self) -> None:
        """Remove the container, even if it runs, and close the engine's client."""
        with contextlib.suppress(*self.engine_errors):
            self.stop()


class ContainerProcess:
    """Container that is started immediately and removed when it has ended; see ``broker.Process``.

    Raises:
        DockerException: the engine rejects the request.
    """

    def __init__(self, container: KafkaContainer, *, log_start: int) -> None:
        self.log_start = log_start
        self._container = container.start()
        self._status: int | None = None
        self._watch = threading.Thread(target=self._await_end, name="kidx-container", daemon=True)
        self._watch.start()

    def _await_end(self) -> None:
        try:
            self._status = int(self._container.get_wrapped_container().wait()["StatusCode"])
        except self._container.engine_errors:
            self._status = _LOST

    @property
    def exit_status(self) -> int | None:
        """Exit status of the container's first process, or 128 + N after signal N; None while it runs."""
        return self._status

    @property
    def running(self) -> bool:
        """True while the container runs."""
        return self._status is None

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""
        self._signal("SIGTERM")

    def kill(self) -> None:
        """Send SIGKILL to all processes of the container, wait until they have ended, and remove the container."""
        self._signal("SIGKILL")
        self._watch.join()
        self._container.remove()

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the container, and remove it; return False if it still runs after the timeout."""
        self._watch.join(timeout)
        if self.running:
            return False
        self._container.remove()
        return True

    def _signal(self, name: str) -> None:
        with contextlib.suppress(*self._container.engine_errors):  # the container has ended
            self._container.get_wrapped_container().kill(name)


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
