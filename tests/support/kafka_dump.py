"""A release's own ``kafka-dump-log`` (``DumpLogSegments``), run in this process; the judge of ``kidx dump``.

Kafka opens index files read-only but creates the ones that are missing: hand it copies.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.kafka.releases import version_key

_MOVED = version_key("4.3.0")
"""From here on the class is one of kafka-tools, before it is one of the server's (DL-1)."""


class Dumped(NamedTuple):
    """What one run printed.

    Attributes:
        stdout, stderr: the texts.
        error: simple name of the Java exception that ended it; None if it ended normally.
    """

    stdout: str
    stderr: str
    error: str | None


class _Streams:
    """Java's standard streams, turned to memory. Scala remembers the first one it sees, so it is one for all."""

    def __init__(self) -> None:
        jpype = start_jvm()
        memory, printer = jpype.JClass("java.io.ByteArrayOutputStream"), jpype.JClass("java.io.PrintStream")
        system = jpype.JClass("java.lang.System")
        self.out, self.err = memory(), memory()
        system.setOut(printer(self.out, True, "UTF-8"))
        system.setErr(printer(self.err, True, "UTF-8"))

    def taken(self) -> tuple[str, str]:
        texts = bytes(self.out.toByteArray()).decode(), bytes(self.err.toByteArray()).decode()
        self.out.reset()
        self.err.reset()
        return texts


_streams = cache(_Streams)


@cache
def _main(release: str) -> Any:
    name = "org.apache.kafka.tools.DumpLogSegments" if version_key(release) >= _MOVED else "kafka.tools.DumpLogSegments"
    return start_jvm().JClass(name, loader=release_loader(release, "log")).main


def kafka_dump(release: str, *arguments: str) -> Dumped:
    """Runs ``kafka-dump-log`` of a release.

    Args:
        release: a locked release; 4.4.0 has no published tool.
        arguments: as on its command line, and valid ones: it answers bad ones by ending the process.

    Raises:
        ToolError: no Java, or jars that cannot be had.
        TypeError: the release has no such class.
    """
    streams = _streams()
    streams.taken()
    jpype = start_jvm()
    thread = jpype.JClass("java.lang.Thread").currentThread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(release_loader(release, "log"))
    error = None
    try:
        _main(release)(list(arguments))
    except jpype.JException as thrown:
        error = str(thrown.getClass().getSimpleName())
    finally:
        thread.setContextClassLoader(before)
    return Dumped(*streams.taken(), error)
