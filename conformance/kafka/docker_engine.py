"""Connection to the Docker engine of this machine. The module is slow to import."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from conformance.errors import ToolError

if TYPE_CHECKING:
    from docker import DockerClient

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
