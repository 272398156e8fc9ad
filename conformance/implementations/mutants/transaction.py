"""Defects of a transaction index: writing, the last offset, collections, truncations and checks.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import START, TRIMMING, Row, plant
from kidx import TransactionIndex

# fmt: off
plant(
    TransactionIndex,
    # -- appending and remembering --
    Row("TX-1", "swaps-the-offsets",
        "A record has its last stable offset where its first offset belongs, and vice versa.",
        "append", "_RECORD.pack(_CURRENT_VERSION, *txn)",
        "_RECORD.pack(_CURRENT_VERSION, txn.producer_id, txn.last_stable_offset, txn.last_offset, txn.first_offset)"),
    Row("TX-1", "loses-the-producer", "Only 32 bits of the producer id are written.",
        "append", START, "txn = txn._replace(producer_id=txn.producer_id & 0x7FFFFFFF)"),
    Row("TX-3", "takes-equal-last-offsets", "A last offset equal to the previous one is accepted (``>`` for ``>=``).",
        "append", "self._last_offset >= txn.last_offset", "self._last_offset > txn.last_offset"),
    Row("TX-3", "checks-first-offsets", "The first offsets must increase, not the last offsets.",
        "append", START, "if self._last_offset is not None and (written := list(self)) and written[-1].first_offset >= "
        "txn.first_offset: raise InvalidArgumentError('first offsets must increase', None)"),
    Row("TX-4a", "remembers-too-much", "Reopening an index reads its last offset from the file.",
        "last_offset", "self._last_offset",
        "list(self)[-1].last_offset if self._last_offset is None and len(self) else self._last_offset"),
    Row("TX-4a", "checks-old-records", "After reopening, an append is checked against the last record of the file.",
        "append", START,
        "if self._last_offset is None and len(self) and list(self)[-1].last_offset >= txn.last_offset: raise "
        "InvalidArgumentError('must be larger', None)"),
    Row("TX-4b", "forgets-when-closed", "Closing forgets the last offset.",
        "close", START, "self._last_offset = None"),
    Row("TX-21", "starts-over-when-reopened", "The append after a close overwrites the file from its start.",
        "_open", "status.st_size",
        "0 if self._descriptor is None and self._last_offset is not None else status.st_size"),
    Row("TX-2", "creates-the-file-at-once", "Opening creates the file.",
        "__init__", "os.path.exists(self._file)", "os.path.exists(os.path.dirname(self._file))"),
    Row("TX-23", "cuts-a-torn-record", "A partial record at the end is cut off when the file is opened.",
        "_open", "self._descriptor, self._position = descriptor, status.st_size",
        "self._descriptor, self._position = descriptor, status.st_size // _SIZE * _SIZE; "
        "os.ftruncate(descriptor, self._position)"),
    # -- collecting --
    Row("TX-9", "is-always-complete", "Every collection claims that no later segment has to be read.",
        "collect_aborted_txns", "TxnIndexSearchResult(tuple(found), is_complete=False)",
        "TxnIndexSearchResult(tuple(found), is_complete=True)"),
    Row("TX-9", "leaves-out-the-first-offset", "A transaction that ends at exactly the fetch offset is skipped.",
        "collect_aborted_txns", "txn.last_offset >= fetch_offset", "txn.last_offset > fetch_offset"),
    Row("TX-9", "counts-the-upper-bound-in", "A transaction that begins at the upper bound is collected.",
        "collect_aborted_txns", "txn.first_offset < upper_bound_offset", "txn.first_offset <= upper_bound_offset"),
    Row("TX-9", "goes-on-at-the-stable-offset",
        "A last stable offset equal to the upper bound does not end the search (``>`` for ``>=``).",
        "collect_aborted_txns", "txn.last_stable_offset >= upper_bound_offset",
        "txn.last_stable_offset > upper_bound_offset"),
    Row("TX-9", "stops-before-it-collects", "The transaction that ends the search is not collected itself.",
        "collect_aborted_txns", "txn.first_offset < upper_bound_offset",
        "max(txn.first_offset, txn.last_stable_offset) < upper_bound_offset"),
    Row("TX-9", "stops-at-the-first-miss",
        "A transaction that begins after the upper bound ends the search, as if first offsets were sorted.",
        "collect_aborted_txns", "txn.last_stable_offset >= upper_bound_offset",
        "max(txn.first_offset, txn.last_stable_offset) >= upper_bound_offset"),
    Row("TX-9", "collects-by-first-offset", "Only transactions that begin at or after the fetch offset are collected.",
        "collect_aborted_txns", "txn.last_offset >= fetch_offset",
        "min(txn.first_offset, txn.last_offset) >= fetch_offset"),
    # -- cutting --
    Row("TX-10", "keeps-the-equal-record", "Truncation keeps the record whose last offset is exactly the offset.",
        "truncate_to", "txn.last_offset >= offset", "txn.last_offset > offset"),
    Row("TX-10", "truncates-by-first-offset", "Truncation compares first offsets.",
        "truncate_to", "txn.last_offset >= offset", "txn.first_offset >= offset"),
    Row("TX-4b", "remembers-cut-records", "A truncation does not change the remembered last offset.",
        "truncate_to", "self._last_offset = last", "pass"),
    Row("TX-11", "reset-remembers", "A reset does not forget the last offset.",
        "reset", "self._last_offset = None", "pass"),
    Row("TX-11", "reset-deletes", "A reset deletes the file.",
        "reset", "self._cut(0)", "if self._descriptor is not None: self.delete_if_exists()"),
    # -- checking and moving --
    Row("TX-12a", "forgets-to-sanity-check", "The sanity check accepts everything.",
        "sanity_check", START, "return"),
    Row("TX-13b", "never-says-it-deleted", "Deleting returns False even if the file existed.",
        "delete_if_exists", "return unlink(self._file)", "unlink(self._file); return False"),
    Row("TX-13a", "moves-only-its-name", "A rename does not move the file.",
        "rename_to", "os.path.exists(self._file)", "False"),
    Row("TX-1", "writes-the-next-version", "Records are written with version 1.",
        "append", "_RECORD.pack(_CURRENT_VERSION, *txn)", "_RECORD.pack(1, *txn)"),
    Row("TX-12a", "checks-the-first-record-only", "The sanity check reads the first record only.",
        "sanity_check", "txn.last_offset < self.start_offset", "_ == 0 and txn.last_offset < self.start_offset"),
    Row("TX-12a", "doubts-the-start-offset",
        "The sanity check rejects a last offset equal to the start offset (``<=`` for ``<``).",
        "sanity_check", "txn.last_offset < self.start_offset", "txn.last_offset <= self.start_offset"),
    Row("TX-12a", "checks-first-offsets-too",
        "The sanity check rejects a transaction that began in an earlier segment.",
        "sanity_check", "txn.last_offset < self.start_offset",
        "min(txn.first_offset, txn.last_offset) < self.start_offset"),
    Row("TX-7b", "reads-every-version", "Records of any version are read.",
        "stored_records", "raise self._unsupported(version)", "pass"),
    Row("TX-7a", "looks-at-the-low-byte",
        "The version is read from the low byte; up to 4.3 Kafka reads the high byte.",
        "stored_records", "version >>= 8", "version &= 0xFF", release=TRIMMING),
)
# fmt: on


# -- checking ----------------------------------------------------------------------------------------------------------
