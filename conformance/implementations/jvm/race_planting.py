"""Changes of Kafka's class files that plant a race: a lock is removed, or a write is moved to an earlier point."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from conformance.implementations.jvm.bytecode import asm_class

Change = Callable[[Any], bool]
"""Function that changes a class (a ``ClassNode`` of ASM), and returns True if it did."""

_LOG: Final = "org/apache/kafka/storage/internals/log/"
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
    if str(node.name) != _LOG + class_name:
        return []
    return [each for each in node.methods if str(each.name) == method or str(each.name).startswith(f"lambda${method}$")]
