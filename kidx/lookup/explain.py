"""Path of one lookup, step by step: segment, time index, offset index, batches, record, result.

The steps use the same parts as the search itself (``SegmentReader.find_offset_by_timestamp``,
``FileRecords.search_for_timestamp``), and record what those parts do. A lookup by time across tiers has the segments of
each tier, up to the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, overload

from kidx.layout import PAGE_BYTES
from kidx.printable import dated
from kidx.records import NO_PARTITION_LEADER_EPOCH
from kidx.segment.file_records import TimestampAndOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    from kidx.index.offset import OffsetIndex, OffsetPosition
    from kidx.index.search import Probe
    from kidx.index.time import TimeIndex, TimestampOffset
    from kidx.lookup.read_only_log import FileSegment, ReadOnlyLog
    from kidx.lookup.tiered_log import TieredLog
    from kidx.records import OffsetTimestamp, RecordBatch


@dataclass(frozen=True, slots=True)
class SegmentVisit:
    """Segment that a lookup considered.

    Attributes:
        largest_timestamp: milliseconds; None in a lookup by offset.
        chosen: True if the search continues in it.
        why: reason for the decision.
        tier: ``local`` or ``remote``; None for a log without tiers.
    """

    base_offset: int
    largest_timestamp: int | None
    chosen: bool
    why: str
    tier: str | None = None


@dataclass(frozen=True, slots=True)
class IndexVisit:
    """Search in an index file.

    Attributes:
        entries: number of entries in the file.
        entry_size: size of an entry in bytes.
        target: the key searched for.
        slot: slot of the entry found; -1 for none, so that the search starts at the beginning of the log.
        found: the entry found, or the value that Kafka uses instead of an entry.
        probes: every comparison, in order.
    """

    file: str
    entries: int
    entry_size: int
    target: int
    slot: int
    found: OffsetPosition | TimestampOffset
    probes: tuple[Probe, ...]

    @property
    def pages(self) -> list[int]:
        """4 KiB pages of the file that the comparisons touched, in the order of the first touch."""
        return list(dict.fromkeys(probe.page for probe in self.probes))


@dataclass(frozen=True, slots=True)
class BatchVisit:
    """Batch that a lookup visited; ``opened`` is True if its records were read, False if only its header was."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    opened: bool


@dataclass(slots=True)
class Explanation:
    """Explanation of one lookup.

    Attributes:
        kind: kind of the target: ``timestamp`` or ``offset``.
        target: the timestamp or offset searched for.
        segments: the segments considered, in order.
        time_index, offset_index: the searches in the indexes, or None.
        log: name of the log that was read, or None.
        log_size: size of the log in bytes.
        answer: the record found, or None.
        bytes_touched: size of the index pages, batch headers and opened batches.
        bytes_without_index: bytes that a search without indexes reads, from the first segment to the record or the end.
        remark: unusual state of the segment's files; empty if they are regular.
    """

    kind: str
    target: int
    segments: list[SegmentVisit] = field(default_factory=list)
    time_index: IndexVisit | None = None
    offset_index: IndexVisit | None = None
    log: str | None = None
    log_size: int = 0
    batches: list[BatchVisit] = field(default_factory=list)
    answer: TimestampAndOffset | None = None
    bytes_touched: int = 0
    bytes_without_index: int = 0
    remark: str = ""


_HEADER_BYTES = 61
"""Size of a batch's header in format v2."""


def explain_timestamp(log: ReadOnlyLog, timestamp: int) -> Explanation:
    """Explain how the first record with a timestamp ≥ ``timestamp`` is found (LO-6, SEG-52, FR-1).

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    explanation = Explanation("timestamp", timestamp)
    start = log.search_start if log.dialect.search_start_survives_truncation else log.start_offset
    for segment in log.segments:
        largest = segment.largest_timestamp
        last = segment.max_timestamp_so_far
        description = (
            f"its largest timestamp {dated(largest)}"
            if last.timestamp >= 0
            else f"without a timestamp, its modification time {dated(largest)}"
        )
        if last.are_zeros(segment.base_offset):
            description += ", for its .timeindex ends with zeros,"
        if largest < timestamp:
            explanation.segments.append(
                SegmentVisit(segment.base_offset, largest, False, f"{description} is before the target")
            )
            continue
        explanation.segments.append(
            SegmentVisit(segment.base_offset, largest, True, f"{description} is the first not before the target")
        )
        search_by_time(explanation, segment, start)
        break
    count(explanation, log)
    return explanation


def explain_offset(log: ReadOnlyLog, offset: int) -> Explanation:
    """Explain how the record at ``offset``, or else the first one after it, is found (SEG-50).

    An offset below the log start or at the log end has no record. A consumer at such an offset gets an error, or waits.

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    explanation = Explanation("offset", offset)
    if log.start_offset <= offset < log.end_offset:
        for segment in log.segments_from(offset):
            why = (
                "the next segment, because the segment before it has no such record"
                if explanation.segments
                else "the last segment that begins at or before the target"
            )
            tier = segment.tier if log.is_tiered else None
            explanation.segments.append(SegmentVisit(segment.base_offset, None, True, why, tier))
            found, explanation.offset_index = search(segment.offset_index, offset)
            scan(
                explanation,
                segment,
                found.position,
                lambda batch: batch.last_offset >= offset,
                lambda record: record.offset >= offset,
            )
            if explanation.answer is not None:
                break
    count(explanation, log)
    return explanation


@overload
def search(index: OffsetIndex, target: int) -> tuple[OffsetPosition, IndexVisit]: ...
@overload
def search(index: TimeIndex, target: int) -> tuple[TimestampOffset, IndexVisit]: ...
def search(index: OffsetIndex | TimeIndex, target: int) -> tuple[OffsetPosition | TimestampOffset, IndexVisit]:
    """Search with the index's own lookup; the slot is -1 if Kafka uses another value instead of an entry."""
    probes: list[Probe] = []
    found = index.lookup(target, probes.append)
    slot = next((probe.slot for probe in reversed(probes) if index.entry(probe.slot) == found), -1)
    if found[0] > target:
        slot = -1
    name = Path(index.path).name
    return found, IndexVisit(name, index.entries, index.entry_size, target, slot, found, tuple(probes))


def search_by_time(explanation: Explanation, segment: FileSegment, start: int) -> None:
    """Search a segment for the first record from an offset on whose timestamp is not before the target."""
    timestamp = explanation.target
    entry, explanation.time_index = search(segment.reader.time_index, timestamp)
    found, explanation.offset_index = search(segment.offset_index, max(entry.offset, start))
    scan(
        explanation,
        segment,
        found.position,
        lambda batch: batch.max_timestamp >= timestamp,
        lambda record: record.timestamp >= timestamp and record.offset >= start,
    )


def scan(
    explanation: Explanation,
    segment: FileSegment,
    position: int,
    opens: Callable[[RecordBatch], bool],
    matches: Callable[[OffsetTimestamp], bool],
) -> None:
    """Visit batches from a position on, and stop at the first record that matches.

    Args:
        explanation: receives the visited batches and the record.
        segment: the segment that is searched.
        position: byte position of the first batch.
        opens: function that returns True if a batch can hold the record, so that its records are read.
        matches: function that returns True for the record that is searched for.
    """
    _begin(explanation, segment)
    for batch in segment.batches(position):
        opened = opens(batch)
        _visit(explanation, batch, opened=opened)
        for record in batch.offset_timestamps() if opened else ():
            if matches(record):
                explanation.answer = TimestampAndOffset(record.timestamp, record.offset, _epoch(batch))
                return


def _begin(explanation: Explanation, segment: FileSegment) -> None:
    explanation.log, explanation.log_size, explanation.remark = (
        segment.files.log.name,
        segment.reader.size,
        segment.remark,
    )
    explanation.batches.clear()


def _visit(explanation: Explanation, batch: RecordBatch, *, opened: bool) -> None:
    explanation.batches.append(
        BatchVisit(
            batch.position, batch.size_in_bytes, batch.base_offset, batch.last_offset, batch.max_timestamp, opened
        )
    )


def _epoch(batch: RecordBatch) -> int | None:
    epoch = batch.partition_leader_epoch
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch


def count(explanation: Explanation, log: ReadOnlyLog) -> None:
    """Set the numbers of bytes that are read with the indexes and without them."""
    visits = [visit for visit in (explanation.time_index, explanation.offset_index) if visit is not None]
    explanation.bytes_touched = sum(len(visit.pages) for visit in visits) * PAGE_BYTES
    explanation.bytes_touched += sum(
        batch.size if batch.opened else min(batch.size, _HEADER_BYTES) for batch in explanation.batches
    )
    last = explanation.segments[-1].base_offset if explanation.segments else -1
    for segment in log.all_segments:
        if explanation.answer is not None and segment.base_offset == last:
            explanation.bytes_without_index += explanation.batches[-1].position + explanation.batches[-1].size
            break
        explanation.bytes_without_index += segment.log_size


def explain_across_tiers(log: TieredLog, timestamp: int) -> Explanation:
    """Explain how the first record with a timestamp ≥ ``timestamp`` is found (LO-19).

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    explanation = Explanation("timestamp", timestamp)
    for visit in log.path_to(timestamp):
        segment = visit.segment
        explanation.segments.append(
            SegmentVisit(
                segment.base_offset, segment.largest_timestamp, visit.start is not None, visit.why, segment.tier
            )
        )
        if visit.start is not None:
            search_by_time(explanation, segment, visit.start)
        if explanation.answer is not None:
            break
    count(explanation, log)
    return explanation
