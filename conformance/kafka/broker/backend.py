"""Choice of a broker's backend: a container or a local process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from conformance.errors import ToolError
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.builds import require_broker

if TYPE_CHECKING:
    from conformance.kafka.broker.broker import Backend, Broker
    from conformance.kafka.builds import Build

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
    from conformance.kafka.broker.image import require_image  # noqa: PLC0415
    from conformance.kafka.docker_engine import NoEngineError, NoImageError  # noqa: PLC0415  (an optional dependency)

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
