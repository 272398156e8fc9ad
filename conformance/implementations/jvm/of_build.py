"""What a build's classes lack, in one line: which class, which member, and the last release that had it."""

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


def name_of(release: str, build: Build | None) -> str:
    """How reports call Kafka's classes that are held to a release."""
    return f"jvm {release}" if build is None else f"jvm:{build.text} {release}"


def prepared(build: Build, prepare: Callable[[], None]) -> None:
    """Lets a driver find what it needs in the classes of a build.

    Raises:
        NotDrivenError: a class or a member is not there.
        ToolError: a class cannot be loaded: a dependency is missing, or it is of a newer Java.
    """
    jpype = start_jvm()
    try:
        prepare()
    except jpype.JException as thrown:
        _refuse(build, thrown)


def _refuse(build: Build, thrown: Any) -> None:
    name = str(thrown.getClass().getName())
    text = str(thrown.getMessage())
    if name == "conformance.Missing":
        last = _last_with(thrown)
        when = f"; the last release that has it is {last}" if last else ""
        raise NotDrivenError(f"the build {build.text} ({build.version}) cannot be driven: {text}{when}") from None
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
    """The newest locked release, of those whose jars are here, that has it; empty if none has."""
    cache = Cache()
    for release in reversed(RELEASES):
        if all(map(cache.has, load_release(release).group("log"))) and missing.isIn(release_loader(release, "log")):
            return release
    return ""
