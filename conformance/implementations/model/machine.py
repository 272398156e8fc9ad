"""Model of one index at a time, one operation after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.implementations.model.dialect import dialect_of
from conformance.implementations.model.offset_index import OffsetIndex
from conformance.implementations.model.prediction import UNKNOWN, Directory, Prediction, UndefinedError
from conformance.implementations.model.slots import LARGEST, Opening, SlotIndex
from conformance.implementations.model.time_index import TimeIndex
from conformance.implementations.model.transaction_index import TransactionIndex
from conformance.operations import FILE_OPERATIONS, OK, SIGNATURES
from conformance.operations.index import INDEX_OPS

if TYPE_CHECKING:
    from conformance.operations import Operation, Outcome

SLOTS: Final[dict[str, type[SlotIndex]]] = {"offset": OffsetIndex, "time": TimeIndex}
"""The kinds of index whose files have slots of one size."""

NAMING: Final = {name: each.names_file for name, each in INDEX_OPS.items() if each.names_file >= 0}
"""Position of the argument that names a file, for each operation that has one."""

EMPTYING: Final = frozenset({"truncate", "reset"})
"""Operations that make an index empty, so that the number of its entries is known again.

An index is lost (``lost``) while the model does not know that number.
"""

HARMLESS: Final = frozenset({"flush", "truncate_to"} | {name for name, each in INDEX_OPS.items() if each.looks})
"""Operations on a lost index after which the model knows as much as before."""


class Model:
    """Expected result of each operation, in the dialect of one release.

    Call :meth:`begin` at the start of an example, then :meth:`perform` for every operation of the harness, including
    corruptions of closed files.
    """

    def __init__(self, release: str) -> None:
        """Raise ValueError if ``release`` is not a release from 2.4.0 on."""
        self.release = release
        self._dialect = dialect_of(release)
        self.begin()

    def begin(self) -> None:
        """Begin with an empty directory and no index."""
        self._directory = Directory()
        self._index: SlotIndex | TransactionIndex | None = None

    def perform(self, operation: Operation, *, file_bytes: bytes | None = None) -> Prediction | None:
        """Return the expected result of an operation.

        Args:
            operation: The operation that every implementation executes.
            file_bytes: Only for ``open``: the content of the file just before, or None if it does not exist.

        Returns:
            The prediction; None if the model abstains. It then follows the operation as far as possible.
        """
        name, args = operation
        if name in NAMING and "/" in args[NAMING[name]]:
            self._give_up()  # the model has no subdirectories
            return None
        if name == "open":
            return self._open(args[0], Opening(*args[1:]), file_bytes)
        index = self._index
        predict = getattr(index, name, None) if name in SIGNATURES else None
        if index is None or predict is None:
            if name in FILE_OPERATIONS:
                self._damage()
            return None
        if index.lost and name not in EMPTYING:
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
        """Forget the index and all files; the next ``open`` makes the model certain again."""
        self._index = None
        self._directory.invalidate()

    def _damage(self) -> None:
        """Record a change of a file by the harness. The file must not be the file of an open index."""
        self._directory.invalidate()
        if self._index is not None and self._index.mapped:
            self._index = None

    def _open(self, kind: str, opening: Opening, file_bytes: bytes | None) -> Prediction | None:
        """Open a file whose bytes are known, or a new file. After an error, no index is open."""
        self._index = None
        slots = SLOTS.get(kind)
        directory = self._directory
        size = opening.max_index_size if slots is not None and file_bytes is None else len(file_bytes or b"")
        if size > LARGEST:
            directory.invalidate()
            return None
        directory.put(opening.path, None if file_bytes is None else bytearray(file_bytes))
        if slots is None:
            self._index = TransactionIndex(self._dialect, directory, opening)
        else:
            error = slots.opening_error(opening) if file_bytes is None else None
            if error is not None:
                directory.invalidate()  # operations on a previous index may still follow
                return Prediction(error, UNKNOWN, b"")  # the new, empty file remains after the error
            self._index = slots(self._dialect, directory, opening)
        return Prediction(OK, self._index.state(), directory.read(opening.path))
