"""Compiler and loader of the Java classes of this package, which are compiled when they are first used.

The drivers are a few small Java classes. In one call from Python, they execute one operation and read the state. They
are compiled into the cache, by Eclipse's compiler, which runs in the JVM of this process: a machine with only Python
has no ``javac``. The name of the directory is the hash of everything that affects the classes, so that another version
is compiled separately.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.implementations.jvm.virtual_machine import build_loader, class_loader, release_loader, start_jvm
from conformance.kafka.jar_fetch import cache_directory, cache_error, tool_jar
from conformance.kafka.releases import load_tool
from conformance.operations.op import Files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.resources.abc import Traversable

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress
    from conformance.kafka.releases import Group
    from conformance.operations.op import Op

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


_JAVA = files(__package__) / "java"
SOURCES = _JAVA / "conformance"
BESIDE_KAFKA = _JAVA / "tiers"
"""Sources of classes that Kafka's class loader loads, because they use members of Kafka's package."""
WITH_JUNIT = _JAVA / "junit"
"""Sources of classes that execute Kafka's own tests."""
ASM = ("asm", "asm-tree")
"""Jars that our Java package is compiled against, in addition to Java's own classes."""


@cache
def driver_class(name: str) -> Any:
    """Return a class of the harness's Java package, e.g. ``IndexDriver``."""
    return start_jvm().JClass(f"conformance.{name}", loader=_driver_loader())


def connected_driver(
    name: str,
    release: str,
    group: Group,
    kinds: Mapping[str, int],
    operations: Mapping[str, Op],
    reply: bytearray,
    progress: Progress | None,
    build: Build | None = None,
    loader: Any = None,
) -> Any:
    """Return a driver of a release's classes that writes the observation of each operation into ``reply``.

    Args:
        name: The driver class. Its constructor takes a class loader, a map of exceptions, a buffer and the operations.
        release: The release whose classes are used.
        group: The group of the release's jars.
        kinds: For the name of each class of exceptions, its number in a reply.
        operations: The operations of the driver; the position of an operation is its number.
        reply: A buffer shared with Java, which must exist as long as the driver.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.
        loader: The loader of the classes; None for the shared one.

    Raises:
        ToolError: Java or the jars are missing; see
            :func:`~conformance.implementations.jvm.virtual_machine.release_loader`.
    """
    jpype = start_jvm()
    from jpype import nio  # noqa: PLC0415 -- part of an extra

    numbers = jpype.JClass("java.util.HashMap")()
    for exception, number in kinds.items():
        numbers.put(exception, jpype.JInt(number))
    if loader is None:
        loader = loader_of(release, group, progress, build)
    names = jpype.JArray(jpype.JString)(list(operations))
    replacing = jpype.JArray(jpype.JBoolean)([each.files is Files.REPLACES for each in operations.values()])
    return driver_class(name)(
        loader, numbers, nio.convertToDirectBuffer(reply), driver_class("Operations")(names, replacing)
    )


def loader_of(release: str, group: Group, progress: Progress | None, build: Build | None) -> Any:
    """Return the class loader that all drivers of a release, or of a build, share.

    Raises:
        ToolError: As :func:`~conformance.implementations.jvm.virtual_machine.release_loader`.
    """
    return release_loader(release, group, progress) if build is None else build_loader(build)


@cache
def _driver_loader() -> Any:
    return class_loader([compiled_classes()])


@cache
def compiled_classes() -> Path:
    """Return the directory with the compiled classes of the harness's Java package.

    Raises:
        ToolError: As :func:`driver_class`.
    """
    return _compiled(SOURCES)


def compiled_against(jars: Sequence[Path], sources: Traversable = BESIDE_KAFKA) -> Path:
    """Return the directory with the classes that Kafka's class loader loads, compiled against jars.

    Raises:
        ToolError: As :func:`driver_class`.
    """
    return _compiled(sources, jars)


def _compiled(directory: Traversable, jars: Sequence[Path] = ()) -> Path:
    """Return the directory with the compiled classes of a directory of sources.

    Raises:
        CacheError: The cache cannot be written.
        ToolError: The compiler rejected the sources, which is a bug of the harness.
    """
    sources = sorted(
        (source.name, source.read_bytes()) for source in directory.iterdir() if source.name.endswith(".java")
    )
    inputs = (load_tool(COMPILER).sha256, *(jar.name for jar in jars))
    target = cache_directory() / "drivers" / _digest(sources, " ".join(inputs), JAVA_LEVEL, _java())
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".compiling-"))
        try:
            with as_file(directory) as there:
                compile_java([there / name for name, _ in sources], [*jars, *map(tool_jar, ASM)], scratch)
            scratch.rename(target)
        except OSError:
            # Another process was faster; its result is the same.
            if not target.is_dir():
                raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise cache_error(error, cache_directory()) from error
    return target


def _digest(sources: Sequence[tuple[str, bytes]], compiler: str, level: str, java: int) -> str:
    """Return a name for the directory of the classes that are compiled from these sources.

    Args:
        sources: Name and content of each source, sorted.
        compiler: The hash of the compiler's jar, and the names of jars that are compiled against.
        level: The level of the language and of the classes.
        java: The release of the Java classes that they are compiled against.
    """
    return hashlib.sha256(repr((sources, compiler, level, java)).encode()).hexdigest()[:16]


def _java() -> int:
    """Return the feature release of the running Java, such as 17."""
    return int(start_jvm().getJVMVersion()[0])
