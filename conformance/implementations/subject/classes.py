"""Third-party implementation that is a library of Java classes, whose jars are treated as a build of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.errors import ToolError
from conformance.implementations.subject.build import build
from conformance.kafka.builds import Build

if TYPE_CHECKING:
    from conformance.subjects import Subject

_JAVA_8: Final = 52
"""Class file format of Java 8; whether Java can load newer classes is noticed when they are loaded."""


def classes_of(subject: Subject, release: str) -> Build:
    """Build the implementation if necessary; return its jars, with the release with which they are compared.

    Raises:
        ToolError: The implementation cannot be built, or has no jars.
    """
    jars = tuple(sorted((build(subject) / "lib").glob("*.jar")))
    if not jars:
        raise ToolError(f"the subject {subject.name} was built without jars in lib")
    return Build(f"subject:{subject.name}", jars, subject.version, release, _JAVA_8, is_kafka=False)
