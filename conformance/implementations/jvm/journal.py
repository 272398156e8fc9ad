"""Journal of all writes, renames, removals and syncs of a release's classes in one directory.

Calls in Kafka's bytecode are redirected to ``Journal.java`` by ASM. After a write is executed, the directory is read. A
sync also passes the place from which it was called. The instrumented classes come first on the path of a separate class
loader, with a copy of the journal.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

_JOURNAL: Final = "conformance/Journal"
_RECORDED: Final = re.compile(
    r"(?:kafka/(?:log|server/checkpoints|server/epoch|utils)"
    r"|org/apache/kafka/(?:common/(?:record|utils)|storage/internals|server/(?:common|util)))/.*\.class"
)
"""Classes that are searched for these calls."""
_INDEX: Final = re.compile(r".*/(?:Abstract|Offset|Time)Index\b.*")
"""Classes that write to a mapped file, in which every number that is put is an event."""
# The calls that are redirected, as class and method of Java.
_OWNERS: Final = (
    b"java/nio/channels/FileChannel",
    b"java/nio/channels/GatheringByteChannel",
    b"java/nio/MappedByteBuffer",
    b"java/io/RandomAccessFile",
    b"java/io/FileOutputStream",
    b"java/io/FileDescriptor",
    b"java/io/BufferedWriter",
    b"java/nio/file/Files",
    b"java/io/File",
)
"""Classes of Java; a class of Kafka that names none of them changes no file."""
_STREAMS: Final = frozenset({"java/io/RandomAccessFile", "java/io/FileOutputStream"})
"""Classes whose constructors open files."""
_REDIRECTED: Final = frozenset(
    {
        ("java/nio/channels/FileChannel", "open"),
        ("java/nio/channels/FileChannel", "map"),
        ("java/io/RandomAccessFile", "getChannel"),
        ("java/io/RandomAccessFile", "getFD"),
        ("java/io/FileOutputStream", "getChannel"),
        ("java/io/FileOutputStream", "getFD"),
    }
)
"""Calls that return an object through which a file is written or synced."""
_SYNCS: Final = frozenset(
    {
        ("java/nio/channels/FileChannel", "force"),
        ("java/nio/MappedByteBuffer", "force"),
        ("java/io/FileDescriptor", "sync"),
    }
)
_WRITES: Final = {
    "java/nio/channels/FileChannel": {"write", "truncate", "transferFrom", "close"},
    "java/nio/channels/GatheringByteChannel": {"write"},
    "java/nio/channels/WritableByteChannel": {"write"},
    "java/io/RandomAccessFile": {"write", "setLength", "close"},
    "java/io/FileOutputStream": {"write", "flush", "close"},
    "java/io/OutputStreamWriter": {"flush", "close"},
    "java/io/BufferedWriter": {"flush", "close"},
    "java/io/Writer": {"flush", "close"},
    "java/nio/file/Files": {
        "move", "delete", "deleteIfExists", "createFile", "copy", "write", "writeString", "createLink",
    },
    "java/io/File": {"delete", "renameTo", "createNewFile"},
}  # fmt: skip
"""Calls after which the directory is read."""
_DUP, _DUP2 = 89, 92  # opcodes
_CALL: Final = 5
"""ASM's number for instructions that call methods."""


class SyncKind(IntEnum):
    """Extent of a sync: what it makes durable."""

    WHOLE = 0
    """Content and length: ``fsync``, ``FileChannel.force(true)``."""
    DATA = 1
    """Content, and a length that grew: ``fdatasync``, ``FileChannel.force(false)``."""
    MAPPING = 2
    """Pages of a mapping, and the length needed to read them: ``msync``, ``MappedByteBuffer.force``."""


class StepBegins(NamedTuple):
    """Beginning of the operation with this number."""

    number: int


class Written(NamedTuple):
    """New content of a file; ``file`` is the number that the journal has given to the file, for all its names."""

    file: int
    content: bytes


class Renamed(NamedTuple):
    """New name of a file. ``old`` is empty for a creation, ``new`` for a removal, whose ``file`` is -1."""

    old: str
    new: str
    file: int


class Synced(NamedTuple):
    """Sync of a file, by its number; ``site`` has the methods of Kafka that led to the sync, the innermost first."""

    file: int
    kind: SyncKind
    site: str


class DirectorySynced(NamedTuple):
    """Sync of the directory; ``site`` has the methods of Kafka that led to the sync."""

    site: str


Event = StepBegins | Written | Renamed | Synced | DirectorySynced


class JournalledClasses:
    """Classes of a release whose changes of files are recorded.

    Args:
        directory: An empty directory for the instrumented classes.
        progress: A callback that receives the progress of downloads.
        build: The build whose classes are used instead.

    Attributes:
        loader: The loader of the classes.
        sites: The places in Kafka's classes that sync, in order.

    Raises:
        ToolError: Java or the jars are missing, or no place that syncs was found.
    """

    def __init__(
        self, release: str, directory: Path, progress: Progress | None = None, build: Build | None = None
    ) -> None:
        self.sites: list[str] = []
        jars = jars_of(release, progress, build)
        self._instrument(jars, directory)
        if not self.sites:
            raise ToolError(
                f"cannot record the syncs of Kafka {release}: none of the classes that sync in known releases syncs "
                "a file"
            )
        for name, data in own_classes("Journal*.class"):
            write_class(directory, name, data)
        self.loader = class_loader([directory, *jars])
        self._journal = start_jvm().JClass("conformance.Journal", loader=self.loader)

    def begin(self, directory: Path) -> None:
        """Begin to record the changes in a directory."""
        self._journal.begin(str(directory))

    def step(self, number: int) -> None:
        """Mark the beginning of an operation."""
        self._journal.step(number)

    def end(self) -> list[Event]:
        """End the record and return its events.

        Raises:
            ToolError: A file was synced that the record does not know, so that the record is not exact.
        """
        return list(_decoded(bytes(self._journal.end())))

    # -- bytecode ----------------------------------------------------------------------------------------------

    def _instrument(self, jars: Sequence[Path], directory: Path) -> None:
        done = set[str]()
        for name, data in kafkas_classes(jars, _RECORDED):
            if name in done or not any(owner in data for owner in _OWNERS):
                continue
            done.add(name)
            if (changed := self._redirected(name, data)) is not None:
                write_class(directory, name, changed)

    def _redirected(self, name: str, data: bytes) -> bytes | None:
        """Return a class file whose calls are redirected to the journal, or None if it has no such call."""
        node = read_class(data)
        is_index = _INDEX.fullmatch(name) is not None
        short = name.removesuffix(".class").rpartition("/")[2]
        changed = False
        for method in node.methods:
            for instruction in method.instructions.toArray():
                if int(instruction.getType()) != _CALL:
                    continue
                key = str(instruction.owner), str(instruction.name)
                if key in _SYNCS:
                    self.sites.append(f"{short}.{method.name}")
                    self._call(instruction)
                elif key in _REDIRECTED:
                    self._call(instruction)
                elif key[0] in _STREAMS and key[1] == "<init>":
                    self._opening(method.instructions, instruction)
                elif key[1] in _WRITES.get(key[0], ()) or (is_index and _puts(*key)):
                    method.instructions.insert(instruction, self._static("touched", "()V"))
                else:
                    continue
                changed = True
        return class_file(node) if changed else None

    def _static(self, name: str, descriptor: str) -> Any:
        return asm_class("tree.MethodInsnNode")(INVOKE_STATIC, _JOURNAL, name, descriptor, False)

    def _call(self, call: Any) -> None:
        """Redirect a call to the journal's method of the same name, which takes the object as its first argument."""
        arguments, _, result = str(call.desc).removeprefix("(").rpartition(")")
        own = "" if int(call.getOpcode()) == INVOKE_STATIC else f"L{call.owner};"
        call.setOpcode(INVOKE_STATIC)
        call.owner, call.desc, call.itf = _JOURNAL, f"({own}{arguments}){result}", False

    def _opening(self, instructions: Any, call: Any) -> None:
        """Pass the arguments of a constructor that opens a file to the journal, and then the new object."""
        arguments, _, _ = str(call.desc).removeprefix("(").rpartition(")")
        kinds = {
            "Ljava/io/File;Ljava/lang/String;": (_DUP2, "(Ljava/io/File;Ljava/lang/Object;)V"),
            "Ljava/lang/String;Ljava/lang/String;": (_DUP2, "(Ljava/lang/String;Ljava/lang/Object;)V"),
            "Ljava/io/File;Z": (_DUP2, "(Ljava/io/File;Z)V"),
            "Ljava/lang/String;Z": (_DUP2, "(Ljava/lang/String;Z)V"),
            "Ljava/io/File;": (_DUP, "(Ljava/io/File;)V"),
            "Ljava/lang/String;": (_DUP, "(Ljava/lang/String;)V"),
        }
        if arguments not in kinds:
            return  # it opens a file descriptor, not a path
        copies, descriptor = kinds[arguments]
        insn = asm_class("tree.InsnNode")
        instructions.insertBefore(call, insn(copies))
        instructions.insertBefore(call, self._static("opening", descriptor))
        instructions.insert(call, self._static("opened", "(Ljava/lang/Object;)V"))
        instructions.insert(call, insn(_DUP))


def _puts(owner: str, name: str) -> bool:
    """Return True if a call writes a number to a buffer."""
    return owner in ("java/nio/MappedByteBuffer", "java/nio/ByteBuffer") and name.startswith("put")


def _decoded(data: bytes) -> Iterator[Event]:  # noqa: C901 -- a table by kind of event
    at = 0

    def take(form: str) -> Any:
        nonlocal at
        (value,) = struct.unpack_from(">" + form, data, at)
        at += struct.calcsize(">" + form)
        return value

    def octets(count: int) -> bytes:
        nonlocal at
        at += count
        return data[at - count : at]

    def text() -> str:
        return octets(take("H")).decode()

    while at < len(data):
        kind = take("b")
        if kind == 0:
            yield StepBegins(take("i"))
        elif kind == 1:
            yield Written(take("i"), octets(take("i")))
        elif kind == 2:
            yield Renamed(text(), text(), take("i"))
        elif kind == 3:
            yield Synced(take("i"), SyncKind(take("b")), text())
        else:
            known, site = take("?"), text()
            if kind == 5:
                raise ToolError(
                    f"{site} syncs a file whose opening was not recorded: this Kafka cannot be tested for power losses"
                )
            if known:
                yield DirectorySynced(site)
