"""Real brokers of any locked release: :class:`LocalBroker` is a local process, ``ContainerBroker`` a container.

:func:`new_broker` chooses the available one. A release is locked if a lock file lists its jars
(:mod:`conformance.kafka.releases`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from conformance.errors import ToolError
from conformance.kafka.broker.broker import Backend, Broker, BrokerError
from conformance.kafka.broker.config import Mode, default_mode, modes_of
from conformance.kafka.broker.image import NoEngineError, NoImageError, require_image
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.builds import require_broker

if TYPE_CHECKING:
    from conformance.kafka.builds import Build

__all__ = [
    "Backend",
    "Broker",
    "BrokerError",
    "Choice",
    "LocalBroker",
    "Mode",
    "choose",
    "default_mode",
    "modes_of",
    "new_broker",
]

Choice = Literal["auto", "container", "local"]
"""Request of the user (``--broker``)."""


class BackendChoice(NamedTuple):
    """Backend, and the reason if it is not a container; the reason is empty if the user requested the backend."""

    backend: Backend
    reason: str = ""


def choose(release: str, choice: Choice = "auto", build: Build | None = None) -> BackendChoice:
    """Return the backend for a release: with ``auto``, a container if a Docker engine has the release's image.

    A build always runs as a local process.

    Raises:
        NoEngineError: a container is requested, and no Docker engine answers.
        NoImageError: a container is requested, and the engine has no image of the release.
        ToolError: a container is requested for a build, or the build has no broker.
    """
    if build is not None:
        if choice == "container":
            raise ToolError(f"the build {build.text} runs only as a local process; remove --broker container")
        require_broker(build)
        return BackendChoice("local", "a build has no image")
    if choice == "local":
        return BackendChoice("local")
    try:
        require_image(release)
    except (NoEngineError, NoImageError) as error:
        if choice == "container":
            raise
        return BackendChoice("local", str(error))
    return BackendChoice("container")


def new_broker(release: str, choice: Choice = "auto", **options: Any) -> Broker:
    """Return a broker, which is not started yet; ``options`` are passed to :class:`Broker`.

    Raises:
        NoEngineError: a container is requested, and no Docker engine answers.
        NoImageError: a container is requested, and the engine has no image of the release.
    """
    if choose(release, choice, options.get("build")).backend == "local":
        return LocalBroker(release, **options)
    from conformance.kafka.broker.container import ContainerBroker  # noqa: PLC0415  (an optional dependency)

    return ContainerBroker(release, **options)
