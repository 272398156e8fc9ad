"""Steps as bytes, with what has to come of them: what Java needs to perform and to compare them without Python.

The layout is that of ``Script.java``, the numbers of the operations are those of ``IndexAdapter.java`` and
``Follower.java``.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import TYPE_CHECKING, Final

from conformance.implementations.jvm.reply import packed
from conformance.operations import KINDS, Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations import Observation

# A time index's append and a transaction index's are `append` there, too.
CODES: Final = {
    name: code
    for code, names in enumerate(
        (
            ("crash",),
            ("truncate_to",),
            ("reset",),
            ("flush",),
            ("sanity_check",),
            ("close",),
            ("delete",),
            ("lookup",),
            ("entry",),
            ("truncate",),
            ("resize",),
            ("trim",),
            ("append", "maybe_append", "append_aborted"),
            ("bulk_append", "bulk_maybe_append"),
            ("fetch_upper_bound",),
            ("collect_aborted",),
            ("all_aborted",),
        )
    )
    for name in names
}
_OPEN, _RENAME, _OVERWRITE, _LIST = 100, 101, 102, 103

_STEP: Final = struct.Struct("=i5qi")
_EXPECTATION: Final = struct.Struct("=2i")
_NOTHING: Final = -1
_AS_BEFORE: Final = struct.pack("=i", -2)
_UNCHANGED: Final = -2
_NEVER: Final = _EXPECTATION.pack(_NOTHING, _NOTHING)
"""An expectation that no reply meets: the harness compares the step itself."""
_LARGEST: Final = 1 << 20
"""Past this many bytes, a file is not copied into scripts."""
PADDING: Final = tuple((0,) * (5 - count) for count in range(6))
"""What makes so many arguments five."""

_INT: Final = struct.Struct("=i")


class _Untold(Enum):
    """Stands for a file whose content the script does not give."""

    UNTOLD = 0


Expected = tuple["Observation", bytes | None]
"""What the reference makes of a step: its observation and its file."""


class Script:
    """Steps, each with what has to come of it in every set of rules.

    Args:
        rules: how many sets of rules there are.

    Attributes:
        steps: how many steps there are.
    """

    def __init__(self, rules: int) -> None:
        self._parts: list[bytes] = []
        self._files: list[bytes | _Untold | None] = [_Untold.UNTOLD] * rules
        self.steps = 0

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def perform(self, operation: Operation, expected: Sequence[Expected]) -> None:
        """An operation, and what has to come of it.

        Raises:
            ValueError: Java's types cannot hold its arguments, or it is no operation of an implementation.
        """
        self._begin(_packed(operation))
        before: Expected | None = None
        for number, mine in enumerate(expected):
            if mine == before:
                self._parts.append(_AS_BEFORE)
                self._files[number] = self._files[number - 1]
                continue
            before = mine
            observation, file = mine
            reply = packed(operation, observation)
            if reply is None or (file is not None and len(file) > _LARGEST):
                self._parts.append(_NEVER)
                self._files[number] = _Untold.UNTOLD
            else:
                self._expect(number, reply, file)

    def overwrite(self, contents: Sequence[bytes | None]) -> None:
        """The file gets another content, in each set of rules; None removes it."""
        self._begin(_step(_OVERWRITE))
        for number, content in enumerate(contents):
            self._expect(number, b"", content)

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """The names of all files have to be these, sorted, in each set of rules."""
        self._begin(_step(_LIST))
        for number, names in enumerate(listings):
            content = "\0".join(names).encode()
            self._parts += (_EXPECTATION.pack(0, len(content)), content)
            self._files[number] = _Untold.UNTOLD  # what came last is no file

    def _begin(self, step: bytes) -> None:
        self._parts.append(step)
        self.steps += 1

    def _expect(self, number: int, reply: bytes, file: bytes | None) -> None:
        if self._files[number] == file:
            self._parts += (_EXPECTATION.pack(len(reply), _UNCHANGED), reply)
        elif file is None:
            self._parts += (_EXPECTATION.pack(len(reply), _NOTHING), reply)
        else:
            self._parts += (_EXPECTATION.pack(len(reply), len(file)), reply, file)
        self._files[number] = file


def _packed(operation: Operation) -> bytes:
    """An operation and its arguments."""
    name, arguments = operation
    code = CODES.get(name)
    try:
        if code is not None:
            return _step(code, arguments)
        if name == "open":
            kind, path, base_offset, max_index_size, writable = arguments
            _INT.pack(max_index_size)
            return _step(_OPEN, (KINDS.index(kind), base_offset, max_index_size, writable), path.encode())
        if name == "rename":
            return _step(_RENAME, (), arguments[0].encode())
    except struct.error:
        raise ValueError(f"{operation} has an argument that Java's types cannot hold") from None
    raise ValueError(f"{name} is the harness's own")


def _step(code: int, arguments: tuple[int, ...] = (), text: bytes = b"") -> bytes:
    head: bytes = _STEP.pack(code, *arguments, *PADDING[len(arguments)], len(text))
    return head + text
