"""Index classes of a release that can be interrupted at every access to a field or buffer (``Switch``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.jvm.bytecode import (
    INVOKE_STATIC,
    asm_class,
    class_file,
    jars_of,
    kafkas_classes,
    own_classes,
    read_class,
    write_class,
)
from conformance.implementations.jvm.virtual_machine import class_loader, start_jvm

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_INTERRUPTED: Final = re.compile(
    r"(?:kafka/log|org/apache/kafka/storage/internals/log)/(?:AbstractIndex|OffsetIndex|TimeIndex)(?:\$.*)?\.class"
    r"|(?:kafka/utils/CoreUtils\$?|org/apache/kafka/server/util/LockUtils)\.class"
)
_BUFFERS: Final = frozenset({"java/nio/MappedByteBuffer", "java/nio/ByteBuffer", "java/nio/Buffer"})
_LOCKS: Final = frozenset(
    f"java/util/concurrent/locks/{name}"
    for name in ("Lock", "ReentrantLock", "ReentrantReadWriteLock$ReadLock", "ReentrantReadWriteLock$WriteLock")
)
_FIELD, _CALL = 4, 5
_GET_FIELD, _PUT_FIELD = 180, 181
_FINAL: Final = 16


def interruptible_classes(
    release: str, directory: Path, progress: Progress | None = None, build: Build | None = None
) -> Any:
    """Return a class loader of a release's classes that can be interrupted.

    Args:
        release: The release.
        directory: An empty directory for the instrumented classes.
        progress: A callback that is called while jars are downloaded.
        build: The build whose classes are used instead.

    Raises:
        ToolError: No Java, no jars, or none of the classes.
    """
    jars = jars_of(release, progress, build)
    classes = list(kafkas_classes(jars, _INTERRUPTED))
    if not classes:
        raise ToolError(f"Kafka {release} has none of the index classes that are known")
    for name, data in (*classes, *own_classes("Racy.class")):
        write_class(directory, name, _interruptible(data))
    for name, data in own_classes("Switch*.class"):
        write_class(directory, name, data)
    return class_loader([directory, *jars])


def _interruptible(data: bytes) -> bytes:
    """Return a class file with an interruption point before every access to a field or a buffer."""
    jpype = start_jvm()
    call, constant = asm_class("tree.MethodInsnNode"), asm_class("tree.LdcInsnNode")
    node = read_class(data)
    short = str(node.name).rpartition("/")[2]
    unchanging = {str(field.name) for field in node.fields if int(field.access) & _FINAL}
    for method in node.methods:
        if str(method.name) == "<init>":
            continue
        for instruction in method.instructions.toArray():
            kind, code = int(instruction.getType()), int(instruction.getOpcode())
            if kind == _CALL and str(instruction.owner) in _LOCKS and str(instruction.name) in ("lock", "unlock"):
                owner = "Ljava/util/concurrent/locks/Lock;"
                instruction.setOpcode(INVOKE_STATIC)
                instruction.owner, instruction.desc, instruction.itf = "conformance/Switch", f"({owner})V", False
                continue
            if kind == _CALL and str(instruction.owner) in _BUFFERS:
                what = f"{method.name}: {instruction.name}"
            elif kind == _FIELD and code in (_GET_FIELD, _PUT_FIELD) and str(instruction.name) not in unchanging:
                what = f"{method.name}: {'read' if code == _GET_FIELD else 'write'} {instruction.name}"
            else:
                continue
            method.instructions.insertBefore(instruction, constant(jpype.JString(f"{short}.{what}")))
            point = call(INVOKE_STATIC, "conformance/Switch", "point", "(Ljava/lang/String;)V", False)
            method.instructions.insertBefore(instruction, point)
    return class_file(node)
