"""Instrumentation of Kafka's class files by ASM in the running Java; Kafka's sources are not needed."""

from __future__ import annotations

import zipfile
from functools import cache
from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.driver import ASM, compiled_classes
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm
from conformance.kafka.jar_fetch import class_path, tool_jar

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

INVOKE_STATIC = 184  # an opcode
_COMPUTE_MAXS = 1  # a flag of ASM


def jars_of(release: str, progress: Progress | None = None, build: Build | None = None) -> list[Path]:
    """Return the class path of a release's log, or of a build, with ASM's jars.

    Args:
        progress: A callback that is called while jars are downloaded.
        build: The build whose classes are used instead.

    Raises:
        ToolError: The jars are not available.
    """
    asm_jars(progress)
    return list(class_path(release, "log", progress=progress)) if build is None else list(build.jars_without_logging)


def asm_jars(progress: Progress | None = None) -> list[Path]:
    """Return ASM's jars, which are fetched if they are missing."""
    return [tool_jar(name, progress=progress) for name in ASM]


@cache
def _asm() -> Any:
    return class_loader(asm_jars())


def asm_class(name: str) -> Any:
    """Return one of ASM's classes by its name below ``org.objectweb.asm``."""
    return start_jvm().JClass(f"org.objectweb.asm.{name}", loader=_asm())


def read_class(data: bytes) -> Any:
    """Return a class file as a ``ClassNode``."""
    node = asm_class("tree.ClassNode")()
    asm_class("ClassReader")(java_bytes(data)).accept(node, 0)
    return node


def class_file(node: Any) -> bytes:
    """Return the class file of a ``ClassNode``."""
    writer = asm_class("ClassWriter")(_COMPUTE_MAXS)
    node.accept(writer)
    return bytes(writer.toByteArray())


def kafkas_classes(jars: Sequence[Path], wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the class files in Kafka's own jars whose names match.

    Args:
        jars: A class path.
        wanted: The names, as in a jar: ``kafka/log/OffsetIndex.class``.
    """
    for jar in jars:
        if jar.name.startswith("kafka"):
            with zipfile.ZipFile(jar) as archive:
                for name in sorted(filter(wanted.fullmatch, archive.namelist())):
                    yield name, archive.read(name)


def write_class(directory: Path, name: str, data: bytes) -> None:
    """Write a class file below a directory of classes."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def own_classes(pattern: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the harness's compiled classes whose file names match, e.g. ``Journal*.class``."""
    for path in sorted((compiled_classes() / "conformance").glob(pattern)):
        yield f"conformance/{path.name}", path.read_bytes()
