"""Build context and build of a container image with the broker of a locked release, from the jars in its lock file.

The ``Dockerfile`` and the scripts are in ``docker/``, which the wheel contains as ``conformance/docker``. The build
context adds the files that depend on the release: the jars, the Java options with the class path in the lock's order,
the logging configuration, and the properties of a single broker. The connection to the Docker engine of this machine is
here, too.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.kafka.broker.config import (
    Node,
    default_mode,
    logging_configuration,
    server_properties,
    zookeeper_properties,
)
from conformance.kafka.broker.process import java_arguments
from conformance.kafka.jar_fetch import class_path
from conformance.kafka.releases import load_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import DockerClient

    from conformance.kafka.jar_fetch import Step

# An engine on this machine answers immediately. An engine that hangs counts as not running.
_TIMEOUT_S = 10


class NoEngineError(ToolError):
    """Missing Docker engine, or missing libraries to connect to it."""


class NoImageError(ToolError):
    """Image of a release that the engine does not have."""


def connect() -> DockerClient:
    """Return a client of the engine at ``DOCKER_HOST``, or at the default address.

    Raises:
        NoEngineError: no engine answers, or testcontainers is not installed.
    """
    try:
        import docker  # noqa: PLC0415  (an optional dependency)
        import testcontainers  # noqa: F401, PLC0415
    except ImportError as error:
        raise NoEngineError("containers require testcontainers; install with pip install 'kidx[broker]'") from error
    try:
        _ping(docker.utils.parse_host(os.environ.get("DOCKER_HOST")))
        client = docker.from_env(timeout=_TIMEOUT_S)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise NoEngineError(f"no Docker engine answers ({_reason(error)}): start one, or use --broker local") from error
    return client


def _ping(address: str) -> None:
    """Check that a local engine's socket accepts connections: docker's own client leaks a socket if it does not."""
    kind, _, path = address.partition("://")
    if kind == "http+unix":
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(path)


def _reason(error: BaseException) -> str:
    """Return the message of the first cause; the errors that wrap it have very long messages."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


REPOSITORY: Final = "kidx/kafka"
BASE: Final = "kidx/base"

# In the container: ports, directories, and the user that runs the broker.
PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
ZOOKEEPER_PORT: Final = 2181
HOME: Final = Path("/opt/kafka")
DATA: Final = Path("/var/lib/kafka")
USER_ID: Final = 10001

_SCRIPTS: Final = ("Dockerfile", "start.sh", "healthy.sh")


def image_name(release: str) -> str:
    """Return the name of a release's image: ``kidx/kafka:4.3.1``."""
    return f"{REPOSITORY}:{release}"


def docker_files() -> Path:
    """Return the directory with the Dockerfile: inside the package in a wheel, next to the package in a source tree."""
    package = Path(__file__).parents[2]
    return next(place for place in (package / "docker", package.parent / "docker") if place.is_dir())


def assemble(release: str, directory: Path, *, progress: Callable[[Step], None] | None = None) -> None:
    """Write the build context of a release into a new or empty directory.

    Raises:
        UnknownReleaseError: the release is not locked.
        FetchError: a jar cannot be fetched.
        ToolError: the directory is not empty, or cannot be written.
    """
    locked = load_release(release)
    jars = class_path(release, "broker", progress=progress)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ToolError(f"{directory} is not empty")
        for name in _SCRIPTS:
            shutil.copy(docker_files() / name, directory)
        (directory / "jars").mkdir()
        for jar in jars:
            shutil.copyfile(jar, directory / "jars" / jar.name)
        configuration, text, option = logging_configuration(locked.logging, HOME)
        _write(directory / "configuration" / configuration.name, text)
        _write(
            directory / "configuration" / "java.args", java_arguments([HOME / "jars" / j.name for j in jars], option)
        )
        _write(directory / "configuration" / "server.properties", server_properties(_single_node(release), {}))
        _write(
            directory / "configuration" / "zookeeper.properties",
            zookeeper_properties(DATA / "zookeeper", ZOOKEEPER_PORT),
        )
    except OSError as error:
        raise ToolError(f"cannot write {error.filename or directory}: {error.strerror or error}") from error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")


def _single_node(release: str) -> Node:
    """Return a broker for clients on the same machine, with the same port inside and outside of the container."""
    kraft = default_mode(release) == "kraft"
    return Node(
        release,
        default_mode(release),
        DATA,
        PORT,
        voters={1: CONTROLLER_PORT} if kraft else {},
        zookeeper=None if kraft else ZOOKEEPER_PORT,
        listen="0.0.0.0",  # noqa: S104  (of the container; the caller chooses what is published)
    )


def build(release: str, *, base: str = BASE, progress: Callable[[Step], None] | None = None) -> str:
    """Build the image of a release on a base image; return its name.

    Raises:
        NoEngineError: no engine answers.
        NoImageError: the engine has no such base image and cannot get it.
        ToolError: the build failed.
        FetchError: a jar cannot be fetched.
    """
    client = connect()
    import docker  # noqa: PLC0415  (an optional dependency, which connect has imported)

    name = image_name(load_release(release).name)
    with tempfile.TemporaryDirectory(prefix="kidx-image-") as scratch:
        assemble(release, Path(scratch), progress=progress)
        arguments = {"RELEASE": release, "BASE_IMAGE": base, "USER_ID": str(USER_ID)}
        client.api.timeout = None  # a build may take any time
        try:
            client.images.build(path=scratch, tag=name, buildargs=arguments, rm=True, forcerm=True)
        except docker.errors.DockerException as error:
            if not _has(client, base):
                raise NoImageError(f"the engine has no base image {base}: docker/build-base.sh makes {BASE}") from error
            raise ToolError(f"cannot build {name}: {error}") from error
        finally:
            client.close()
    return name


def require_image(release: str) -> str:
    """Return the name of a release's image after checking that the engine has it.

    Raises:
        NoEngineError: no engine answers.
        NoImageError: the engine has no such image.
    """
    name = image_name(release)
    require(name, f"conformance kafka image {release} builds it")
    return name


def require(name: str, remedy: str) -> None:
    """Check that the engine has an image.

    Raises:
        NoEngineError: no engine answers.
        NoImageError: the engine has no such image; the message ends with ``remedy``, which says how to get it.
    """
    client = connect()
    try:
        if not _has(client, name):
            raise NoImageError(f"the engine has no image {name}: {remedy}")
    finally:
        client.close()


def _has(client: Any, name: str) -> bool:
    import docker  # noqa: PLC0415

    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    return True
