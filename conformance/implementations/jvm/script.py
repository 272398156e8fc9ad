"""Steps as bytes, with what has to come of them: what Java needs to perform and to compare them without Python.

The layout is that of ``Script.java``; the numbers of the harness's own steps are those of ``Follower.java``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.operations import Operation

_OVERWRITE, _LIST = 200, 201

_INTS: Final = struct.Struct("=2i")
_INT: Final = struct.Struct("=i")
_NOTHING: Final = _INT.pack(-1)
_AS_BEFORE: Final = _INT.pack(-2)
_UNCHANGED: Final = _INT.pack(-2)
_NO_FILES: Final = _INT.pack(0)
_NEVER: Final = _NOTHING + _NO_FILES
"""An expectation that no reply meets: the harness compares the step itself."""
_LARGEST: Final = 1 << 20
"""Past this many bytes, a file is not copied into scripts."""


class _Untold(Enum):
    """Stands for the content of a file that the script has not given."""

    UNTOLD = 0


class Language(NamedTuple):
    """How what one driver performs is written.

    Attributes:
        step: an operation as the beginning of a step; raises ValueError if Java's types cannot hold its arguments, or
            if it is no operation of the driver.
        reply: the reply that stands for an observation after an operation; None if no reply can.
    """

    step: Callable[[Operation], bytes]
    reply: Callable[[Operation, Any], bytes | None]


def step(code: int, arguments: Sequence[int] = (), content: bytes = b"") -> bytes:
    """An operation by its number, with its arguments.

    Raises:
        struct.error: an argument is no 64-bit integer.
    """
    count = len(arguments)
    return struct.pack(f"=2i{count}qi", code, count, *arguments, len(content)) + content


def require_ints(*numbers: int) -> None:
    """Raises struct.error if a number does not fit into 32 bits: Java would cut it."""
    for number in numbers:
        _INT.pack(number)


class Script:
    """Steps, each with what has to come of it in every set of rules.

    Args:
        rules: how many sets of rules there are.
        language: of the drivers that will perform it.

    Attributes:
        steps: how many steps there are.
    """

    def __init__(self, rules: int, language: Language) -> None:
        self._language = language
        self._parts: list[bytes] = []
        self._files: list[Mapping[str, bytes | _Untold | None]] = [{}] * rules
        self._told = [False] * rules
        self.steps = 0

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def perform(
        self, operation: Operation, expected: Sequence[tuple[Any, Any]], named: Callable[[Any], Mapping[str, Any]]
    ) -> None:
        """An operation, and what has to come of it.

        Args:
            operation: what to perform.
            expected: for each set of rules, the observation and the files of a level.
            named: makes names and contents of the files of a level.

        Raises:
            ValueError: Java's types cannot hold its arguments, or it is no operation of an implementation.
        """
        self._begin(self._packed(operation))
        before = None
        for number, mine in enumerate(expected):
            if before is not None and mine == before:
                self._parts.append(_AS_BEFORE)
                self._files[number], self._told[number] = self._files[number - 1], self._told[number - 1]
                continue
            before = mine
            reply, files = self._language.reply(operation, mine[0]), named(mine[1])
            unchanged = self._told[number] and files == self._files[number]
            if reply is None or not (unchanged or _can_be_told(files)):
                self._parts.append(_NEVER)
                self._files[number], self._told[number] = {}, False
                continue
            self._parts += (_INT.pack(len(reply)), reply)
            if unchanged:
                self._parts.append(_UNCHANGED)
            else:
                self._expect(number, files)

    def overwrite(self, name: str, contents: Sequence[bytes | None]) -> None:
        """A file gets another content, in each set of rules; None removes it."""
        self._begin(step(_OVERWRITE, (), name.encode()))
        self._tell(contents)

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """The names of all files have to be these, sorted, in each set of rules."""
        self._begin(step(_LIST))
        self._tell(["\0".join(names).encode() for names in listings])

    def _packed(self, operation: Operation) -> bytes:
        try:
            return self._language.step(operation)
        except struct.error:
            raise ValueError(f"{operation} has an argument that Java's types cannot hold") from None

    def _begin(self, beginning: bytes) -> None:
        self._parts.append(beginning)
        self.steps += 1

    def _tell(self, contents: Sequence[bytes | None]) -> None:
        """What the harness's own step is about, in each set of rules, as a reply; files are not told."""
        for number, content in enumerate(contents):
            self._parts += (_NOTHING, _NO_FILES) if content is None else (_INT.pack(len(content)), content, _NO_FILES)
            self._files[number], self._told[number] = {}, False

    def _expect(self, number: int, files: Mapping[str, bytes | None]) -> None:
        """The files of a set of rules; those that are as in the step before are not told again."""
        before = self._files[number]
        self._parts.append(_INT.pack(len(files)))
        for name, content in files.items():
            path = name.encode()
            self._parts += (_INT.pack(len(path)), path)
            if before.get(name, _Untold.UNTOLD) == content:
                self._parts.append(_UNCHANGED)
            elif content is None:
                self._parts.append(_NOTHING)
            else:
                self._parts += (_INT.pack(len(content)), content)
        self._files[number], self._told[number] = files, True


def _can_be_told(files: Mapping[str, bytes | None]) -> bool:
    return not any(len(content) > _LARGEST for content in files.values() if content)
