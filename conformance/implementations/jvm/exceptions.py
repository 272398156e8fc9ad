"""Exceptions of Kafka's classes: their error kinds, as in the line protocol, and missing classes or members of a build.

An entry of the table for a class includes its subclasses; the entry of the closest superclass is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.errors import NotDrivenError, ToolError
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.jar_fetch import Cache
from conformance.kafka.releases import RELEASES, load_release
from conformance.operations import Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.kafka.builds import Build

KIND_OF: Final = {
    "org.apache.kafka.common.errors.InvalidOffsetException": "invalid_offset",
    "kafka.common.IndexOffsetOverflowException": "offset_overflow",  # up to 3.4
    "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException": "offset_overflow",
    "kafka.log.CorruptIndexException": "corrupt",  # up to 3.4
    "org.apache.kafka.storage.internals.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.common.KafkaException": "unsupported_version",  # the only one that an index throws itself (TX-7)
    "org.apache.fluss.exception.InvalidOffsetException": "invalid_offset",
    "org.apache.fluss.exception.IndexOffsetOverflowException": "offset_overflow",
    "org.apache.fluss.server.exception.CorruptIndexException": "corrupt",
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IllegalStateException": "illegal_state",
    "java.nio.ReadOnlyBufferException": "read_only",
    "java.lang.NullPointerException": "closed",  # an unmapped buffer (AI-19)
    "java.nio.BufferOverflowException": "buffer_overflow",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.io.IOException": "io",
}
"""The error kind of each class of exceptions, for the operations on an index."""

_NO_CLASS: Final = "java.lang.NoClassDefFoundError"
_TOO_NEW: Final = "java.lang.UnsupportedClassVersionError"

SILENT: Final = frozenset({"read_only", "closed", "buffer_overflow", "out_of_bounds", "io"})
"""Kinds whose text comes from Java or the operating system, not from Kafka; it is never compared."""


def unmapped_exception(name: str, text: object) -> Outcome:
    """Return the outcome of an exception without an error kind: a failure, which differs from every result.

    A build may throw any exception. A locked release that throws one shows that this table lacks an entry.

    Args:
        text: Class and message of the exception.

    Raises:
        ToolError: A class is missing.
    """
    if str(text).startswith("java.lang.OutOfMemoryError"):
        return Outcome(OUT_OF_MEMORY)
    if str(text).startswith(f"{_NO_CLASS}:"):
        missing = str(text).splitlines()[0].removeprefix(f"{_NO_CLASS}:").replace("/", ".")
        raise ToolError(f"the class path of {name} is not complete; add the jar that contains{missing}")
    return Outcome(FAILURE, None, str(text))


def display_name(release: str, build: Build | None) -> str:
    """Return the name in reports of Kafka's classes for a release."""
    return f"jvm {release}" if build is None else f"jvm:{build.text} {release}"


def probe_build(build: Build, prepare: Callable[[], None]) -> None:
    """Find the classes of a build that a driver needs.

    Args:
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
