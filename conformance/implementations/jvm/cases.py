"""Batches of cases that Java executes in one call (``Cases.java``).

A case is a short sequence of steps, with or without expected replies. It is encoded as its length in longs, followed by
steps as in a :mod:`~conformance.implementations.jvm.step_batch`.
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

WITHOUT_STATE: Final = 1000
"""Number that is added to the number of a read-only operation, so that its reply has no state."""
AS_WRITTEN: Final = -2
"""Value that replaces the length of an expected content: the content that was written last is expected."""

_LONG: Final = struct.Struct("=q")
_AS_WRITTEN: Final = _LONG.pack(AS_WRITTEN)
_named: Final = lru_cache(maxsize=256)(lambda code, name: step(code, (), name.encode()))


def without_state(request: bytes) -> bytes:
    """Return a request for a reply without the state, from the same request for a reply with it."""
    return _LONG.pack(_LONG.unpack_from(request)[0] + WITHOUT_STATE) + request[_LONG.size :]


class CaseWriter:
    """Writer of one case, step by step."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def __bytes__(self) -> bytes:
        steps = self.steps
        return struct.pack("=q", len(steps) // 8) + steps

    @property
    def steps(self) -> bytes:
        """Encoded steps so far."""
        return b"".join(self._parts)

    def perform(self, request: bytes, reply: bytes | None) -> None:
        """Add an operation.

        Args:
            request: The beginning of the step.
            reply: The expected reply, or None if any reply is a difference.
        """
        self._parts += (request, *content_parts(reply))

    def write(self, name: str, content: bytes | None) -> None:
        """Add a step that writes a content to a file; None removes the file."""
        self.perform(_named(WRITE, name), content)

    def compare(self, name: str, content: bytes | None) -> None:
        """Add a check that a file has this content; None checks that it does not exist."""
        self.perform(_named(COMPARE, name), content)

    def compare_as_written(self, name: str) -> None:
        """Add a check that a file still has the content that was last written to it."""
        self._parts += (_named(COMPARE, name), _AS_WRITTEN)

    def extend(self, steps: Iterable[bytes]) -> None:
        """Add encoded steps, each with its reply or without."""
        self._parts += steps


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
        """Ensure a capacity in longs. If new memory is needed, the content is lost."""
        if capacity > len(self.longs):
            self._allocate(2 * capacity)

    def fill(self, cases: Iterable[bytes]) -> None:
        """Write the cases, from the beginning of the memory."""
        data = np.frombuffer(b"".join(cases), np.int64)
        self.reserve(len(data))
        self.longs[: len(data)] = data


class JvmCases:
    """Execution of cases by one release's classes.

    Args:
        member: An index, a segment or a log of :mod:`conformance.implementations.jvm`, for exclusive use.
        directory: An empty directory for the files of all cases.
    """

    def __init__(self, member: Any, directory: Path) -> None:
        self.member = member
        member.begin(directory)
        self._cases = driver_class("Cases")(member.driver, str(directory))

    def watch(self, probes: Sequence[Any]) -> None:
        """Report from now on which cases reach new code.

        Args:
            probes: The arrays of JaCoCo, one for each class.
        """
        jpype = start_jvm()
        self._cases.watch(jpype.JArray(jpype.JBoolean, 2)(probes))

    def perform(self, buffer: CaseBuffer, count: int) -> NDArray[np.int32]:
        """Execute the cases of a buffer.

        Returns:
            A row per case: the number (from 0) of the first differing step, or -1; and 1 if the case reached code that
            no earlier case reached, else 0.
        """
        return np.array(self._cases.execute(buffer.shared, count), np.int32).reshape(count, 2)

    def digest(self, buffer: CaseBuffer, count: int) -> NDArray[np.int64]:
        """Execute the cases of a buffer, whose expected replies are missing.

        Returns:
            A row per case: a digest of all replies and files; a digest of the kinds of outcomes; and 1 if it has
            reached code that no earlier case has reached, else 0.
        """
        return np.array(self._cases.digest(buffer.shared, count), np.int64).reshape(count, 3)

    def performing(self) -> int:
        """Return the number (from 0) of the case in progress; another thread may call this, such as a watchdog."""
        return int(self._cases.executing())

    def begun(self) -> int:
        """Return the number of operations that the case in progress has begun, without writes and comparisons of files.

        Another thread may call this.
        """
        return int(self._cases.begun())
