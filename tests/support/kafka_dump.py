"""Run of a release's own ``kafka-dump-log`` (``DumpLogSegments``) in this process: the oracle for ``kidx dump``.

Kafka opens index files read-only but creates missing ones, so tests pass copies.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from kidx.dialect import dialect_of


class Dumped(NamedTuple):
    """Output of one run.

    Attributes:
        stdout, stderr: The printed texts.
        error: Simple name of the Java exception that ended the run, or None if it ended normally.
    """

    stdout: str
    stderr: str
    error: str | None


class _Streams:
    """Java's standard streams, redirected to memory. Scala keeps the first stream, so all runs share one."""

    def __init__(self) -> None:
        jpype = start_jvm()
        memory, printer = jpype.JClass("java.io.ByteArrayOutputStream"), jpype.JClass("java.io.PrintStream")
        system = jpype.JClass("java.lang.System")
        self.out, self.err = memory(), memory()
        system.setOut(printer(self.out, True, "UTF-8"))
        system.setErr(printer(self.err, True, "UTF-8"))

    def take(self) -> tuple[str, str]:
        texts = bytes(self.out.toByteArray()).decode(), bytes(self.err.toByteArray()).decode()
        self.out.reset()
        self.err.reset()
        return texts


_streams = cache(_Streams)


@cache
def _main(release: str) -> Any:
    package = "org.apache.kafka.tools" if dialect_of(release).dump_tool_in_own_jar else "kafka.tools"
    return start_jvm().JClass(f"{package}.DumpLogSegments", loader=release_loader(release, "log")).main


def kafka_dump(release: str, *arguments: str) -> Dumped:
    """Run ``kafka-dump-log`` of a release.

    Args:
        release: The locked release.
        arguments: A valid command line; Kafka ends the process after an invalid one.

    Raises:
        ToolError: Java or the jars are not available.
        TypeError: The release has no such class.
    """
    streams = _streams()
    streams.take()
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
    return Dumped(*streams.take(), error)
