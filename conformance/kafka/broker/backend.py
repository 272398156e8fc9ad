"""Which kind of broker: in a container or as a local process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from conformance.errors import ToolError
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.builds import require_broker

if TYPE_CHECKING:
    from conformance.kafka.broker.broker import Backend, Broker
    from conformance.kafka.builds import Build

Choice = Literal["auto", "container", "local"]


class Chosen(NamedTuple):
    """A backend; and why it is not the one that would have been preferred, if so."""

    backend: Backend
    why: str = ""


def choose(release: str, choice: Choice = "auto", build: Build | None = None) -> Chosen:
    """Return where a release runs: with ``auto``, in a container if an engine answers that has its image.

    A build runs as a local process.

    Raises:
        NoEngineError: a container is asked for, and no Docker engine answers.
        NoImageError: a container is asked for, and the engine has no image of the release.
        ToolError: a container is asked for a build, or the build has no broker.
    """
    from conformance.kafka.broker.image import require_image  # noqa: PLC0415
    from conformance.kafka.engine import NoEngineError, NoImageError  # noqa: PLC0415  (an optional dependency)

    if build is not None:
        if choice == "container":
            raise ToolError(f"the build {build.text} is started as a local process: leave --broker container out")
        require_broker(build)
        return Chosen("local", "a build has no image")
    if choice == "local":
        return Chosen("local")
    try:
        require_image(release)
    except (NoEngineError, NoImageError) as error:
        if choice == "container":
            raise
        return Chosen("local", str(error))
    return Chosen("container")


def new_broker(release: str, choice: Choice = "auto", **options: Any) -> Broker:
    """Return a broker that is not started yet; ``options`` are those of :class:`Broker`.

    Raises:
        NoEngineError: a container is asked for, and no Docker engine answers.
        NoImageError: a container is asked for, and the engine has no image of the release.
    """
    if choose(release, choice, options.get("build")).backend == "local":
        return LocalBroker(release, **options)
    from conformance.kafka.broker.container import ContainerBroker  # noqa: PLC0415  (an optional dependency)

    return ContainerBroker(release, **options)
