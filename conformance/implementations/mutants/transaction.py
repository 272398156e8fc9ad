"""Defects of a transaction index: writing, the last offset, collections, truncations and checks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from conformance.implementations.mutants.patching import spoil
from conformance.implementations.mutants.registry import TRIMMING, defect
from kidx import AbortedTxn, TransactionIndex
from kidx.errors import CorruptIndexError, InvalidArgumentError, UnsupportedVersionError
from kidx.index.entries import TxnIndexSearchResult

# -- appending and remembering -----------------------------------------------------------------------------------------


@defect("TX-1")
class SwapsTheOffsets(TransactionIndex):
    """First offset and last stable offset change places in the record."""

    def append(self, txn: AbortedTxn) -> None:
        super().append(AbortedTxn(txn.producer_id, txn.last_stable_offset, txn.last_offset, txn.first_offset))


@defect("TX-1")
class WritesTheNextVersion(TransactionIndex):
    """Records are written with version 1."""

    def append(self, txn: AbortedTxn) -> None:
        super().append(txn)
        spoil(self, self._position - 34, lambda data: b"\x00\x01" + data[2:])


@defect("TX-1")
class LosesTheProducer(TransactionIndex):
    """Only 32 bits of the producer id are written."""

    def append(self, txn: AbortedTxn) -> None:
        super().append(txn._replace(producer_id=txn.producer_id & 0x7FFFFFFF))


@defect("TX-3")
class TakesEqualLastOffsets(TransactionIndex):
    """A last offset equal to the previous one is accepted (``>`` for ``>=``)."""

    def append(self, txn: AbortedTxn) -> None:
        remembered = self._last_offset
        if remembered == txn.last_offset:
            self._last_offset = None
        super().append(txn)


@defect("TX-3")
class ChecksFirstOffsets(TransactionIndex):
    """First offsets have to increase instead of last offsets."""

    def append(self, txn: AbortedTxn) -> None:
        written = list(self) if self._last_offset is not None else []
        if written and written[-1].first_offset >= txn.first_offset:
            raise InvalidArgumentError("first offsets must increase", None)
        super().append(txn)


@defect("TX-4a")
class RemembersTooMuch(TransactionIndex):
    """The last offset is read from the file when an index is opened again."""

    @property
    def last_offset(self) -> int | None:
        last = super().last_offset
        return list(self)[-1].last_offset if last is None and len(self) else last


@defect("TX-4a")
class ChecksOldRecords(TransactionIndex):
    """After opening a file again, an append is checked against its last record."""

    def append(self, txn: AbortedTxn) -> None:
        if self._last_offset is None and len(self) and list(self)[-1].last_offset >= txn.last_offset:
            raise InvalidArgumentError("must be larger", None)
        super().append(txn)


@defect("TX-4b")
class ForgetsWhenClosed(TransactionIndex):
    """Closing forgets the last offset."""

    def close(self) -> None:
        super().close()
        self._last_offset = None


@defect("TX-21")
class StartsOverWhenReopened(TransactionIndex):
    """The append after a close overwrites the file from its start."""

    def _open(self) -> int:
        again = self._descriptor is None and self._last_offset is not None
        descriptor = super()._open()
        if again:
            self._position = 0
        return descriptor


@defect("TX-2")
class CreatesTheFileAtOnce(TransactionIndex):
    """Opening creates the file."""

    def __init__(self, start_offset: int, path: str | Path, **options: str) -> None:
        super().__init__(start_offset, path, **options)  # type: ignore[arg-type]
        if self._descriptor is None and self.path.parent.exists():
            self._open()


@defect("TX-23")
class CutsATornRecord(TransactionIndex):
    """A partial record at the end is cut off when the file is opened."""

    def _open(self) -> int:
        descriptor = super()._open()
        if self._position % 34:
            self._position -= self._position % 34
            os.ftruncate(descriptor, self._position)
        return descriptor


# -- collecting --------------------------------------------------------------------------------------------------------


@defect("TX-9")
class IsAlwaysComplete(TransactionIndex):
    """Every collection claims that no later segment has to be read."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        return super().collect_aborted_txns(fetch_offset, upper_bound_offset)._replace(is_complete=True)


@defect("TX-9")
class LeavesOutTheFirstOffset(TransactionIndex):
    """A transaction that ends at exactly the fetch offset is skipped."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        return super().collect_aborted_txns(fetch_offset + 1, upper_bound_offset)


@defect("TX-9")
class CountsTheUpperBoundIn(TransactionIndex):
    """A transaction that begins at the upper bound is collected."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.last_offset >= fetch_offset and txn.first_offset <= upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


@defect("TX-9")
class GoesOnAtTheStableOffset(TransactionIndex):
    """A last stable offset equal to the upper bound does not end the search (``>`` for ``>=``)."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
            if txn.last_stable_offset > upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


@defect("TX-9")
class StopsBeforeItCollects(TransactionIndex):
    """The transaction that ends the search is not collected itself."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound_offset:
                found.append(txn)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


@defect("TX-9")
class StopsAtTheFirstMiss(TransactionIndex):
    """A transaction that begins after the upper bound ends the search, as if first offsets were sorted."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.first_offset >= upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
            if txn.last_offset >= fetch_offset:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


@defect("TX-9")
class CollectsByFirstOffset(TransactionIndex):
    """Only transactions that begin at or after the fetch offset are collected."""

    def collect_aborted_txns(self, fetch_offset: int, upper_bound_offset: int) -> TxnIndexSearchResult:
        found = super().collect_aborted_txns(fetch_offset, upper_bound_offset)
        kept = tuple(txn for txn in found.aborted_transactions if txn.first_offset >= fetch_offset)
        return TxnIndexSearchResult(kept, found.is_complete)


# -- cutting -----------------------------------------------------------------------------------------------------------


@defect("TX-10")
class KeepsTheEqualRecord(TransactionIndex):
    """Truncation keeps the record whose last offset is exactly the offset."""

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset + 1)


@defect("TX-10")
class TruncatesByFirstOffset(TransactionIndex):
    """Truncation compares first offsets."""

    def truncate_to(self, offset: int) -> None:
        last = None
        for position, _, txn in self.stored_records():
            if txn.first_offset >= offset:
                self._cut(position)
                self._last_offset = last
                return
            last = txn.last_offset


@defect("TX-4b")
class RemembersCutRecords(TransactionIndex):
    """A truncation does not change the remembered last offset."""

    def truncate_to(self, offset: int) -> None:
        remembered = self._last_offset
        super().truncate_to(offset)
        self._last_offset = remembered


@defect("TX-11")
class ResetRemembers(TransactionIndex):
    """A reset does not forget the last offset."""

    def reset(self) -> None:
        self._cut(0)


@defect("TX-11")
class ResetDeletes(TransactionIndex):
    """A reset deletes the file."""

    def reset(self) -> None:
        super().reset()
        if self._descriptor is not None:
            self.delete_if_exists()


# -- checking ----------------------------------------------------------------------------------------------------------


@defect("TX-12a")
class ForgetsToSanityCheck(TransactionIndex):
    """The sanity check accepts everything."""

    def sanity_check(self) -> None:
        pass


@defect("TX-12a")
class ChecksTheFirstRecordOnly(TransactionIndex):
    """The sanity check reads the first record only."""

    def sanity_check(self) -> None:
        try:
            super().sanity_check()
        except CorruptIndexError:
            if next(iter(self)).last_offset < self.start_offset:
                raise


@defect("TX-12a")
class DoubtsTheStartOffset(TransactionIndex):
    """The sanity check rejects a last offset equal to the start offset (``<=`` for ``<``)."""

    def sanity_check(self) -> None:
        super().sanity_check()
        if any(txn.last_offset == self.start_offset for txn in self):
            raise CorruptIndexError("equal", "is less than start offset")


@defect("TX-12a")
class ChecksFirstOffsetsToo(TransactionIndex):
    """The sanity check rejects a transaction that began in an earlier segment."""

    def sanity_check(self) -> None:
        super().sanity_check()
        if any(txn.first_offset < self.start_offset for txn in self):
            raise CorruptIndexError("began earlier", "is less than start offset")


@defect("TX-7b")
class ReadsEveryVersion(TransactionIndex):
    """Records of any version are read."""

    def _unsupported(self, version: int) -> UnsupportedVersionError:
        raise _AcceptedError(str(version))

    def all_aborted_txns(self) -> list[AbortedTxn]:
        try:
            return super().all_aborted_txns()
        except _AcceptedError:
            return []


class _AcceptedError(UnsupportedVersionError):
    """Version that should have been rejected."""


@defect("TX-7a", release=TRIMMING)
class LooksAtTheLowByte(TransactionIndex):
    """Up to 4.3 the version is the high byte; this one reads the low one."""

    def stored_records(self) -> Iterator[tuple[int, int, AbortedTxn]]:
        if self._descriptor is not None:
            data = os.pread(self._descriptor, self._position, 0)
            for position in range(0, len(data) - 33, 34):
                if 0 < data[position + 1] < 128:
                    raise self._unsupported(data[position + 1])
        yield from super().stored_records()


@defect("TX-13b")
class NeverSaysItDeleted(TransactionIndex):
    """Deleting says that there was no file."""

    def delete_if_exists(self) -> bool:
        super().delete_if_exists()
        return False


@defect("TX-13a")
class MovesOnlyItsName(TransactionIndex):
    """A rename does not move the file."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        self._file = os.fspath(path)
