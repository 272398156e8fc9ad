"""Steps as bytes, with the expected results, so that Java executes and compares the steps without Python.

A batch has the layout of ``Script.java``, and each step has the layout of ``Steps.java``: native longs, and bytes that
are padded with zeros to whole longs. Requests are encoded as the operations are declared: a request has the numbers
among the arguments in their order, and all other arguments are bytes, separated by zero bytes.
"""

from __future__ import annotations

import struct
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.virtual_machine import most_open_files
from conformance.operations import Effect
from conformance.operations.batches import encode, is_marker, producer_of
from conformance.operations.op import BATCHES, HEXADECIMAL, INT, LONGS, PATH, SETTINGS, TEXT, TEXTS, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        rule_sets: The number of sets of rules.
        language: The encoder of the steps.

    Attributes:
        steps: The number of steps.
    """

    def __init__(self, rule_sets: int, language: Language) -> None:
        self._language = language
        self._parts: list[bytes] = []
        self._files: list[Mapping[str, bytes | None]] = [{}] * rule_sets
        self._contents: list[Any] = [_Unset.UNSET] * rule_sets
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


def performed(operations: Mapping[str, Op]) -> dict[str, Op]:
    """Return the operations that Java executes."""
    return {name: each for name, each in operations.items() if each.effect is not Effect.DAMAGES}


def numbered(operations: Mapping[str, Op]) -> dict[str, int]:
    """Return the number of each operation in batches."""
    return {name: number for number, name in enumerate(operations)}


_CONTENT_OF: Final[dict[Any, Any]] = {
    HEXADECIMAL: bytes.fromhex,
    PATH: str.encode,
    TEXT: str.encode,
    TEXTS: lambda texts: "\0".join(texts).encode(),
    BATCHES: encode,
}
"""For each type of arguments that are bytes in a request, the function that encodes them."""


def _step_of(number: int, operation: Op, content_of: Mapping[Any, Any]) -> Callable[[Sequence[Any]], bytes]:
    """Return the function that encodes an operation with its arguments."""
    kinds = list(operation.arguments.values())
    if kinds == [LONGS]:
        return lambda arguments: step(number, arguments[0])
    contents = [(place, content_of[kind]) for place, kind in enumerate(kinds) if kind in content_of]
    ints = [place for place, kind in enumerate(kinds) if kind is INT]
    choices = {place: options for place, kind in enumerate(kinds) if (options := _options(kind))}
    longs = [place for place, kind in enumerate(kinds) if kind not in content_of]
    if not contents and not ints and not choices:
        return partial(step, number)

    def write_numbers(arguments: Sequence[Any]) -> bytes:
        for place in ints:
            require_int(arguments[place])
        return step(number, arguments)

    if not contents and not choices:
        return write_numbers

    def write(arguments: Sequence[Any]) -> bytes:
        for place in ints:
            require_int(arguments[place])
        content = b"\0".join([of(arguments[place]) for place, of in contents])
        numbers = [choices[at].index(arguments[at]) if at in choices else arguments[at] for at in longs]
        if kinds[0] is BATCHES:
            numbers += (not is_marker(arguments[0]), producer_of(arguments[0]))
        return step(number, numbers, content)

    return write


def _options(kind: Any) -> tuple[str, ...]:
    """Return the names from which an argument is chosen; empty for an argument of another type."""
    return get_args(get_args(kind)[0])


class Requests:
    """Encoder of operations, for :class:`~conformance.implementations.jvm.step_batch.Language`.

    Args:
        operations: The operations that the driver executes.
        of_settings: A function that encodes topic settings.
    """

    def __init__(
        self, operations: Mapping[str, Op], of_settings: Callable[[dict[str, Any]], bytes] | None = None
    ) -> None:
        content_of = {**_CONTENT_OF, SETTINGS: of_settings}
        numbers = numbered(operations)
        self._steps = {name: _step_of(numbers[name], each, content_of) for name, each in operations.items()}

    def __call__(self, operation: Operation) -> bytes:
        """Return the beginning of a step.

        Raises:
            ValueError: Java has no such operation, or its types cannot represent the arguments.
        """
        name, arguments = operation
        write = self._steps.get(name)
        if write is None:
            raise ValueError(f"{name} is executed by the harness, not by Kafka's classes")
        return write(arguments)


_SHARE: Final = 0.4
"""Share of this process's file descriptors for files to compare; Kafka's classes need the others."""


class JvmBatchGroup:
    """Group of implementations of one kind (see :class:`conformance.implementations.protocol.BatchGroup`).

    Args:
        language: The encoder of the steps.
        rule_sets: The number of sets of rules; releases that share a reference have the same set.
        members: Implementations, each with a ``driver`` and the number of its set of rules.
    """

    def __init__(self, language: Language, rule_sets: int, members: Sequence[tuple[Any, int]]) -> None:
        self._language = language
        self._rule_sets = rule_sets
        self._executors = driver_class("BatchExecutors")(rule_sets, int(most_open_files() * _SHARE))
        for member, mine in members:
            self._executors.add(member.driver, mine)
        self.begin = self._executors.begin
        self.finish = self._executors.finish
        self.stopped_at = self._executors.stoppedAt
        self.resume = self._executors.resume
        self.performing = self._executors.executing

    def script(self) -> StepBatch:
        """Return a new batch; see the protocol."""
        return StepBatch(self._rule_sets, self._language)

    def start(self, script: StepBatch, *, alone: bool) -> None:
        """Start to execute a batch; see the protocol."""
        self._executors.start(bytes(script), script.steps, alone)
