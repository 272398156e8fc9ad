"""Whether index files give every lookup a right answer, derived from the log alone.

The bytes of an index depend on how records were grouped into appends and on restarts, which no log tells. What can be
derived is whether a lookup that starts where the index says finds what a scan from the segment's start would find. Each
rule below is one step of that proof; together they are sufficient. The files are read with ``struct`` and nothing else,
so that no mistake of kidx's own indexes can hide here.

Offset index, entries (offset, position); a search for an offset starts at the last entry not above it:

* OI-3: offsets and positions increase, so the search among the entries is right, and later offsets start later.
* SEG-5: a position is where a batch starts, so a scan from there reads batches.
* SEG-50: every batch before the position ends below the entry's offset: what is skipped cannot hold what is looked for,
  and no fetch up to the position reaches an offset that ``fetch_upper_bound_offset`` leaves out.
* SEG-40: the offset is the last one of the batch at the position or of one behind it, so that it lies in the log and
  the next offset is found. (Of one behind it: an append of several batches has one entry, with the last offset of all.)

Time index, entries (timestamp, offset); a search for a timestamp takes the last entry not above it, and starts where
the offset index says for that entry's offset:

* TI-3: timestamps increase and offsets do not decrease.
* SEG-6: the timestamp is the largest of the batch that holds the offset, and no earlier batch reaches it. The scan
  starts at that batch or before it (SEG-50), so what is skipped is earlier than the entry, and so than the target.
* SEG-22: the last entry has the largest timestamp of the segment. By it a log decides which segment to search (LO-6),
  and finds the largest timestamp of all (LO-9, LO-10).

Transaction index: exactly the transactions whose abort marker lies in the segment, in order, each with the last stable
offset of its time (TX-15): a fetch hides what it finds there, so one too few or too many is wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.recording.finding import Finding

if TYPE_CHECKING:
    from kidx.records import RecordBatch

_OFFSET: Final = struct.Struct(">ii")
_TIME: Final = struct.Struct(">qi")
_TRANSACTION: Final = struct.Struct(">hqqqq")
_MARKER: Final = struct.Struct(">hh")
_ABORT: Final = 0


class Aborted(NamedTuple):
    """An aborted transaction, as a ``.txnindex`` has it."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def offset_index_findings(
    data: bytes, base_offset: int, batches: Sequence[RecordBatch], name: str
) -> Iterator[Finding]:
    """What of a trimmed ``.index`` can mislead a lookup."""
    yield from _size(data, _OFFSET, "OI-11", name)
    entries = [(base_offset + relative, position) for relative, position in _entries(data, _OFFSET)]
    yield from _order(entries, "OI-3", name, strict=(True, True))
    ends = {batch.position: number for number, batch in enumerate(batches)}
    for offset, position in entries:
        number = ends.get(position)
        if number is None:
            yield Finding("SEG-5", name, f"offset {offset} points at {position}, where no batch starts")
            continue
        if number and batches[number - 1].last_offset >= offset:
            last = batches[number - 1].last_offset
            yield Finding(
                "SEG-50", name, f"offset {offset} points at {position}, and before that the log reaches {last}"
            )
        if all(batch.last_offset != offset for batch in batches[number:]):
            yield Finding("SEG-40", name, f"offset {offset} is not the last one of any batch from {position} on")


def time_index_findings(data: bytes, base_offset: int, batches: Sequence[RecordBatch], name: str) -> Iterator[Finding]:
    """What of a trimmed ``.timeindex`` can mislead a lookup."""
    yield from _size(data, _TIME, "TI-11", name)
    entries = [(timestamp, base_offset + relative) for timestamp, relative in _entries(data, _TIME)]
    yield from _order(entries, "TI-3", name, strict=(True, False))
    for timestamp, offset in entries:
        holder = next((batch for batch in batches if batch.base_offset <= offset <= batch.last_offset), None)
        if holder is None or holder.max_timestamp != timestamp:
            has = "no batch" if holder is None else f"a batch up to {holder.max_timestamp}"
            yield Finding("SEG-6", name, f"({timestamp}, {offset}): {has} holds that offset")
        earlier = [b for b in batches if b.last_offset < offset and b.max_timestamp >= timestamp]
        if earlier:
            yield Finding(
                "SEG-6", name, f"({timestamp}, {offset}): the batch up to {earlier[0].last_offset} reaches it"
            )
    largest = max((batch.max_timestamp for batch in batches), default=-1)
    last = entries[-1][0] if entries else -1
    if last != largest:
        yield Finding("SEG-22", name, f"the last entry has timestamp {last}, and the log has {largest}")


def txn_index_findings(data: bytes, expected: Sequence[Aborted], name: str) -> Iterator[Finding]:
    """What of a ``.txnindex`` can mislead a fetch; ``expected`` is the segment's part of :func:`aborted`."""
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
    """The aborted transactions of a whole log, in the order of their markers."""
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
        yield Finding(clause, name, f"{len(data)} bytes are no multiple of {entry.size}")


def _order(
    entries: Sequence[tuple[int, int]], clause: str, name: str, *, strict: tuple[bool, bool]
) -> Iterator[Finding]:
    for before, after in pairwise(entries):
        steps = [b - a for a, b in zip(before, after, strict=True)]
        if any(step < 0 or (step == 0 and is_strict) for step, is_strict in zip(steps, strict, strict=True)):
            yield Finding(clause, name, f"{after} follows {before}")
