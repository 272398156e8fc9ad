"""Builds of Kafka with one changed instruction: a comparison, a constant, an omitted call.

ASM reads and writes the class files, in the Java of the tests. Kafka's source is not needed.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.implementations.jvm.bytecode import asm_class, class_file, read_class
from conformance.implementations.jvm.virtual_machine import start_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator

JUMPS = {
    "==0": 153, "!=0": 154, "<0": 155, ">=0": 156, ">0": 157, "<=0": 158,
    "==": 159, "!=": 160, "<": 161, ">=": 162, ">": 163, "<=": 164,
    "null": 198, "!null": 199,
}  # fmt: skip
"""Comparisons that jump, by their jump condition. ``"<0"`` also matches the jump after a comparison of two longs."""
NAMES = {code: name for name, code in JUMPS.items()}
ARITHMETIC = {"+": 96, "+long": 97, "-": 100, "-long": 101, "*": 104, "/": 108, "%": 112}
_ARITHMETIC_NAMES = {code: name for name, code in ARITHMETIC.items()}


class Change(NamedTuple):
    """Change of one instruction of a method.

    Attributes:
        class_name: Name of the class, relative to ``org.apache.kafka``, with slashes.
        method: Name of the method. Overloads are searched in the order of the class file.
        old: The original comparison, operator, constant or called method.
        number: Index of the occurrence, from 0.
        new: The replacement; empty to omit a call that has no result.
    """

    class_name: str
    method: str
    old: str
    number: int
    new: str


def _text(instruction: Any) -> str:  # noqa: PLR0911 -- a table by kind of instruction
    """Return the text of an instruction that a change can name, or an empty string."""
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
    """Return the signature of every method and the text of every instruction that a change can name."""
    for each in read_class(data).methods:
        if str(each.name) == method:
            for instruction in each.instructions.toArray():
                if text := _text(instruction):
                    yield str(each.desc), text


def changed(data: bytes, change: Change) -> bytes:
    """Return the class file with the change applied."""
    node = read_class(data)
    seen = 0
    for method in node.methods:
        if str(method.name) != change.method:
            continue
        for instruction in method.instructions.toArray():
            if _text(instruction) == change.old:
                if seen == change.number:
                    _replace(method.instructions, instruction, change.new)
                    return class_file(node)
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
            instructions.insertBefore(old, asm_class("tree.InsnNode")(code))
        put = {"": 0, "true": 4, "false": 3, "0L": 9}[new]
    else:
        put = ARITHMETIC[new] if new in ARITHMETIC else {"0L": 9, "1L": 10}.get(new, 0)
        if not put:
            instructions.insertBefore(
                old, asm_class("tree.LdcInsnNode")(start_jvm().JClass("java.lang.Integer")(int(new)))
            )
    instructions.set(old, asm_class("tree.InsnNode")(put))


def _arguments(call: Any) -> list[str]:
    return [str(one.getDescriptor()) for one in asm_class("Type").getArgumentTypes(call.desc)]


def class_of(build: Path, class_name: str) -> tuple[Path, bytes]:
    """Return the path of the jar of a build that contains a class of Kafka, and the class file."""
    for jar in sorted(build.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if f"org/apache/kafka/{class_name}.class" in archive.namelist():
                return jar, archive.read(f"org/apache/kafka/{class_name}.class")
    raise LookupError(class_name)


def broken(build: Path, change: Change, target: Path) -> Path:
    """Copy a build of Kafka with one change: the copy has links to the other jars, and one modified jar."""
    jar, data = class_of(build, change.class_name)
    target.mkdir(parents=True)
    for other in build.glob("*.jar"):
        if other != jar:
            (target / other.name).symlink_to(other.resolve())
    name = f"org/apache/kafka/{change.class_name}.class"
    shutil.copyfile(jar, target / jar.name)
    with zipfile.ZipFile(target / jar.name, "a") as copy:
        # Closing appends a new table of contents without the old entry, whose bytes remain unread.
        copy.filelist.remove(copy.NameToInfo.pop(name))
        copy.writestr(name, changed(data, change))
    return target
