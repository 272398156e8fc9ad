"""Errors about a build's classes, in one line: the missing class or member, and the last release that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.cache import Cache
from conformance.kafka.releases import RELEASES, load_release

if TYPE_CHECKING:
    from conformance.kafka.builds import Build

_NO_CLASS = "java.lang.NoClassDefFoundError"
_TOO_NEW = "java.lang.UnsupportedClassVersionError"


def display_name(release: str, build: Build | None) -> str:
    """Return the name in reports of Kafka's classes for a release."""
    return f"jvm {release}" if build is None else f"jvm:{build.text} {release}"


def probe_build(build: Build, prepare: Callable[[], None]) -> None:
    """Find the classes of a build that a driver needs.

    Args:
        build: The build.
        prepare: A function that makes the driver find its classes.

    Raises:
        NotDrivenError: A class or a member is missing.
        ToolError: A class cannot be loaded: a dependency is missing, or the class needs a newer Java.
    """
    jpype = start_jvm()
    try:
        prepare()
    except jpype.JException as thrown:
        _raise_error(build, thrown)


def _raise_error(build: Build, thrown: Any) -> None:
    name = str(thrown.getClass().getName())
    text = str(thrown.getMessage())
    if name == "conformance.Missing":
        last = _last_with(thrown)
        when = f"; the last release that has it is {last}" if last else ""
        raise NotDrivenError(
            f"the build {build.text} ({build.version}) lacks a class or member that the driver needs: {text}{when}"
        ) from None
    if name == _NO_CLASS:
        missing = text.removeprefix("Could not initialize class ").replace("/", ".")
        raise ToolError(
            f"the build {build.text} is not complete: none of its {len(build.jars)} jars has {missing}; add what its"
            " distribution has in libs"
        ) from None
    if name == _TOO_NEW:
        raise ToolError(f"the build {build.text} needs a newer Java, set KIDX_JAVA_HOME: {text}") from None
    raise ToolError(f"the classes of the build {build.text} cannot be loaded: {name}: {text}") from None


def _last_with(missing: Any) -> str:
    """Return the newest locked release in the cache that has the member, or an empty string."""
    cache = Cache()
    for release in reversed(RELEASES):
        if all(map(cache.has, load_release(release).group("log"))) and missing.isIn(release_loader(release, "log")):
            return release
    return ""
