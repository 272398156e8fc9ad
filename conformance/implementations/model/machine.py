"""The model itself: one index at a time, one operation after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.implementations.model.dialect import dialect_of
from conformance.implementations.model.directory import Directory
from conformance.implementations.model.offset_index import OffsetIndex
from conformance.implementations.model.prediction import UNKNOWN, Prediction, UndefinedError
from conformance.implementations.model.slots import LARGEST, Opening, SlotIndex
from conformance.implementations.model.time_index import TimeIndex
from conformance.implementations.model.transaction_index import TransactionIndex
from conformance.operations import FILE_OPERATIONS, OK, SIGNATURES
from conformance.operations.index import INDEX_OPS

if TYPE_CHECKING:
    from conformance.operations import Operation, Outcome

SLOTS: Final[dict[str, type[SlotIndex]]] = {"offset": OffsetIndex, "time": TimeIndex}

NAMING: Final = {name: each.names_file for name, each in INDEX_OPS.items() if each.names_file >= 0}
"""Operations that name a file, and in which argument."""

FINDING: Final = frozenset({"truncate", "reset"})
"""Operations after which a lost index is known again: it is empty."""

HARMLESS: Final = frozenset({"flush", "truncate_to"} | {name for name, each in INDEX_OPS.items() if each.looks})
"""Operations that leave a lost index as lost as it was."""


class Model:
    """What has to come of each operation, in the dialect of one release.

    Call :meth:`begin` once an example, then :meth:`perform` for every operation the harness makes, the damage to closed
    files included.
    """

    def __init__(self, release: str) -> None:
        """Raises ValueError for something that is not a release from 2.4.0 on."""
        self.release = release
        self._dialect = dialect_of(release)
        self.begin()

    def begin(self) -> None:
        """An empty directory and no index."""
        self._directory = Directory()
        self._index: SlotIndex | TransactionIndex | None = None

    def perform(self, operation: Operation, *, file_bytes: bytes | None = None) -> Prediction | None:
        """What has to come of an operation.

        Args:
            operation: what every implementation performs.
            file_bytes: only for ``open``: what is on disk under its path right before; None if there is no such file.

        Returns:
            The prediction, or None where the model has none. It then keeps up with the operation as far as it can.
        """
        name, args = operation
        if name in NAMING and "/" in args[NAMING[name]]:
            self._give_up()  # the model is of one directory
            return None
        if name == "open":
            return self._open(args[0], Opening(*args[1:]), file_bytes)
        index = self._index
        predict = getattr(index, name, None) if name in SIGNATURES else None
        if index is None or predict is None:
            if name in FILE_OPERATIONS:
                self._damage()
            return None
        if index.lost and name not in FINDING:
            if name not in HARMLESS:
                self._give_up()
            return None
        try:
            outcome: Outcome | None = predict(*args)
        except UndefinedError:
            self._give_up()
            return None
        return outcome and Prediction(outcome, index.state(), self._directory.read(index.path))

    def _give_up(self) -> None:
        """Nothing is known of the index and of any file until the next ``open``."""
        self._index = None
        self._directory.doubt()

    def _damage(self) -> None:
        """The harness has changed a file. That of an open index is not supposed to be touched."""
        self._directory.doubt()
        if self._index is not None and self._index.mapped:
            self._index = None

    def _open(self, kind: str, opening: Opening, file_bytes: bytes | None) -> Prediction | None:
        """An index on a file whose bytes are known, or on a new one. After a refusal there is no index."""
        self._index = None
        slots = SLOTS.get(kind)
        directory = self._directory
        size = opening.max_index_size if slots is not None and file_bytes is None else len(file_bytes or b"")
        if size > LARGEST:
            directory.doubt()
            return None
        directory.put(opening.path, None if file_bytes is None else bytearray(file_bytes))
        if slots is None:
            self._index = TransactionIndex(self._dialect, directory, opening)
        else:
            refusal = slots.refusal(opening) if file_bytes is None else None
            if refusal is not None:
                directory.doubt()  # whatever index was there before may still be called
                return Prediction(refusal, UNKNOWN, b"")  # the empty file that was to become the index stays
            self._index = slots(self._dialect, directory, opening)
        return Prediction(OK, self._index.state(), directory.read(opening.path))
