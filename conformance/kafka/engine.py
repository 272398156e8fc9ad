"""The Docker engine of this machine, if one answers. Heavy to import, and part of an extra: import it where needed."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from conformance.errors import ToolError

if TYPE_CHECKING:
    from docker import DockerClient

# An engine on this machine answers at once; one that hangs is none.
_ANSWER_LIMIT = 10


class NoEngineError(ToolError):
    """No Docker engine answers, or what it takes to ask one is not installed."""


class NoImageError(ToolError):
    """The engine has no image of a release."""


def connect() -> DockerClient:
    """Return a client of the engine that ``DOCKER_HOST`` names, or else of the one at its usual place.

    Raises:
        NoEngineError: none answers, or testcontainers is not installed.
    """
    try:
        import docker  # noqa: PLC0415  (an optional dependency)
        import testcontainers  # noqa: F401, PLC0415
    except ImportError as error:
        raise NoEngineError("containers need testcontainers: pip install 'kidx[broker]'") from error
    try:
        _knock(docker.utils.parse_host(os.environ.get("DOCKER_HOST")))
        client = docker.from_env(timeout=_ANSWER_LIMIT)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        raise NoEngineError(f"no Docker engine answers ({_reason(error)}): start one, or use --broker local") from error
    return client


def _knock(address: str) -> None:
    """Connect to an engine on this machine, and hang up: docker's own client leaves a socket behind that cannot."""
    kind, _, path = address.partition("://")
    if kind == "http+unix":
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_LIMIT)
            connection.connect(path)


def _reason(error: BaseException) -> str:
    """The innermost reason: libraries wrap "connection refused" in a page of their own words."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
