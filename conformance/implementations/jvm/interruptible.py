"""Classes of a release that can be interrupted before every access to a field, a buffer or a file (``Switch``)."""

from __future__ import annotations

import hashlib
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
    from collections.abc import Callable
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_LOG: Final = "(?:kafka/log|org/apache/kafka/storage/internals/log)"
_RECORDS: Final = "org/apache/kafka/common/record/(?:internal/)?"
_INDEXES: Final = "AbstractIndex|OffsetIndex|TimeIndex|TransactionIndex|LazyIndex|LogSegment|RemoteIndexCache"
_FILES: Final = (
    rf"{_RECORDS}(?:FileRecords|FileLogInputStream)(?:\$.*)?\.class"
    r"|(?:kafka/utils/CoreUtils\$?|org/apache/kafka/server/util/LockUtils)\.class"
)
_BELOW_LOGS: Final = re.compile(rf"{_LOG}/(?:{_INDEXES})(?:\$.*)?\.class|{_FILES}")
_INTERRUPTED: Final = re.compile(rf"{_LOG}/(?:{_INDEXES}|Log|UnifiedLog|LocalLog|LogSegments)(?:\$.*)?\.class|{_FILES}")
_OF_LOGS: Final = re.compile(rf"{_LOG}/.*\.class|{_RECORDS}.*\.class|{_FILES}")
_BUFFERS: Final = frozenset({"java/nio/MappedByteBuffer", "java/nio/ByteBuffer", "java/nio/Buffer"})
_REDIRECTED: Final = frozenset({"getInt(I)I", "getLong(I)J", "putInt(I)", "putLong(J)", "duplicate()", "force()"})
"""Accesses to a buffer's memory that have a substitute in ``Switch``: name, parameters, type of the result."""
_LOCKS: Final = frozenset(
    f"java/util/concurrent/locks/{name}"
    for name in ("Lock", "ReentrantLock", "ReentrantReadWriteLock$ReadLock", "ReentrantReadWriteLock$WriteLock")
)
_READ_WRITE: Final = frozenset(
    f"java/util/concurrent/locks/{name}" for name in ("ReadWriteLock", "ReentrantReadWriteLock")
)
_SHARED: Final = re.compile(
    r"java/util/concurrent/atomic/.*|java/nio/channels/FileChannel|java/io/(?:File|RandomAccessFile)|java/nio/file/Files"
    r"|com/github/benmanes/caffeine/cache/Cache|java/util/concurrent/LinkedBlockingQueue"
    r"|java/util/concurrent/Concurrent(?:SkipList|Navigable)Map"
)
"""Classes whose methods access data that threads share."""
_UNMAPPERS: Final = re.compile(r"org/apache/kafka/common/utils/(?:MappedByteBuffers|ByteBufferUnmapper)")
_SWITCH: Final = "conformance/Switch"
_PLAIN, _FIELD, _CALL = 0, 4, 5
_GET_FIELD, _PUT_FIELD = 180, 181
_MONITOR: Final = {194: "enter", 195: "exit"}
_CHECK_CAST: Final = 192
_FINAL: Final = 16
_VOID_LOCK: Final = "(Ljava/util/concurrent/locks/Lock;)V"


def interruptible_classes(
    release: str,
    directory: Path,
    progress: Progress | None = None,
    build: Build | None = None,
    change: Callable[[Any], bool] | None = None,
) -> Any:
    """Return a class loader of a release's classes that can be interrupted.

    Args:
        release: The release.
        directory: An empty directory for the instrumented classes.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.
        change: A function that plants a race in a class (a ``ClassNode``), and returns True if it changed the class.

    Raises:
        ToolError: Java, the jars or all of the classes are missing, or no class was changed.
    """
    jars = jars_of(release, progress, build)
    classes = list(kafkas_classes(jars, _INTERRUPTED))
    if not classes:
        raise ToolError(f"Kafka {release} has none of the classes that are known")
    changed = False
    for name, data in (*classes, *own_classes("Racy.class")):
        node = read_class(data)
        if change is not None:
            changed |= change(node)
        write_class(directory, name, _interruptible(node))
    if change is not None and not changed:
        raise ToolError(f"Kafka {release} has nothing that the planted race changes")
    for name, data in own_classes("Switch*.class"):
        write_class(directory, name, data)
    return class_loader([directory, *jars])


def interruptible_digest(release: str, progress: Progress | None = None, *, logs: bool = False) -> str:
    """Return a hash of a release's classes that can be interrupted; releases with equal hashes need only one run.

    Args:
        release: The release.
        progress: A callback that receives the progress of downloads.
        logs: True to include all classes that a log uses.
    """
    digest = hashlib.sha256()
    for name, data in kafkas_classes(jars_of(release, progress), _OF_LOGS if logs else _BELOW_LOGS):
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()


def _interruptible(node: Any) -> bytes:
    """Return a class file in which an interruption point precedes every access to a field, a buffer or a file."""
    jpype = start_jvm()
    call, constant = asm_class("tree.MethodInsnNode"), asm_class("tree.LdcInsnNode")
    short = str(node.name).rpartition("/")[2]
    unchanging = {str(field.name) for field in node.fields if int(field.access) & _FINAL}
    for method in node.methods:
        if str(method.name) in ("<init>", "<clinit>"):
            continue
        for instruction in method.instructions.toArray():
            kind, code = int(instruction.getType()), int(instruction.getOpcode())
            if kind == _PLAIN and code in _MONITOR:
                switch = call(INVOKE_STATIC, _SWITCH, _MONITOR[code], "(Ljava/lang/Object;)V", False)
                method.instructions.set(instruction, switch)
                continue
            what = _access(method, instruction, kind, code, unchanging)
            if what:
                method.instructions.insertBefore(instruction, constant(jpype.JString(f"{short}.{what}")))
                point = call(INVOKE_STATIC, _SWITCH, "point", "(Ljava/lang/String;)V", False)
                method.instructions.insertBefore(instruction, point)
            if kind == _CALL:
                half = str(instruction.desc).rpartition(")")[2][1:-1]
                _redirect(instruction)
                if str(instruction.owner) == _SWITCH and str(instruction.name) in ("readLock", "writeLock"):
                    method.instructions.insert(instruction, asm_class("tree.TypeInsnNode")(_CHECK_CAST, half))
    return class_file(node)


def _access(method: Any, instruction: Any, kind: int, code: int, unchanging: set[str]) -> str:
    """Return the description of an access to data that threads share; empty for other instructions."""
    if kind == _FIELD and code in (_GET_FIELD, _PUT_FIELD) and str(instruction.name) not in unchanging:
        return f"{method.name}: {'read' if code == _GET_FIELD else 'write'} {instruction.name}"
    if kind != _CALL or str(instruction.name) == "<init>":
        return ""
    owner = str(instruction.owner)
    if owner in _BUFFERS or _SHARED.fullmatch(owner):
        return f"{method.name}: {owner.rpartition('/')[2]}.{instruction.name}"
    return ""


def _redirect(instruction: Any) -> None:
    """Redirect a call that locks, unmaps or accesses a buffer's memory to ``Switch``."""
    owner, name, descriptor = str(instruction.owner), str(instruction.name), str(instruction.desc)
    parameters = descriptor[: descriptor.index(")") + 1]
    result = descriptor[len(parameters) :]
    if owner in _READ_WRITE and name in ("readLock", "writeLock"):
        descriptor = "(Ljava/util/concurrent/locks/ReadWriteLock;)Ljava/util/concurrent/locks/Lock;"
    elif owner in _LOCKS and name in ("lock", "unlock"):
        descriptor = _VOID_LOCK
    elif _UNMAPPERS.fullmatch(owner) and name == "unmap":
        descriptor = "(Ljava/lang/String;Ljava/nio/ByteBuffer;)V"
    elif owner in _BUFFERS and (f"{name}{parameters}{result}" in _REDIRECTED or f"{name}{parameters}" in _REDIRECTED):
        receiver = "Ljava/nio/MappedByteBuffer;" if name == "force" or "Mapped" in result else "Ljava/nio/ByteBuffer;"
        descriptor = f"({receiver}{parameters[1:]}{result}"
    else:
        return
    instruction.setOpcode(INVOKE_STATIC)
    instruction.owner, instruction.name, instruction.desc, instruction.itf = _SWITCH, name, descriptor, False
