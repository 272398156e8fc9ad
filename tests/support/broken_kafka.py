"""Builds of Kafka with one thing changed in their bytecode: a comparison, a constant, a call left out.

ASM reads and writes the classes, in the Java that runs here; no source of Kafka is needed for it.
"""

from __future__ import annotations

import shutil
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.implementations.jvm.virtual_machine import class_loader, start_jvm
from conformance.kafka.fetch import tool_jar

if TYPE_CHECKING:
    from collections.abc import Iterator

JUMPS = {
    "==0": 153, "!=0": 154, "<0": 155, ">=0": 156, ">0": 157, "<=0": 158,
    "==": 159, "!=": 160, "<": 161, ">=": 162, ">": 163, "<=": 164,
    "null": 198, "!null": 199,
}  # fmt: skip
"""The comparisons that jump, by what they jump at; ``"<0"`` follows the comparison of two longs, too."""
NAMES = {code: name for name, code in JUMPS.items()}
ARITHMETIC = {"+": 96, "+long": 97, "-": 100, "-long": 101, "*": 104, "/": 108, "%": 112}
_ARITHMETIC_NAMES = {code: name for name, code in ARITHMETIC.items()}


class Change(NamedTuple):
    """One instruction of a method, and what becomes of it.

    Attributes:
        class_name: below ``org.apache.kafka``, with slashes.
        method: its name; all that have it are looked at, in the order of the class file.
        old: the comparison, operator, constant or called method that is there.
        number: which of them, from 0.
        new: what takes its place; empty for nothing: a call without a result is left out.
    """

    class_name: str
    method: str
    old: str
    number: int
    new: str


@cache
def asm() -> Any:
    """The loader of ASM's classes."""
    return class_loader([tool_jar("asm"), tool_jar("asm-tree")])


def _asm_class(name: str) -> Any:
    return start_jvm().JClass(f"org.objectweb.asm.{name}", loader=asm())


def _read(data: bytes) -> Any:
    jpype = start_jvm()
    node = _asm_class("tree.ClassNode")()
    _asm_class("ClassReader")(jpype.JArray(jpype.JByte)(data)).accept(node, 0)
    return node


def _text(instruction: Any) -> str:  # noqa: PLR0911 -- a table by kind of instruction
    """What a change calls an instruction; empty if none can be about it."""
    code = int(instruction.getOpcode())
    if code in NAMES:
        return NAMES[code]
    if code in _ARITHMETIC_NAMES:
        return _ARITHMETIC_NAMES[code]
    kind = str(instruction.getClass().getSimpleName())
    if kind == "MethodInsnNode":
        return f"{instruction.name}()"
    if kind == "LdcInsnNode":
        return str(instruction.cst)
    if kind == "IntInsnNode":
        return str(instruction.operand)
    if 2 <= code <= 8:  # ICONST_M1 .. ICONST_5
        return str(code - 3)
    return {9: "0L", 10: "1L"}.get(code, "")


def listing(data: bytes, method: str) -> Iterator[tuple[str, str]]:
    """Signature and text of every instruction of a method that a change can be about."""
    for each in _read(data).methods:
        if str(each.name) == method:
            for instruction in each.instructions.toArray():
                if text := _text(instruction):
                    yield str(each.desc), text


def changed(data: bytes, change: Change) -> bytes:
    """The class file with the change made."""
    node = _read(data)
    seen = 0
    for method in node.methods:
        if str(method.name) != change.method:
            continue
        for instruction in method.instructions.toArray():
            if _text(instruction) == change.old:
                if seen == change.number:
                    _replace(method.instructions, instruction, change.new)
                    writer = _asm_class("ClassWriter")(1)  # COMPUTE_MAXS
                    node.accept(writer)
                    return bytes(writer.toByteArray())
                seen += 1
    raise LookupError(f"{change.class_name}.{change.method} has no {change.old} number {change.number}, but {seen}")


def _replace(instructions: Any, old: Any, new: str) -> None:
    kind = str(old.getClass().getSimpleName())
    if new in JUMPS:
        old.setOpcode(JUMPS[new])
        return
    if kind == "MethodInsnNode":
        pops = [88 if str(sort) in "JD" else 87 for sort in _arguments(old)]  # POP2, POP
        if int(old.getOpcode()) != 184:  # INVOKESTATIC
            pops.insert(0, 87)
        for code in reversed(pops):
            instructions.insertBefore(old, _asm_class("tree.InsnNode")(code))
        put = {"": 0, "true": 4, "false": 3, "0L": 9}[new]
    else:
        put = ARITHMETIC[new] if new in ARITHMETIC else {"0L": 9, "1L": 10}.get(new, 0)
        if not put:
            instructions.insertBefore(
                old, _asm_class("tree.LdcInsnNode")(start_jvm().JClass("java.lang.Integer")(int(new)))
            )
    instructions.set(old, _asm_class("tree.InsnNode")(put))


def _arguments(call: Any) -> list[str]:
    return [str(one.getDescriptor()) for one in _asm_class("Type").getArgumentTypes(call.desc)]


def class_of(build: Path, class_name: str) -> tuple[Path, bytes]:
    """The jar of a build that has a class of Kafka, and the class file."""
    for jar in sorted(build.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if f"org/apache/kafka/{class_name}.class" in archive.namelist():
                return jar, archive.read(f"org/apache/kafka/{class_name}.class")
    raise LookupError(class_name)


def broken(build: Path, change: Change, target: Path) -> Path:
    """A build like another one, with a change: links to its jars, and a copy of the one that differs."""
    jar, data = class_of(build, change.class_name)
    target.mkdir(parents=True)
    for other in build.glob("*.jar"):
        if other != jar:
            (target / other.name).symlink_to(other.resolve())
    name = f"org/apache/kafka/{change.class_name}.class"
    shutil.copyfile(jar, target / jar.name)
    with zipfile.ZipFile(target / jar.name, "a") as copy:
        # The table of contents is written anew when it is closed: without the old entry, whose bytes stay unread.
        copy.filelist.remove(copy.NameToInfo.pop(name))
        copy.writestr(name, changed(data, change))
    return target
