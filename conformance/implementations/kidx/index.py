"""Reference of the index machines: kidx in the dialect of one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.implementations.kidx.reference import Reference
from conformance.implementations.protocol import BULK, METHODS
from conformance.operations import OK, Observation, Operation, Outcome, State
from conformance.operations.index import INDEX_OPS
from kidx import AbortedTxn, OffsetIndex, OffsetPosition, TimeIndex, TransactionIndex
from kidx.errors import KidxError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Index = OffsetIndex | TimeIndex | TransactionIndex

_IO = Outcome("io")
_NOTHING_IS_OPEN = Observation(Outcome("closed"), None)


class ReferenceIndex(Reference):
    """Reference with kidx's own index classes."""

    operations = INDEX_OPS
    offset_index: type[OffsetIndex] = OffsetIndex
    time_index: type[TimeIndex] = TimeIndex
    transaction_index: type[TransactionIndex] = TransactionIndex

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self._prefix = ""
        self._index: Any = None
        self._calls: dict[str, Callable[..., Any]] = {}
        self._state: Callable[[], State]

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory)
        self._prefix = f"{directory}/"

    def end(self) -> None:
        """End the example; see the protocol."""
        if self._index is not None:
            self._release()

    def perform(self, operation: Operation) -> Observation:
        """Execute an operation; see the protocol."""
        name, arguments = operation
        call = self._calls.get(name) or self._call(name)
        if call is None:
            return _NOTHING_IS_OPEN
        try:
            value = call(*arguments)
            outcome = OK if value is None else Outcome(None, value)
        except KidxError as error:
            text = error.kafka_message
            outcome = Outcome(error.kind, None, None if text is None else text.replace(self._prefix, ""))
        except OSError:
            outcome = _IO
        return Observation(outcome, None if self._index is None else self._state())

    def ask(self, operation: Operation) -> Observation:
        """Return the outcome of an operation that changes nothing; the observation has no state."""
        return self.perform(operation)._replace(state=None)

    # -- operations --------------------------------------------------------------------------------------------

    def _open(self, kind: str, path: str, base_offset: int, max_index_size: int, writable: bool) -> None:
        self.end()
        file = self._prefix + path
        index: Index
        if kind == "offset":
            index = self.offset_index(file, base_offset, max_index_size, writable, dialect=self.dialect)
        elif kind == "time":
            index = self.time_index(file, base_offset, max_index_size, writable, dialect=self.dialect)
        else:
            index = self.transaction_index(base_offset, file, dialect=self.dialect)
        self._index = index
        self._calls = {}
        self._state = _STATES[kind](index)

    def _call(self, name: str) -> Callable[..., Any] | None:
        """Return the function that executes an operation on the open index, or None; cached until the next ``open``."""
        index = self._index
        if name == "open":
            return self._open
        if index is None:
            return None
        if name == "crash":
            call: Callable[..., Any] = self._release
        elif name == "rename":
            call = self._rename
        else:
            call = getattr(index, METHODS[BULK.get(name, name)])
            adapt = _ADAPTED.get(name)
            if adapt is not None:
                call = adapt(call)
        self._calls[name] = call
        return call

    def _rename(self, path: str) -> None:
        self._index.rename_to(self._prefix + path)

    def _release(self) -> None:
        """Release the index as a killed process does, without trimming or flushing it."""
        index, self._index, self._calls = self._index, None, {}
        if isinstance(index, TransactionIndex):
            index.close()
        else:
            index.close_handler()


def _repeated(append: Callable[[int, int], None]) -> Callable[[int, int, int, int, int], None]:
    def bulk(first: int, second: int, first_step: int, second_step: int, count: int) -> None:
        for _ in range(count):
            append(first, second)
            first += first_step
            second += second_step

    return bulk


_ADAPTED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "bulk_append": _repeated,
    "bulk_maybe_append": _repeated,
    "fetch_upper_bound": lambda method: lambda offset, position, size: method(OffsetPosition(offset, position), size),
    "append_aborted": lambda method: lambda *fields: method(AbortedTxn(*fields)),
    "all_aborted": lambda method: lambda: tuple(method()),
    "collect_aborted": lambda method: lambda start, end: tuple(method(start, end)),
}
"""Adapters for methods that have other arguments or results than the operation."""


def _state_of_offsets(index: OffsetIndex) -> Callable[[], State]:
    return lambda: State(index.entries, index.max_entries, index.is_full, index.length, (index.last_offset,))


def _state_of_times(index: TimeIndex) -> Callable[[], State]:
    return lambda: State(index.entries, index.max_entries, index.is_full, index.length, index.last_entry)


def _state_of_transactions(index: TransactionIndex) -> Callable[[], State]:
    def state() -> State:
        last = index.last_offset
        return State(len(index), None, None, None, () if last is None else (last,))

    return state


_STATES: dict[str, Callable[[Any], Callable[[], State]]] = {
    "offset": _state_of_offsets,
    "time": _state_of_times,
    "transaction": _state_of_transactions,
}
