"""A subject that is a library of Java classes: its jars, as a build that is held to a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.errors import ToolError
from conformance.implementations.subject.build import build
from conformance.kafka.builds import Build

if TYPE_CHECKING:
    from conformance.subjects import Subject

_JAVA_8: Final = 52
"""Of the class file format: what is newer says so itself when it is loaded."""


def classes_of(subject: Subject, release: str) -> Build:
    """Build it if need be; its jars, and the release that it is held to.

    Raises:
        ToolError: it cannot be built, or has no jars.
    """
    jars = tuple(sorted((build(subject) / "lib").glob("*.jar")))
    if not jars:
        raise ToolError(f"the subject {subject.name} was built without jars in lib")
    return Build(f"subject:{subject.name}", jars, subject.version, release, _JAVA_8, is_kafka=False)
