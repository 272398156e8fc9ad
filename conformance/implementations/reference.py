"""The reference: kidx in the dialect of one release, behind the adapter interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.operations import OK, SIGNATURES, Observation, Operation, Outcome, State
from kidx import AbortedTxn, OffsetIndex, OffsetPosition, TimeIndex, TransactionIndex, dialect_of
from kidx.errors import KidxError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Index = OffsetIndex | TimeIndex | TransactionIndex

_NOTHING_OPEN = Outcome("closed")


class ReferenceIndex:
    """kidx's own index classes (see :class:`conformance.implementations.protocol`).

    The classes are class attributes, so that a mutant is a subclass that puts a defective one in their place.
    """

    speaks_kafka = True
    offset_index: type[OffsetIndex] = OffsetIndex
    time_index: type[TimeIndex] = TimeIndex
    transaction_index: type[TransactionIndex] = TransactionIndex

    def __init__(self, release: str) -> None:
        self.name = f"kidx {release}"
        self.release = release
        self.dialect = dialect_of(release)
        self._prefix = ""
        self._index: Any = None
        self._calls: dict[str, Callable[..., Any]] = {}

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.end()
        self._prefix = f"{directory}/"

    def end(self) -> None:
        """See the protocol."""
        if self._index is not None:
            self._let_go()

    def supports(self, operation: str) -> bool:
        """See the protocol."""
        return operation in SIGNATURES

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
        name, arguments = operation
        call = self._open if name == "open" else self._calls.get(name)
        if call is None:
            return Observation(_NOTHING_OPEN, None)
        try:
            value = call(*arguments)
            outcome = OK if value is None else Outcome(None, value)
        except KidxError as error:
            text = error.kafka_message
            outcome = Outcome(error.kind, None, None if text is None else text.replace(self._prefix, ""))
        except OSError:
            outcome = Outcome("io")
        return Observation(outcome, None if self._index is None else self._state())

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
        self._calls = self._transactional_calls(index) if isinstance(index, TransactionIndex) else self._calls_of(index)

    def _common_calls(self, index: Index) -> dict[str, Callable[..., Any]]:
        return {
            "truncate_to": index.truncate_to,
            "reset": index.reset,
            "flush": index.flush,
            "sanity_check": index.sanity_check,
            "close": index.close,
            "crash": self._let_go,
            "delete": index.delete_if_exists,
            "rename": lambda path: index.rename_to(self._prefix + path),
        }

    def _calls_of(self, index: OffsetIndex | TimeIndex) -> dict[str, Callable[..., Any]]:
        calls = self._common_calls(index) | {
            "lookup": index.lookup,
            "entry": index.entry,
            "truncate": index.truncate,
            "resize": index.resize,
            "trim": index.trim_to_valid_size,
        }
        if isinstance(index, OffsetIndex):
            return calls | {
                "append": index.append,
                "bulk_append": _repeated(index.append),
                "fetch_upper_bound": lambda offset, position, size: index.fetch_upper_bound_offset(
                    OffsetPosition(offset, position), size
                ),
            }
        return calls | {"maybe_append": index.maybe_append, "bulk_maybe_append": _repeated(index.maybe_append)}

    def _transactional_calls(self, index: TransactionIndex) -> dict[str, Callable[..., Any]]:
        return self._common_calls(index) | {
            "append_aborted": lambda *fields: index.append(AbortedTxn(*fields)),
            "all_aborted": lambda: tuple(index.all_aborted_txns()),
            "collect_aborted": lambda start, end: tuple(index.collect_aborted_txns(start, end)),
        }

    def _let_go(self) -> None:
        """What a killed process does: nothing is trimmed, nothing is flushed."""
        index, self._index, self._calls = self._index, None, {}
        if isinstance(index, TransactionIndex):
            index.close()
        else:
            index.close_handler()

    # -- state -------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        index = self._index
        if isinstance(index, OffsetIndex):
            return State(index.entries, index.max_entries, index.is_full, index.length, (index.last_offset,))
        if isinstance(index, TimeIndex):
            return State(index.entries, index.max_entries, index.is_full, index.length, index.last_entry)
        last = index.last_offset
        return State(len(index), None, None, None, () if last is None else (last,))


def _repeated(append: Callable[[int, int], None]) -> Callable[[int, int, int, int, int], None]:
    def bulk(first: int, second: int, first_step: int, second_step: int, count: int) -> None:
        for i in range(count):
            append(first + i * first_step, second + i * second_step)

    return bulk
