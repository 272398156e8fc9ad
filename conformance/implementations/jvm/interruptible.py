"""Classes of a release whose operations can be paused before every access to a field, a buffer or a file.

While an operation is paused, other operations run: it is interrupted by them (``Switch.java``). This has nothing to do
with ``Thread.interrupt``. Races are planted in them, so that there is something to find: a lock is removed, or a write
is moved to an earlier point.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.implementations.jvm.bytecode import (
    asm_class,
    asm_jars,
    class_file,
    jars_of,
    kafkas_classes,
    own_classes,
    read_class,
    write_class,
)
from conformance.implementations.jvm.driver import compiled_classes
from conformance.implementations.jvm.virtual_machine import class_loader, java_bytes, start_jvm

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_LOG: Final = "(?:kafka/log|org/apache/kafka/storage/internals/log)"
_RECORDS: Final = "org/apache/kafka/common/record/(?:internal/)?"
_INDEX_CLASSES: Final = "AbstractIndex|OffsetIndex|TimeIndex|TransactionIndex|LazyIndex|LogSegment|RemoteIndexCache"
_FILE_CLASSES: Final = (
    rf"{_RECORDS}(?:FileRecords|FileLogInputStream)(?:\$.*)?\.class"
    r"|(?:kafka/utils/CoreUtils\$?|org/apache/kafka/server/util/LockUtils)\.class"
)
_FOR_INDEXES: Final = re.compile(rf"{_LOG}/(?:{_INDEX_CLASSES})(?:\$.*)?\.class|{_FILE_CLASSES}")
PAUSABLE: Final = re.compile(
    rf"{_LOG}/(?:{_INDEX_CLASSES}|Log|UnifiedLog|LocalLog|LogSegments)(?:\$.*)?\.class|{_FILE_CLASSES}"
)
"""The class files that are instrumented, so that their operations can be paused."""
_FOR_LOGS: Final = re.compile(rf"{_LOG}/.*\.class|{_RECORDS}.*\.class|{_FILE_CLASSES}")
"""The class files that determine the interleavings of logs; ``_FOR_INDEXES``: of everything else."""


def interruptible_classes(
    release: str,
    directory: Path,
    progress: Progress | None = None,
    build: Build | None = None,
    change: Callable[[Any], bool] | None = None,
) -> Any:
    """Return a class loader of a release's classes, instrumented so that their operations can be paused.

    Args:
        directory: An empty directory for the instrumented classes.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.
        change: A function that plants a race in a class (a ``ClassNode``), and returns True if it changed the class.

    Raises:
        ToolError: Java, the jars or all of the classes are missing, or no class was changed.
    """
    jars = jars_of(release, progress, build)
    classes = list(kafkas_classes(jars, PAUSABLE))
    if not classes:
        raise ToolError(f"Kafka {release} has none of the classes whose operations can be paused")
    changed = False
    for name, data in (*classes, *own_classes("Racy.class")):  # Racy is a counter with a race that must be found
        original = data
        if change is not None:
            node = read_class(data)
            changed |= change(node)
            original = class_file(node)
        write_class(directory, name, bytes(_interruptible().of(java_bytes(original))))
    if change is not None and not changed:
        raise ToolError(f"cannot plant a race in Kafka {release}: no class has the code to be changed")
    for name, data in own_classes("Switch*.class"):
        write_class(directory, name, data)
    return class_loader([directory, *jars])


def interruptible_digest(release: str, progress: Progress | None = None, *, logs: bool = False) -> str:
    """Return a hash of the classes whose interleavings are tested; releases with equal hashes need only one run.

    Args:
        progress: A callback that receives the progress of downloads.
        logs: True for the classes of logs and all classes that they use; False for the classes of indexes, segments and
            the remote index cache.
    """
    digest = hashlib.sha256()
    for name, data in kafkas_classes(jars_of(release, progress), _FOR_LOGS if logs else _FOR_INDEXES):
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()


@cache
def _interruptible() -> Any:
    """Return our Java class that inserts a call of ``Switch`` before every access to a field, a buffer or a file."""
    loader = class_loader([compiled_classes(), *asm_jars()])
    return start_jvm().JClass("conformance.Interruptible", loader=loader)


Change = Callable[[Any], bool]
"""Function that changes a class (a ``ClassNode`` of ASM), and returns True if it did."""

_PACKAGE: Final = "org/apache/kafka/storage/internals/log/"
_RUNNABLE: Final = "org/apache/kafka/server/util/LockUtils$ThrowingRunnable"
_SUPPLIER: Final = "org/apache/kafka/server/util/LockUtils$ThrowingSupplier"
_POP, _SWAP, _INTERFACE = 87, 95, 185  # opcodes: pop, swap, invokeinterface
_MONITORS: Final = frozenset({194, 195})  # opcodes: monitorenter, monitorexit
_LOGS: Final = re.compile(r"(?:kafka/log|org/apache/kafka/storage/internals/log)/(?:Log|UnifiedLog)")
_PSEUDO_INSTRUCTIONS: Final = frozenset({8, 14, 15})
"""ASM's numbers for instructions that have no effect: labels, frames and line numbers."""


def without_guard(class_name: str, method: str, guard: str) -> Change:
    """Return a change after which a lambda in a method is executed without the lock.

    Args:
        class_name: name of the class in Kafka's package of the log.
        method: the method; its lambdas are searched, too.
        guard: the method that executes a lambda under a lock, such as ``inLock``.
    """

    def change(node: Any) -> bool:
        found = False
        for each in _methods(node, class_name, method):
            for call in each.instructions.toArray():
                if str(getattr(call, "name", "")) != guard:
                    continue
                found = True
                gives = not str(call.desc).endswith("V")
                plain = asm_class("tree.InsnNode")
                if gives:
                    each.instructions.insert(call, plain(_POP))
                    each.instructions.insert(call, plain(_SWAP))
                else:
                    each.instructions.insert(call, plain(_POP))
                owner, name, result = (_SUPPLIER, "get", "Ljava/lang/Object;") if gives else (_RUNNABLE, "run", "V")
                call.setOpcode(_INTERFACE)
                call.owner, call.name, call.desc, call.itf = owner, name, f"(){result}", True
        return found

    return change


def without_lock(class_name: str, method: str) -> Change:
    """Return a change that removes all calls of ``lock`` and ``unlock``, and all monitors, from a method."""

    def change(node: Any) -> bool:
        found = False
        for each in _methods(node, class_name, method):
            for call in each.instructions.toArray():
                locks = str(getattr(call, "name", "")) in ("lock", "unlock") and hasattr(call, "owner")
                if (locks and "locks" in str(call.owner) and str(call.desc) == "()V") or int(
                    call.getOpcode()
                ) in _MONITORS:
                    each.instructions.set(call, asm_class("tree.InsnNode")(_POP))
                    found = True
        return found

    return change


def without_monitors(node: Any) -> bool:
    """Remove all monitors of a log; return True if there were any."""
    found = False
    if _LOGS.fullmatch(str(node.name)):
        for method in node.methods:
            for each in method.instructions.toArray():
                if int(each.getOpcode()) in _MONITORS:
                    method.instructions.set(each, asm_class("tree.InsnNode")(_POP))
                    found = True
    return found


def too_early(class_name: str, method: str, call_name: str, before: str) -> Change:
    """Return a change that moves the call ``this.CALL()`` in a method before its first call of ``this.BEFORE()``."""

    def change(node: Any) -> bool:
        for each in _methods(node, class_name, method):
            calls = [call for call in each.instructions.toArray() if hasattr(call, "owner")]
            moved = next((call for call in calls if str(call.name) == call_name), None)
            first = next((call for call in calls if str(call.name) == before), None)
            if moved is None or first is None:
                continue
            receiver, place = moved.getPrevious(), _instruction_before(first)
            for instruction in (receiver, moved):
                each.instructions.remove(instruction)
                each.instructions.insertBefore(place, instruction)
            return True
        return False

    return change


def _instruction_before(instruction: Any) -> Any:
    """Return the last instruction with an effect before an instruction."""
    before = instruction.getPrevious()
    while int(before.getType()) in _PSEUDO_INSTRUCTIONS:
        before = before.getPrevious()
    return before


def _methods(node: Any, class_name: str, method: str) -> list[Any]:
    if str(node.name) != _PACKAGE + class_name:
        return []
    return [each for each in node.methods if str(each.name) == method or str(each.name).startswith(f"lambda${method}$")]
