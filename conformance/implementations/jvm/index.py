"""Kafka's own ``OffsetIndex``, ``TimeIndex`` and ``TransactionIndex`` of one release."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.implementations.jvm.driver import driver_class
from conformance.implementations.jvm.exceptions import KIND_OF, SILENT
from conformance.implementations.jvm.virtual_machine import release_loader, start_jvm
from conformance.operations import (
    ERROR_KINDS,
    FILE_OPERATIONS,
    KINDS,
    SIGNATURES,
    Observation,
    Operation,
    Outcome,
    State,
)

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.kafka.fetch import Progress

# The numbers of IndexAdapter.java. A time index's append and a transaction index's are `append` there, too.
_CODES = {
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
_BOOLEAN = frozenset({"resize", "delete"})
_PADDING = tuple((0,) * (5 - count) for count in range(6))
_HEAD = struct.Struct("=9q")
_VALUES_AT = _HEAD.size
_PAIR = struct.Struct("=2q")
_REPLY_BYTES = 1 << 20


class JvmIndex:
    """One release's classes behind the adapter interface (see :class:`conformance.implementations.protocol`).

    Args:
        release: a locked release.
        progress: told while jars are being fetched.

    Raises:
        ToolError: no Java, no jars; see :func:`~conformance.implementations.jvm.virtual_machine.release_loader`.
    """

    speaks_kafka = True

    def __init__(self, release: str, progress: Progress | None = None) -> None:
        self.name = f"jvm {release}"
        self.release = release
        jpype = start_jvm()
        from jpype import nio  # noqa: PLC0415 -- part of an extra

        kinds = jpype.JClass("java.util.HashMap")()
        for exception, kind in KIND_OF.items():
            kinds.put(exception, jpype.JInt(ERROR_KINDS.index(kind) + 1))
        self._reply = bytearray(_REPLY_BYTES)
        driver = driver_class("IndexDriver")
        self._driver = driver(release_loader(release, "index", progress), kinds, nio.convertToDirectBuffer(self._reply))
        self._perform = self._driver.perform
        self._directory = ""
        self._transactional = False

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self._driver.abandon()
        self._directory = f"{directory}/"

    def end(self) -> None:
        """See the protocol."""
        self._driver.abandon()

    def supports(self, operation: str) -> bool:
        """See the protocol."""
        return operation in SIGNATURES

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
        name, arguments = operation
        code = _CODES.get(name)
        if code is not None:
            self._perform(code, *arguments, *_PADDING[len(arguments)])
        elif name == "open":
            kind, path, base_offset, max_index_size, writable = arguments
            self._transactional = kind == "transaction"
            self._driver.open(KINDS.index(kind), self._directory + path, base_offset, max_index_size, writable)
        elif name == "rename":
            self._driver.rename(self._directory + arguments[0])
        elif name in FILE_OPERATIONS:
            raise ValueError(f"{name} is the harness's own")
        return self._observation(name)

    def _observation(self, name: str) -> Observation:
        error, count, entries, max_entries, full, length, last_count, last_0, last_1 = _HEAD.unpack_from(self._reply)
        if last_count < 0:
            state = None
        else:
            last = (last_0, last_1) if last_count == 2 else (last_0,) if last_count else ()
            if self._transactional:
                state = State(entries, None, None, None, last)
            else:
                state = State(entries, max_entries, full == 1, length, last)
        if error:
            return Observation(self._refusal(error), state)
        return Observation(Outcome(None, self._value(name, count)), state)

    def _refusal(self, error: int) -> Outcome:
        text = self._driver.text()
        if error < 0:
            raise ToolError(f"{self.name} threw what no error kind stands for: {text}")
        kind = ERROR_KINDS[error - 1]
        return Outcome(kind, None, None if kind in SILENT or text is None else str(text).replace(self._directory, ""))

    def _value(self, name: str, count: int) -> Any:
        if count < 0:
            return None
        if count == 2 and name not in ("collect_aborted", "all_aborted"):
            return _PAIR.unpack_from(self._reply, _VALUES_AT)
        values = struct.unpack_from(f"={count}q", self._reply, _VALUES_AT)
        if name in _BOOLEAN:
            return bool(values[0])
        if name == "collect_aborted":
            return _quadruples(values[1:]), bool(values[0])
        return _quadruples(values)


def _quadruples(values: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(values[i : i + 4] for i in range(0, len(values), 4))
