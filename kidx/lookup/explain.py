"""The path of one lookup, step by step: segment, time index, offset index, batches, record, answer.

The steps are taken with the same parts as the search itself (``SegmentReader.find_offset_by_timestamp``,
``FileRecords.search_for_timestamp``), which are watched while they work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, overload

from kidx.layout import PAGE_BYTES
from kidx.records import NO_PARTITION_LEADER_EPOCH
from kidx.segment.results import TimestampAndOffset

if TYPE_CHECKING:
    from collections.abc import Callable

    from kidx.index.entries import OffsetPosition, TimestampOffset
    from kidx.index.offset import OffsetIndex
    from kidx.index.search import Probe
    from kidx.index.time import TimeIndex
    from kidx.lookup.file_segment import FileSegment
    from kidx.lookup.read_only_log import ReadOnlyLog
    from kidx.records import RecordBatch, Stamp


@dataclass(frozen=True, slots=True)
class SegmentLook:
    """A segment that was considered.

    Attributes:
        base_offset: of the segment.
        largest_timestamp: milliseconds; None in a lookup by offset.
        chosen: whether the search goes on in it.
        why: why, or why not.
    """

    base_offset: int
    largest_timestamp: int | None
    chosen: bool
    why: str


@dataclass(frozen=True, slots=True)
class IndexLook:
    """A search in an index file.

    Attributes:
        file: name of the file.
        entries: in it.
        entry_size: bytes of one.
        target: the key searched for.
        slot: of the entry found; -1 for none, which means "from the beginning".
        found: that entry, or what Kafka takes in its place.
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
        """The 4 KiB pages of the file that the comparisons touched, in the order of the first touch."""
        return list(dict.fromkeys(probe.page for probe in self.probes))


@dataclass(frozen=True, slots=True)
class BatchLook:
    """A batch that was passed: its header only, or its records as well."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    opened: bool


@dataclass(slots=True)
class Explanation:
    """One lookup.

    Attributes:
        question: ``timestamp`` or ``offset``.
        target: what was asked for.
        segments: considered, in order.
        time_index, offset_index: the searches; None where there was none.
        log: name of the log that was read; None if none was.
        log_size: bytes of it.
        batches: passed in it.
        answer: the record; None if there is none.
        bytes_touched: index pages, batch headers and opened batches.
        bytes_without_index: from the log's first byte to the record, or to the end.
        remark: what is unusual about the segment's files; empty if nothing.
    """

    question: str
    target: int
    segments: list[SegmentLook] = field(default_factory=list)
    time_index: IndexLook | None = None
    offset_index: IndexLook | None = None
    log: str | None = None
    log_size: int = 0
    batches: list[BatchLook] = field(default_factory=list)
    answer: TimestampAndOffset | None = None
    bytes_touched: int = 0
    bytes_without_index: int = 0
    remark: str = ""


_HEADER_BYTES = 61


def explain_timestamp(log: ReadOnlyLog, timestamp: int) -> Explanation:
    """How the first record with a timestamp ≥ ``timestamp`` is found (LO-6, SEG-52, FR-1).

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    told = Explanation("timestamp", timestamp)
    start = log.search_start if log.dialect.search_start_survives_truncation else log.start_offset
    for segment in log.segments:
        largest = segment.largest_timestamp
        dated = segment.max_timestamp_so_far.timestamp >= 0
        shown = f"its largest timestamp {largest}" if dated else f"without a timestamp, its modification time {largest}"
        if largest < timestamp:
            told.segments.append(SegmentLook(segment.base_offset, largest, False, f"{shown} is before the target"))
            continue
        told.segments.append(SegmentLook(segment.base_offset, largest, True, f"{shown} is the first not before it"))
        entry, told.time_index = _searched(segment.reader.time_index, timestamp)
        found, told.offset_index = _searched(segment.offset_index, max(entry.offset, start))
        _scan(
            told,
            segment,
            found.position,
            lambda batch: batch.max_timestamp >= timestamp,
            lambda record: record.timestamp >= timestamp and record.offset >= start,
        )
        break
    _count(told, log)
    return told


def explain_offset(log: ReadOnlyLog, offset: int) -> Explanation:
    """How the record at ``offset`` is found, or the first one behind it (SEG-50).

    An offset before the log's start or at its end has none: a consumer there is out of range, or waits.

    Raises:
        KidxError, OSError: an index or a log cannot be read.
    """
    told = Explanation("offset", offset)
    if log.start_offset <= offset < log.end_offset:
        for segment in log.segments_from(offset):
            why = "behind it, as nothing was found before" if told.segments else "the last that begins at or before it"
            told.segments.append(SegmentLook(segment.base_offset, None, True, why))
            found, told.offset_index = _searched(segment.offset_index, offset)
            _scan(
                told,
                segment,
                found.position,
                lambda batch: batch.last_offset >= offset,
                lambda record: record.offset >= offset,
            )
            if told.answer is not None:
                break
    _count(told, log)
    return told


@overload
def _searched(index: OffsetIndex, target: int) -> tuple[OffsetPosition, IndexLook]: ...
@overload
def _searched(index: TimeIndex, target: int) -> tuple[TimestampOffset, IndexLook]: ...
def _searched(index: OffsetIndex | TimeIndex, target: int) -> tuple[OffsetPosition | TimestampOffset, IndexLook]:
    """A search by the index's own look-up; its slot is -1 where Kafka takes something in place of an entry."""
    probes: list[Probe] = []
    found = index.lookup(target, probes.append)
    slot = next((probe.slot for probe in reversed(probes) if index.entry(probe.slot) == found), -1)
    if found[0] > target:
        slot = -1
    name = Path(index.path).name
    return found, IndexLook(name, index.entries, index.entry_size, target, slot, found, tuple(probes))


def _scan(
    told: Explanation,
    segment: FileSegment,
    position: int,
    opens: Callable[[RecordBatch], bool],
    wanted: Callable[[Stamp], bool],
) -> None:
    """Passes batches from a position on, opens those that may hold the answer, and ends at the first record wanted."""
    _begin(told, segment)
    for batch in segment.batches(position):
        opened = opens(batch)
        _pass(told, batch, opened=opened)
        for record in batch.stamps() if opened else ():
            if wanted(record):
                told.answer = TimestampAndOffset(record.timestamp, record.offset, _epoch(batch))
                return


def _begin(told: Explanation, segment: FileSegment) -> None:
    told.log, told.log_size, told.remark = segment.files.log.name, segment.reader.size, segment.remark
    told.batches.clear()


def _pass(told: Explanation, batch: RecordBatch, *, opened: bool) -> None:
    told.batches.append(
        BatchLook(
            batch.position, batch.size_in_bytes, batch.base_offset, batch.last_offset, batch.max_timestamp, opened
        )
    )


def _epoch(batch: RecordBatch) -> int | None:
    epoch = batch.partition_leader_epoch
    return None if epoch == NO_PARTITION_LEADER_EPOCH else epoch


def _count(told: Explanation, log: ReadOnlyLog) -> None:
    """Bytes with the indexes, and without any."""
    looks = [look for look in (told.time_index, told.offset_index) if look is not None]
    told.bytes_touched = sum(len(look.pages) for look in looks) * PAGE_BYTES
    told.bytes_touched += sum(batch.size if batch.opened else min(batch.size, _HEADER_BYTES) for batch in told.batches)
    last = told.segments[-1].base_offset if told.segments else -1
    for segment in log.segments:
        if told.answer is not None and segment.base_offset == last:
            told.bytes_without_index += told.batches[-1].position + told.batches[-1].size
            break
        told.bytes_without_index += segment.files.log.stat().st_size
