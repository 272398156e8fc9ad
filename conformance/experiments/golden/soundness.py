"""Check that index files give every lookup the right result, according to the log.

The bytes of an index also depend on the grouping of records into appends and on restarts, which a log does not show.
But a log shows if a lookup that starts at an index's position finds what a scan of the whole segment would find: see
the rules in :mod:`kidx.verify.index_rules`. Bytes that no release writes are not a
finding if all lookups are right.

A transaction index must contain exactly the transactions whose abort marker is in the segment, in order, each with the
last stable offset at that time (TX-15), because a fetch hides the transactions in the index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kidx.discovery import Segment
from kidx.findings import HARMLESS
from kidx.scan import BATCH, IndexContent, parse_index
from kidx.verify.facts import Gatherer
from kidx.verify.index_rules import check_offset_index, check_time_index
from kidx.verify.reporter import Reporter

if TYPE_CHECKING:
    from kidx.records import RecordBatch


class Finding(NamedTuple):
    """Violation of a clause: the clause, the file or lookup, and a description."""

    clause: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.clause} {self.subject}: {self.message}"


_TRANSACTION: Final = struct.Struct(">hqqqq")
_MARKER: Final = struct.Struct(">hh")
_ABORT: Final = 0


class Aborted(NamedTuple):
    """Entry of a ``.txnindex``, which is one aborted transaction."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def offset_index_findings(
    data: bytes, base_offset: int, batches: Sequence[RecordBatch], name: str
) -> Iterator[Finding]:
    """Yield the faults of a trimmed ``.index`` with which a lookup may be wrong."""
    content = parse_index(data, base_offset, ".index")
    reporter = _reporter(base_offset)
    check_offset_index(content, _gathered(base_offset, batches, offsets=content), reporter)
    yield from _findings(reporter, content, name)


def time_index_findings(data: bytes, base_offset: int, batches: Sequence[RecordBatch], name: str) -> Iterator[Finding]:
    """Yield the faults of a trimmed ``.timeindex`` with which a lookup may be wrong."""
    content = parse_index(data, base_offset, ".timeindex")
    reporter = _reporter(base_offset)
    check_time_index(content, _gathered(base_offset, batches, times=content), reporter, finished=True)
    yield from _findings(reporter, content, name)


def _reporter(base_offset: int) -> Reporter[Segment]:
    return Reporter(Segment(Path(f"{base_offset:020d}.log"), base_offset))


def _gathered(
    base_offset: int,
    batches: Sequence[RecordBatch],
    *,
    offsets: IndexContent | None = None,
    times: IndexContent | None = None,
) -> Gatherer:
    """Return the facts about the entries that follow from the batches."""
    none = {suffix: parse_index(b"", base_offset, suffix) for suffix in (".index", ".timeindex")}
    gatherer = Gatherer(base_offset, (offsets or none[".index"]).entries, (times or none[".timeindex"]).entries)
    rows = np.zeros(len(batches), BATCH)
    for row, batch in zip(rows, batches, strict=True):
        row["position"], row["size"] = batch.position, batch.size_in_bytes
        row["base_offset"], row["last_offset"] = batch.base_offset, batch.last_offset
        row["max_timestamp"], row["magic"] = batch.max_timestamp, batch.magic
        row["count"], row["leader_epoch"], row["producer_id"], row["crc_ok"] = -1, -1, -1, True
    if len(rows):
        gatherer.take(rows)
    gatherer.finish()
    return gatherer


def _findings(reporter: Reporter[Segment], content: IndexContent, name: str) -> Iterator[Finding]:
    for finding in reporter.findings():
        if finding.verdict not in HARMLESS:
            yield Finding(finding.clause, name, finding.message)
    if content.padding_entries:
        yield Finding("SEG-37", name, f"{content.padding_entries} entries of zeros follow the others")


def txn_index_findings(data: bytes, expected: Sequence[Aborted], name: str) -> Iterator[Finding]:
    """Yield the faults of a ``.txnindex`` with which a fetch may be wrong.

    ``expected`` are the segment's transactions from :func:`aborted`.
    """
    yield from _size(data, _TRANSACTION, "TX-1", name)
    found = [Aborted(*entry) for entry in _entries(data, _TRANSACTION)]
    for entry in found:
        if entry not in expected:
            yield Finding("TX-15", name, f"{entry} is not in the log")
    for entry in expected:
        if entry not in found:
            yield Finding("TX-15", name, f"{entry} is missing")
    if sorted(found, key=lambda entry: entry.last_offset) != found:
        yield Finding("TX-10", name, "the entries are not in the order of their markers")


def aborted(batches: Iterable[RecordBatch]) -> Iterator[Aborted]:
    """Yield the index entry of each aborted transaction of a whole log, in the order of their markers."""
    open_: dict[int, int] = {}
    for batch in batches:
        if batch.is_transactional and not batch.is_control:
            open_.setdefault(batch.producer_id, batch.base_offset)
        elif batch.is_control:
            first = open_.pop(batch.producer_id, None)
            (marker,) = batch
            if first is not None and marker.key is not None and _MARKER.unpack_from(marker.key)[1] == _ABORT:
                stable = min(open_.values(), default=batch.last_offset + 1)
                yield Aborted(0, batch.producer_id, first, batch.last_offset, stable)


def _entries(data: bytes, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    return entry.iter_unpack(data[: len(data) // entry.size * entry.size])


def _size(data: bytes, entry: struct.Struct, clause: str, name: str) -> Iterator[Finding]:
    if len(data) % entry.size:
        yield Finding(clause, name, f"{len(data)} bytes are not a multiple of {entry.size}")
