"""One container of a broker: from its start to its removal, as a process like any other."""

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

# What the engine does with a broker's end: when it cannot be asked any more, that is an end too.
_LOST = 255


class KafkaContainer(DockerContainer):
    """A container of an image from ``docker/Dockerfile``.

    Args:
        image: its name.
        directory: mounted in the container at the same path.
        port: published on the loopback address.
        user: ``user:group`` that it runs as, by number.
        environment: what ``docker/start.sh`` wants to know.
    """

    engine_errors: ClassVar[tuple[type[Exception], ...]] = (errors.DockerException, requests.RequestException)

    def __init__(self, image: str, directory: Path, *, port: int, user: str, environment: Mapping[str, str]) -> None:
        super().__init__(image, user=user, labels={"io.kidx": "broker"})
        self.with_envs(**environment)
        self.with_volume_mapping(str(directory), str(directory), "rw")
        # Its own method would publish the port on every address.
        self.ports[f"{port}/tcp"] = (HOST, port)  # type: ignore[assignment]

    def start(self) -> Self:
        """Start it; what cannot be started is removed again."""
        # Ryuk, which would clean up behind us, is an image that cannot be assumed; the lease does its work.
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
        """Remove it, running or not, and forget the engine."""
        with contextlib.suppress(*self.engine_errors):
            self.stop()


class ContainerProcess:
    """A container that is started at once, and removed when it has ended; see ``broker.Process``.

    Raises:
        DockerException: the engine refuses.
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
        """What its first process ended with, 128 + N after signal N; None while it runs."""
        return self._status

    @property
    def running(self) -> bool:
        """Tell whether it runs."""
        return self._status is None

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), without waiting."""
        self._signal("SIGTERM")

    def kill(self) -> None:
        """End it at once (SIGKILL, all that runs in it), wait until it is gone, and remove it."""
        self._signal("SIGKILL")
        self._watch.join()
        self._container.remove()

    def wait(self, timeout: float) -> bool:
        """Wait until it has ended, and remove it; return whether it has."""
        self._watch.join(timeout)
        if self.running:
            return False
        self._container.remove()
        return True

    def _signal(self, name: str) -> None:
        with contextlib.suppress(*self._container.engine_errors):  # it has ended
            self._container.get_wrapped_container().kill(name)
