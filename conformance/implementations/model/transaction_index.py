"""Model of a transaction index: the aborted transactions in the order of their appends."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, ClassVar, Final

from conformance.implementations.model.prediction import UNKNOWN, UndefinedError, Unknown, need_longs
from conformance.operations import OK, Outcome, State

if TYPE_CHECKING:
    from conformance.implementations.model.dialect import Dialect
    from conformance.implementations.model.prediction import Directory
    from conformance.implementations.model.slots import Opening

RECORD: Final = struct.Struct(">hqqqq")

INVALID_ARGUMENT: Final = Outcome("invalid_argument")
CORRUPT: Final = Outcome("corrupt")
UNSUPPORTED_VERSION: Final = Outcome("unsupported_version")

Transaction = tuple[int, int, int, int]
"""Producer id, first offset, last offset, last stable offset."""


class TransactionIndex:
    """List of transactions in a file that the first append creates (TX-2).

    The methods with the names of operations return the expected outcome, or None if the model cannot predict it. They
    raise UndefinedError if the model cannot predict anything until the next ``open``.

    Attributes:
        lost: Always False; only the other kinds of index can be lost.
        data: The bytes of the file while its channel is open, else None.
        records: The transactions before the first record of a version that the release does not support.
        has_unsupported_version: True if there is such a record after them.
        last_appended: The last offset that was appended through this object, or None.
    """

    lost: ClassVar[bool] = False

    def __init__(self, dialect: Dialect, directory: Directory, opening: Opening) -> None:
        self.dialect = dialect
        self.directory = directory
        self.path, self.start_offset, *_ = opening
        self.last_appended: int | None = None
        self.records: list[Transaction] = []
        self.has_unsupported_version = False
        self.data: bytearray | None = None
        content = directory.read(self.path)
        if isinstance(content, bytearray):
            self.data = content
            self.reread()

    @property
    def mapped(self) -> bool:
        """True if the channel is open."""
        return self.data is not None

    def state(self) -> State | Unknown:
        """Return the state; without a prediction if unreadable records exist, which may count or not."""
        if self.has_unsupported_version:
            return UNKNOWN
        count = len(self.data) // RECORD.size if self.data is not None else 0
        return State(count, None, None, None, () if self.last_appended is None else (self.last_appended,))

    def known_version(self, data: bytearray, at: int) -> bool:
        """Return True if a release accepts a record's version; before 4.4 it is one byte, and may be negative."""
        if self.dialect.strict_versions:
            return data[at] == 0 == data[at + 1]
        return data[at] == 0 or data[at] > 127

    def reread(self) -> None:
        """Read the transactions from the file, 34 bytes each; a shorter rest is ignored."""
        self.records, self.has_unsupported_version = [], False
        data = self.data
        if data is None:
            return
        for at in range(0, len(data) - RECORD.size + 1, RECORD.size):
            if not self.known_version(data, at):
                self.has_unsupported_version = True
                return
            self.records.append(RECORD.unpack_from(data, at)[1:])

    def append_aborted(
        self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int
    ) -> Outcome | None:
        """Append a transaction at the end of the file, if its last offset is above the remembered one (TX-3)."""
        need_longs(producer_id, first_offset, last_offset, last_stable_offset)
        if self.last_appended is not None and self.last_appended >= last_offset:
            return INVALID_ARGUMENT
        if self.data is None:
            self._open_channel()
        assert self.data is not None
        self.last_appended = last_offset
        aligned = len(self.data) % RECORD.size == 0
        self.data += RECORD.pack(0, producer_id, first_offset, last_offset, last_stable_offset)
        if not aligned:
            self.reread()
        elif not self.has_unsupported_version:
            self.records.append((producer_id, first_offset, last_offset, last_stable_offset))
        return OK

    def _open_channel(self) -> None:
        """Open the existing file, or create one."""
        content = self.directory.read(self.path)
        if isinstance(content, Unknown):
            raise UndefinedError
        if content is None:
            content = bytearray()
            self.directory.put(self.path, content)
        self.data = content
        self.reread()

    def collect_aborted(self, fetch_offset: int, upper_bound: int) -> Outcome:
        """Return the transactions that end at or after one offset and begin before another (TX-9).

        The result is complete with the first transaction that was stable at or after the upper bound; later ones are
        not read.
        """
        need_longs(fetch_offset, upper_bound)
        found: list[Transaction] = []
        for record in self.records:
            _, first_offset, last_offset, last_stable_offset = record
            if last_offset >= fetch_offset and first_offset < upper_bound:
                found.append(record)
            if last_stable_offset >= upper_bound:
                return Outcome(None, (tuple(found), True))
        return UNSUPPORTED_VERSION if self.has_unsupported_version else Outcome(None, (tuple(found), False))

    def all_aborted(self) -> Outcome:
        """Return all transactions."""
        return UNSUPPORTED_VERSION if self.has_unsupported_version else Outcome(None, tuple(self.records))

    def truncate_to(self, offset: int) -> Outcome:
        """Truncate the file at the first transaction that ends at or after an offset, whatever follows it (TX-10)."""
        need_longs(offset)
        for n, record in enumerate(self.records):
            if record[2] >= offset:
                assert self.data is not None
                del self.data[n * RECORD.size :], self.records[n:]
                self.has_unsupported_version = False
                self.last_appended = self.records[-1][2] if n else None
                return OK
        return UNSUPPORTED_VERSION if self.has_unsupported_version else OK

    def reset(self) -> Outcome:
        """Empty the file of an open channel, and forget the last offset (TX-11)."""
        if self.data is not None:
            del self.data[:], self.records[:]
            self.has_unsupported_version = False
        self.last_appended = None
        return OK

    def sanity_check(self) -> Outcome:
        """Check that no transaction ends before the start of the segment (TX-12)."""
        if any(record[2] < self.start_offset for record in self.records):
            return CORRUPT
        return UNSUPPORTED_VERSION if self.has_unsupported_version else OK

    def flush(self) -> Outcome:
        """Do nothing observable."""
        return OK

    def close(self) -> Outcome:
        """Close the channel; the next append opens it again, and still knows the last offset (TX-4)."""
        self.data = None
        self.reread()
        return OK

    def delete(self) -> Outcome | None:
        """Close, and return whether there was a file."""
        self.close()
        content = self.directory.read(self.path)
        self.directory.put(self.path, None)
        return None if content is UNKNOWN else Outcome(value=content is not None)

    def rename(self, path: str) -> Outcome | None:
        """Rename the file if it exists; an open channel follows it (TX-13)."""
        content = self.directory.read(self.path)
        if content is UNKNOWN:
            self.directory.put(path, UNKNOWN)
        elif content is not None:
            self.directory.move(self.path, path)
        self.path = path
        return None if content is UNKNOWN else OK
