"""Batch of steps as bytes, with the expected results, so that Java executes and compares the steps without Python.

A batch has the layout of ``Script.java``, and each step has the layout of ``Steps.java``: native longs, and bytes that
are padded with zeros to whole longs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.operations import Operation

WRITE, LIST, COMPARE = 300, 301, 302
"""Numbers of the harness's own steps, which write, list and compare files."""

_LONG: Final = struct.Struct("=q").pack
_PADDING: Final = [bytes(number) for number in range(8)]
_NOTHING: Final = _LONG(-1)
"""Length of the content of a file that does not exist, or of an expectation that no reply matches."""
_AS_BEFORE: Final = _LONG(-2)
"""Length of a reply that is the same as for the preceding set of rules, and so are the files."""
_UNCHANGED: Final = _LONG(-2)
"""Length of a content, or number of files, that is the same as after the preceding step."""
_NAMED_AS_BEFORE: Final = _LONG(-3)
"""Number of files whose names are the same as after the preceding step."""
_NO_FILES: Final = _LONG(0)
_NEVER: Final = _NOTHING + _NO_FILES
"""Expectation that no reply matches, so that the harness compares the step itself."""
_LARGEST: Final = 1 << 20
"""Size in bytes above which a file is not copied into batches."""


class _Unset(Enum):
    """Marker for a file whose content the batch does not contain yet."""

    UNSET = 0


class Language(NamedTuple):
    """Encoder for one driver.

    Attributes:
        step: A function that encodes an operation as the beginning of a step; it raises ValueError if the driver does
            not have the operation, or if Java's types cannot represent the arguments.
        reply: A function that encodes the expected reply for an observation after an operation; it returns None if no
            reply can match.
    """

    step: Callable[[Operation], bytes]
    reply: Callable[[Operation, Any], bytes | None]


def step(code: int, arguments: Sequence[int] = (), content: bytes = b"") -> bytes:
    """Encode an operation, given by its number, with its arguments.

    Raises:
        struct.error: An argument is not a 64-bit integer.
    """
    count = len(arguments)
    header = _header(count).pack(code, count, *arguments, len(content))
    return header + content + _PADDING[-len(content) % 8] if content else header


@cache
def _header(count: int) -> struct.Struct:
    return struct.Struct(f"={count + 3}q")


def content_parts(content: bytes | None) -> tuple[bytes, ...]:
    """Return the parts of a content or a reply: the length, the bytes and their padding."""
    if content is None:
        return (_NOTHING,)
    return _LONG(len(content)), content, _PADDING[-len(content) % 8]


require_int: Final = struct.Struct("=i").pack
"""Function that raises struct.error if a number does not fit in 32 bits, because Java would truncate it."""


class StepBatch:
    """Batch of steps, each with its expected results for every set of rules.

    Releases that share a reference have the same set of rules.

    Args:
        rules: The number of sets of rules.
        language: The encoder of the steps.

    Attributes:
        steps: The number of steps.
    """

    def __init__(self, rules: int, language: Language) -> None:
        self._language = language
        self._parts: list[bytes] = []
        self._files: list[Mapping[str, bytes | None]] = [{}] * rules
        self._contents: list[Any] = [_Unset.UNSET] * rules
        self._name: Any = _Unset.UNSET
        self.steps = 0

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def perform(
        self,
        operation: Operation,
        expected: Sequence[tuple[Any, Any]],
        by_name: Callable[[Any, Any], Mapping[str, Any]],
        name: Any,
    ) -> None:
        """Add an operation with its expected results; see :class:`~conformance.implementations.protocol.StepBatch`.

        Raises:
            ValueError: Java's types cannot represent the arguments, or no implementation has the operation.
        """
        try:
            self._begin(self._language.step(operation))
        except struct.error:
            raise ValueError(f"{operation} has an argument that Java's types cannot hold") from None
        has_same_name, self._name = self._name == name, name
        before = None
        for number, result in enumerate(expected):
            if before is not None and result == before:
                self._parts.append(_AS_BEFORE)
                self._files[number], self._contents[number] = self._files[number - 1], self._contents[number - 1]
                continue
            before = observation, content = result
            reply = self._language.reply(operation, observation)
            if reply is None:
                self._match_no_reply(number)
                continue
            is_unchanged = has_same_name and content is self._contents[number]  # as after most lookups
            self._expect(number, reply, self._files[number] if is_unchanged else by_name(content, name), content)

    def overwrite(self, name: str, contents: Sequence[bytes | None]) -> None:
        """Add a step that replaces the content of a file, for each set of rules; None removes the file."""
        self._begin(step(WRITE, (), name.encode()))
        self._pass_contents(contents)

    def compare_listings(self, listings: Sequence[Sequence[str]]) -> None:
        """Add a check that these are the sorted names of all files, for each set of rules."""
        self._begin(step(LIST))
        self._pass_contents(["\0".join(names).encode() for names in listings])

    def _begin(self, request: bytes) -> None:
        self._parts.append(request)
        self.steps += 1

    def _pass_contents(self, contents: Sequence[bytes | None]) -> None:
        """Add the content of a step of the harness, for each set of rules, in the form of a reply without files."""
        for number, content in enumerate(contents):
            self._parts += (*content_parts(content), _NO_FILES)
            self._forget(number)

    def _expect(self, number: int, reply: bytes, files: Mapping[str, bytes | None], contents: Any) -> None:
        """Add reply and files for a set of rules; files are omitted if they are as in the previous step."""
        before = self._files[number]
        was_written = self._contents[number] is not _Unset.UNSET
        if was_written and (files is before or files == before):
            self._parts += (_LONG(len(reply)), reply, _PADDING[-len(reply) % 8], _UNCHANGED)
            self._contents[number] = contents
            return
        parts = [*content_parts(reply)]
        named_as_before = was_written and tuple(files) == tuple(before)
        parts.append(_NAMED_AS_BEFORE if named_as_before else _LONG(len(files)))
        for name, content in files.items():
            if not named_as_before:
                parts += content_parts(name.encode())
            if before.get(name, _Unset.UNSET) == content:
                parts.append(_UNCHANGED)
            elif content is not None and len(content) > _LARGEST:
                self._match_no_reply(number)
                return
            else:
                parts += content_parts(content)
        self._parts += parts
        self._files[number], self._contents[number] = files, contents

    def _match_no_reply(self, number: int) -> None:
        self._parts.append(_NEVER)
        self._forget(number)

    def _forget(self, number: int) -> None:
        self._files[number], self._contents[number] = {}, _Unset.UNSET
