"""Eclipse's compiler for Java, which runs in the JVM of this process: a machine with only Python has no ``javac``."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.implementations.jvm.virtual_machine import class_loader, start_jvm
from conformance.kafka.jar_fetch import tool_jar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COMPILER = "ecj"
"""Name of the compiler among the tools that :mod:`conformance.kafka` downloads."""
JAVA_LEVEL = "17"
"""Level of the language and of the class files."""


def compile_java(sources: Iterable[Path], jars: Iterable[Path], target: Path) -> None:
    """Compile Java sources against jars; write their class files below a directory.

    Raises:
        ToolError: The compiler rejected the sources.
    """
    jpype = start_jvm()
    messages = jpype.JClass("java.io.StringWriter")()
    printer = jpype.JClass("java.io.PrintWriter")(messages)
    path = os.pathsep.join(map(os.fspath, jars))
    options = [f"-{JAVA_LEVEL}", "-nowarn", "-encoding", "UTF-8", "-classpath", path, "-d", os.fspath(target)]
    arguments = jpype.JArray(jpype.JClass("java.lang.String"))([*options, *map(os.fspath, sources)])
    if not _compiler().compile(arguments, printer, printer, None):
        raise ToolError(f"the Java sources do not compile: {messages}")


@cache
def _compiler() -> Any:
    """Return the compiler's class, once: each of its class loaders keeps an index of all classes of Java, 8 MB."""
    return start_jvm().JClass(
        "org.eclipse.jdt.core.compiler.batch.BatchCompiler", loader=class_loader([tool_jar(COMPILER)])
    )
