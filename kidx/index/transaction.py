"""The ``.txnindex`` file: aborted transactions (clauses TX, ``TransactionIndex.java``).

Unlike the other two index files, this file is neither mapped nor preallocated. The first append creates it; most
segments have no such file.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from kidx.dialect import Dialect, dialect_of
from kidx.errors import CorruptIndexError, InvalidArgumentError, ReadOnlyError, UnsupportedVersionError
from kidx.files import open_regular, unlink
from kidx.layout import ABORTED_TXN

_CURRENT_VERSION = 0
_RECORD = ABORTED_TXN.struct
_SIZE = ABORTED_TXN.size
_READ_BYTES = 1024 * _SIZE
"""Number of bytes per read."""


class AbortedTxn(NamedTuple):
    """Entry of a transaction index: an aborted transaction (TX-1)."""

    producer_id: int
    first_offset: int  # of the transaction's first batch
    last_offset: int  # of its abort marker
    last_stable_offset: int  # of the log immediately after the abort


class TxnIndexSearchResult(NamedTuple):
    """Result of :meth:`kidx.TransactionIndex.collect_aborted_txns`.

    ``aborted_transactions`` are the entries that the fetch needs, in file order. ``is_complete`` is True if no later
    segment can hold a transaction for the same fetch (TX-9).
    """

    aborted_transactions: tuple[AbortedTxn, ...]
    is_complete: bool


class TransactionIndex:
    """Aborted transactions of one segment, in the order of their abort markers.

    Args:
        start_offset: base offset of the segment.
        path: the index file; opened if it exists, otherwise created by the first append (TX-2).
        writable: False to open an existing file without write permission (not in Kafka, which always writes).
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Raises:
        OSError: the file exists and cannot be opened.
    """

    def __init__(
        self,
        start_offset: int,
        path: str | os.PathLike[str],
        *,
        writable: bool = True,
        dialect: str | Dialect | None = None,
    ) -> None:
        self.start_offset = start_offset
        self._file = os.fspath(path)
        self.writable = writable
        self.dialect = dialect_of(dialect)
        self._last_offset: int | None = None
        self._descriptor: int | None = None
        self._position = 0
        if os.path.exists(self._file):  # noqa: PTH110 -- a Path per open is measurable in a million steps
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[AbortedTxn]:
        for _, _, txn in self.stored_records():
            yield txn

    def __len__(self) -> int:
        """Return the number of whole records in the file, whatever their version; 0 when closed."""
        return 0 if self._descriptor is None else self._position // _SIZE

    @property
    def path(self) -> Path:
        """Path of the file as the index tracks it; a move by another process is not noticed (TX-13)."""
        return Path(self._file)

    @property
    def last_offset(self) -> int | None:
        """Last offset that this object has appended, or None; it is not read from the file (TX-4)."""
        return self._last_offset

    @property
    def is_empty(self) -> bool:
        """True if the file holds no record (TX-14)."""
        return len(self) == 0

    def _open(self) -> int:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666) if self.writable else open_regular(self._file)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self._file)
        self._descriptor, self._position = descriptor, status.st_size
        return descriptor

    def append(self, txn: AbortedTxn) -> None:
        """Append a record; open or create the file if necessary, also after ``close``.

        Raises:
            InvalidArgumentError: ``txn.last_offset`` does not exceed the last offset appended before (TX-3), or a field
                is not a Java ``long``.
            ReadOnlyError: the file was opened with ``writable=False``.
            OSError: the file cannot be created or written.
        """
        if self._last_offset is not None and self._last_offset >= txn.last_offset:
            raise InvalidArgumentError(
                f"{self._file}: last offset {txn.last_offset} must be larger than {self._last_offset}",
                "The last offset of appended transactions must increase sequentially, but"
                f" {txn.last_offset} is not greater than current last offset {self._last_offset} of index"
                f" {self.path.absolute()}",
            )
        if not self.writable:
            raise ReadOnlyError(f"{self._file} is open read-only; {txn} cannot be appended")
        try:
            record = _RECORD.pack(_CURRENT_VERSION, *txn)
        except struct.error:
            raise InvalidArgumentError(f"{self._file}: {txn} does not fit in numbers of 64 bits") from None
        self._last_offset = txn.last_offset
        descriptor = self._open() if self._descriptor is None else self._descriptor
        while record:
            written = os.pwrite(descriptor, record, self._position)
            self._position += written
            record = record[written:]

    def stored_records(self) -> Iterator[tuple[int, int, AbortedTxn]]:
        """Yield byte position, version and content of every whole record, in file order."""
        if self._descriptor is None:
            return
        for position, (version, *fields) in self._raw_records(self._descriptor):
            if version and not self.dialect.strict_txn_version:
                # Up to 4.3.1 Kafka reads only the high byte of the 16-bit version: 0x0001 passes, 0x0100 is "1".
                version >>= 8  # noqa: PLW2901
            if version > _CURRENT_VERSION or (version < 0 and self.dialect.strict_txn_version):
                raise self._unsupported(version)
            yield position, version, AbortedTxn(*fields)

    def _raw_records(self, descriptor: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield byte position and fields of every whole record."""
        position, end = 0, self._position
        while data := os.pread(descriptor, min(_READ_BYTES, end - position), position):
            whole = len(data) - len(data) % _SIZE
            yield from zip(range(position, position + whole, _SIZE), _RECORD.iter_unpack(data[:whole]), strict=True)
            position += whole
            if not whole:
                return

    def _unsupported(self, version: int) -> UnsupportedVersionError:
        supported = (
            f"supported version range is {_CURRENT_VERSION} to {_CURRENT_VERSION}"
            if self.dialect.strict_txn_version
            else f"current version is {_CURRENT_VERSION}"
        )
        return UnsupportedVersionError(
            f"{self._file} holds a transaction of version {version}; Kafka {self.dialect.release} reads only version"
            f" {_CURRENT_VERSION}",
            f"Unexpected aborted transaction version {version} in transaction index {self.path.absolute()},"
            f" {supported}",
        )

    def all_aborted_txns(self) -> list[AbortedTxn]:
        """Return every record.

        Raises:
            UnsupportedVersionError: a record has a version that the dialect does not read (TX-7, TX-8).
        """
        return list(self)

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        """Return the transactions that a fetch of ``fetch_offset .. upper_bound_offset`` (exclusive) must hide (TX-9).

        Raises:
            UnsupportedVersionError: See ``all_aborted_txns``.
        """
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Truncate the file at the first record, in file order, whose last offset is ≥ ``offset`` (TX-10).

        Raises:
            UnsupportedVersionError: a record before that one has an unsupported version; nothing is truncated.
        """
        last = None
        for position, _, txn in self.stored_records():
            if txn.last_offset >= offset:
                self._cut(position)
                self._last_offset = last
                return
            last = txn.last_offset

    def _cut(self, size: int) -> None:
        if self._descriptor is not None:
            if not self.writable:
                raise ReadOnlyError(f"{self._file} is open read-only and cannot be truncated")
            os.ftruncate(self._descriptor, size)
            self._position = min(self._position, size)

    def reset(self) -> None:
        """Truncate an open file to 0 bytes and forget the last offset (TX-11)."""
        self._cut(0)
        self._last_offset = None

    def flush(self) -> None:
        """Sync an open file to disk (TX-11)."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def sanity_check(self) -> None:
        """Reject a record whose last offset is below the start offset (TX-12); nothing else is checked.

        Raises:
            CorruptIndexError: such a record exists.
            UnsupportedVersionError: See ``all_aborted_txns``.
        """
        for _, version, txn in self.stored_records():
            if txn.last_offset < self.start_offset:
                prefix = f"version={version}, " if self.dialect.txn_text_has_version else ""
                raise CorruptIndexError(
                    f"{self._file} is corrupt: {txn} ends below the start offset {self.start_offset}",
                    f"Last offset of aborted transaction AbortedTxn({prefix}producerId={txn.producer_id},"
                    f" firstOffset={txn.first_offset}, lastOffset={txn.last_offset},"
                    f" lastStableOffset={txn.last_stable_offset}) in index {self.path.absolute()}"
                    f" is less than start offset {self.start_offset}",
                )

    def close(self) -> None:
        """Close the file; the next append opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def delete_if_exists(self) -> bool:
        """Close and delete the file.

        Returns:
            True if the file existed.
        """
        self.close()
        return unlink(self._file)

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        """Move the file if it exists; the index uses ``path`` from then on in any case (TX-13).

        Raises:
            OSError: the move failed.
        """
        target = os.fspath(path)
        try:
            if os.path.exists(self._file):  # noqa: PTH110 -- as above
                os.replace(self._file, target)  # noqa: PTH105 -- as above
        finally:
            self._file = target

    def update_parent_dir(self, directory: str | os.PathLike[str]) -> None:
        """Record that the file's directory has moved, without touching any file."""
        self._file = os.fspath(Path(directory) / self.path.name)
