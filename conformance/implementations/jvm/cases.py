"""Batches of short cases in one call: their steps, with the expected replies (``Cases.java``).

A case is its length in longs and a sequence of steps, as in a :mod:`~conformance.implementations.jvm.step_batch`.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.step_batch import COMPARE, WRITE, content_parts, step
from conformance.implementations.jvm.virtual_machine import start_jvm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ASKED: Final = 1000
"""Offset of the number of an operation that changes nothing: its reply has no state."""
AS_WRITTEN: Final = -2
"""Instead of the length of a content to compare with: the content that was written last."""

_LONG: Final = struct.Struct("=q")
_AS_WRITTEN: Final = _LONG.pack(AS_WRITTEN)
_named: Final = lru_cache(maxsize=256)(lambda code, name: step(code, (), name.encode()))


def asked(request: bytes) -> bytes:
    """Return the beginning of a step whose reply has no state, from the beginning of a step whose reply has one."""
    return _LONG.pack(_LONG.unpack_from(request)[0] + ASKED) + request[_LONG.size :]


class CaseWriter:
    """Writer of one case, step by step."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def __bytes__(self) -> bytes:
        body = b"".join(self._parts)
        return struct.pack("=q", len(body) // 8) + body

    def perform(self, request: bytes, reply: bytes | None) -> None:
        """Add an operation.

        Args:
            request: The beginning of the step.
            reply: The expected reply, or None if no reply is right.
        """
        self._parts += (request, *content_parts(reply))

    def write(self, name: str, content: bytes | None) -> None:
        """Add a step that gives a file a content, or removes it."""
        self.perform(_named(WRITE, name), content)

    def compare(self, name: str, content: bytes | None) -> None:
        """Add a check that a file has this content, or does not exist."""
        self.perform(_named(COMPARE, name), content)

    def compare_as_written(self, name: str) -> None:
        """Add a check that a file has the content that was written last."""
        self._parts += (_named(COMPARE, name), _AS_WRITTEN)

    def extend(self, other: CaseWriter) -> None:
        """Add the steps of another writer."""
        self._parts += other._parts


class CaseBuffer:
    """Memory that Python and Java share, for a number of cases.

    Attributes:
        longs: The memory.
    """

    def __init__(self, capacity: int) -> None:
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        from jpype import nio  # noqa: PLC0415 -- part of an extra

        memory = bytearray(8 * capacity)
        self.longs: NDArray[np.int64] = np.frombuffer(memory, np.int64)
        start_jvm()
        self.shared = nio.convertToDirectBuffer(memory)

    def reserve(self, capacity: int) -> None:
        """Ensure a capacity in longs; the content is lost if that needs other memory."""
        if capacity > len(self.longs):
            self._allocate(2 * capacity)

    def fill(self, cases: Iterable[bytes]) -> None:
        """Write cases, from the beginning."""
        data = np.frombuffer(b"".join(cases), np.int64)
        self.reserve(len(data))
        self.longs[: len(data)] = data


class JvmCases:
    """Execution of cases by one release's classes.

    Args:
        member: An index, a segment or a log of :mod:`conformance.implementations.jvm`, for exclusive use.
        directory: An empty directory in which all cases work.
    """

    def __init__(self, member: Any, directory: Path) -> None:
        self.member = member
        member.begin(directory)
        self._cases = driver_class("Cases")(member.driver, str(directory))

    def watch(self, probes: Sequence[Any]) -> None:
        """Report from now on which cases reach new code: ``probes`` are the arrays of JaCoCo, one per class."""
        jpype = start_jvm()
        self._cases.watch(jpype.JArray(jpype.JBoolean, 2)(probes))

    def perform(self, buffer: CaseBuffer, count: int) -> NDArray[np.int32]:
        """Execute the cases of a buffer.

        Returns:
            A row per case: the first differing step, from 0 on, or -1; and 1 if it has reached code that no earlier
            case has
            reached, else 0.
        """
        return np.array(self._cases.execute(buffer.shared, count), np.int32).reshape(count, 2)

    def performing(self) -> int:
        """Return the number of the case in progress, from 0 on; for another thread, such as a watchdog."""
        return int(self._cases.executing())

    def begun(self) -> int:
        """Return the number of started operations of that case, without those on files; for another thread."""
        return int(self._cases.begun())
