"""Process of a broker in a container, from the container's start to its removal."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, ClassVar, Self

import requests
from docker import errors
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from conformance.kafka.broker.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Exit status of a broker if the Docker engine no longer answers: the broker counts as ended.
_LOST = 255


class KafkaContainer(DockerContainer):
    """Container of an image from ``docker/Dockerfile``.

    Args:
        image: name of the image.
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
