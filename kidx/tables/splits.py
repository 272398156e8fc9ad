"""Division of a query into tasks: large segments are cut at offset index entries, small ones are packed together."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kidx.errors import KidxError, ToolError
from kidx.java_values import LONG_MAX
from kidx.layout import RECORD_BATCH_OVERHEAD
from kidx.storage import listed_version
from kidx.tables.batch_walk import WINDOW, BatchWalk
from kidx.tables.choosing import chosen_partitions
from kidx.tables.identity import current_topic_id
from kidx.tables.indexes import Counter, OffsetEntries, last_time_entry, read_offset_index, read_time_index
from kidx.tables.isolation import is_unindexed, last_stable_offset
from kidx.tables.offsets import LogOffsets, last_batch, range_of
from kidx.tables.predicates import Predicates
from kidx.tables.record_times import known_ranges
from kidx.tables.segments import PartitionLog, TopicPartition, list_again, retry_while_changing

if TYPE_CHECKING:
    from kidx.storage import RangeReader
    from kidx.tables.options import ReadOptions
    from kidx.tables.record_times import Ranges
    from kidx.tables.segments import Segment

OPEN_COST: Final = 64 << 10
"""The cost of opening a segment, in bytes: it limits the number of empty segments of a task."""
SMALLEST_TASK: Final = 4 << 20
"""Minimum number of bytes of a task, unless ``minPartitions`` requires more tasks."""

HEADERS_APART: Final = 4 << 10
"""Number of bytes between batches at which a log without an offset index can be cut: Kafka's index interval."""

EARLIER: Final = 64
"""Number of earlier segments that a split remembers at least; a cleaner rarely merges more of them into one."""
LATER: Final = 64
"""Number of later segments that a split remembers; a transaction rarely ends after more of them."""


class Earlier(NamedTuple):
    """The segments of a log around a split's segment, as listed for the plan: :data:`EARLIER` before it and more.

    A cleaner deletes a segment only after it has copied the records to a new file, of the same or an earlier base
    offset. If the offsets of a segment are now in a file that was there before, the segment's records are lost.

    Attributes:
        first_base_offset: the base offset of the first of them.
        files: the base offset and the identity of each file.
    """

    first_base_offset: int
    files: frozenset[tuple[int, int]]

    def has_replaced(self, segment: Segment) -> bool:
        """Return True if a segment is a new file, into which a cleaner may have copied records."""
        known = (segment.base_offset, segment.identity) in self.files
        return segment.base_offset >= self.first_base_offset and not known


_NOTHING_EARLIER: Final = Earlier(0, frozenset())


class Mark(NamedTuple):
    """The last requested batch of a log, as it was when the query was planned: without it, the log was truncated.

    Attributes:
        header: its first bytes; a batch that another leader has written there has others.
        next_offset: the offset after it.
    """

    position: int
    header: bytes
    next_offset: int

    def is_in(self, reader: RangeReader) -> bool:
        """Return True if a log has the batch.

        Raises:
            OSError: the log cannot be read.
        """
        return reader.read(self.position, len(self.header)) == self.header


def _mark_of(segment: Segment, end: int | None, *, use_indexes: bool) -> Mark | None:
    """Return the last batch of a log before an offset; None if it is not found, or in a store.

    No broker truncates a log in a store. A log without an index, which no broker has, is only read if it is small.
    """
    if not segment.store.is_local:
        return None
    try:
        with segment.store.open(segment.file("log")) as reader:
            last = last_batch(segment, reader, Counter(), end, use_indexes=use_indexes, most=WINDOW)
            if last is None:
                return None
            return Mark(last.position, reader.read(last.position, RECORD_BATCH_OVERHEAD), last.next_offset)
    except (KidxError, OSError):  # reading reports it
        return None


@dataclass(frozen=True)
class Split:
    """A range of batches in one segment.

    Attributes:
        start, end: byte positions; the reader goes past ``end`` if the requested offsets continue there.
        end_offset: the offset after the last requested offset; None for the end of the log.
        exact_end: True if another split begins at ``end``.
        is_continuation: True if another split ends at ``start``.
        later: this segment and later ones that have transaction indexes, or whose markers are read, for
            ``read_committed``; at most :data:`LATER`.
        has_more: True if ``later`` does not have all of them.
        earlier: this segment and earlier ones.
        topic_id: the id of the topic; empty if unknown.
        version: the version of the log, as :meth:`~kidx.storage.RangeReader.version`, that ``ranges`` are of.
        ranges: the byte ranges that can have requested records, in order; None if the times were not checked.
        mark: the last requested batch, if it is in the last segment; None otherwise, or if unknown.
    """

    segment: Segment
    start: int
    end: int
    first_offset: int
    end_offset: int | None = None
    exact_end: bool = False
    is_continuation: bool = False
    later: tuple[Segment, ...] = ()
    has_more: bool = False
    earlier: Earlier = _NOTHING_EARLIER
    topic_id: str = ""
    version: str = ""
    ranges: Ranges | None = None
    mark: Mark | None = None

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        if self.ranges is None:
            return self.end - self.start
        return sum(max(0, min(end, self.end) - max(start, self.start)) for start, end in self.ranges)

    @property
    def stop_offset(self) -> int:
        """The first offset not to read from this segment. Segments may overlap, but each offset is read once."""
        ends = (self.end_offset, self.segment.next_base_offset)
        return min((end for end in ends if end is not None), default=LONG_MAX)


def plan_splits(options: ReadOptions, predicates: Predicates, counter: Counter) -> list[list[Split]]:
    """Plan the splits of a query over records or batches, by task.

    Raises:
        ToolError: See :func:`chosen_partitions` and :func:`kidx.tables.offsets.range_of`.
        OSError: a directory or a file cannot be read.
    """
    splits: list[Split] = []
    logs = chosen_partitions(options, Predicates())
    for log in logs:
        if predicates.admits(log.key):
            splits += retry_while_changing(log, lambda now: list(_splits_of(now, options, predicates, counter)), [])
    counter.skipped += max(0, sum(len(log.segments) for log in logs) - len(splits))
    return share_out(splits, options, counter)


def plan_range(
    log: PartitionLog, first: int, end: int | None, options: ReadOptions, predicates: Predicates, counter: Counter
) -> list[Split] | None:
    """Plan the splits of a partition that contain the offsets from ``first`` to before ``end``; None for no end.

    The result is None if the partition no longer exists.

    Raises:
        OSError: a file cannot be read.
    """

    def plan(now: PartitionLog) -> list[Split] | None:
        return list(_splits_between(now, first, end, options, predicates, counter))

    return retry_while_changing(log, plan, None)


def share_out(splits: Iterable[Split], options: ReadOptions, counter: Counter) -> list[list[Split]]:
    """Divide splits into tasks: cut large splits and combine small ones."""
    splits = list(splits)
    total = sum(split.size + OPEN_COST for split in splits)
    parts = (part for split in splits for part in _cut(split, _even_share(total, options), options, counter))
    return pack((part for part in parts if part.ranges is None or part.size), task_bytes(total, options))


def plan_again(split: Split, *, committed: bool, use_indexes: bool = True) -> tuple[list[Split], str]:
    """Plan a split again after its segment was deleted, cleaned or merged.

    Returns:
        The splits, and a message about offsets that no longer exist; empty if all exist.

    Raises:
        OSError: the partition cannot be listed.
    """
    before, log = split.segment, _listed_again(split)
    key = TopicPartition(before.topic, before.partition)
    if log is None:
        lost = f"its records from offset {split.first_offset} on are lost"
        return [], f"{key} no longer exists, or was deleted and created again: {lost}"
    end = None if split.end_offset is None and before.is_last else split.stop_offset
    start = LogOffsets(log, Counter()).start
    lost = ""
    if start > split.first_offset:
        lost = f"{key} begins at offset {start}; offset {split.first_offset} was deleted"
    elif not _has_records_of(log, split):
        lost = (
            _truncation(log, split)
            if before.is_last and log.store.is_local and log.segments[-1].base_offset <= before.base_offset
            else f"{before.name} no longer exists as it was when the query was planned,"
            " and no other segment has its records"
        )
    first = max(start, split.first_offset)
    return list(_whole_splits(log, first, end, committed=committed, use_indexes=use_indexes)), lost


def _listed_again(split: Split) -> PartitionLog | None:
    segment = split.segment
    remote = None if segment.tiers is None else segment.tiers.remote
    key = TopicPartition(segment.topic, segment.partition)
    return list_again(PartitionLog(key, segment.home_store, segment.home, remote=remote), split.topic_id)


def _has_records_of(log: PartitionLog, split: Split) -> bool:
    """Return True if the segment that now has the offsets of a split may have its records.

    That is so if it is a new file, which a cleaner made, or if it is the planned one and is followed by the same
    segment. Such a file has changed its size because the broker filled it or cut off the zeros at its end. The last
    segment, which no cleaner touches, must have the last requested batch.
    """
    before = split.segment
    now = next(each for each in reversed(log.segments) if each.base_offset <= split.first_offset)
    if now.base_offset == before.base_offset and before.is_last:
        return _is_kept(now, split) or (not now.is_last and split.earlier.has_replaced(now))
    if now.base_offset == before.base_offset and now.next_base_offset == before.next_base_offset:
        return True
    return split.earlier.has_replaced(now)


def _is_kept(now: Segment, split: Split) -> bool:
    """Return True if the log of a split still has its last requested batch, as far as that is known."""
    if split.mark is None:
        return now.size >= split.segment.size
    try:
        with now.store.open(now.file("log")) as reader:
            return split.mark.is_in(reader)
    except FileNotFoundError:  # the next reader finds that, too
        return True


def _truncation(log: PartitionLog, split: Split) -> str:
    said = f"{log.key} was truncated after the query was planned"
    with suppress(KidxError, FileNotFoundError):
        said += f", and ends at offset {LogOffsets(log, Counter()).end()} now"
    return said if split.mark is None else f"{said}; offset {split.mark.next_offset - 1} was requested"


def is_of_another_topic(split: Split) -> bool:
    """Return True if the directory of a split's partition now has another topic id than when it was planned.

    Raises:
        OSError: the id cannot be read.
    """
    if not split.topic_id:
        return False
    split.segment.home_store.refresh(split.segment.home)
    return current_topic_id(split.segment) not in ("", split.topic_id)


def plan_segments(options: ReadOptions, predicates: Predicates) -> list[list[Split]]:
    """Plan the segments of a query that reads no logs, by task."""
    segments = [segment for log in chosen_partitions(options, predicates) for segment in log.segments]
    splits = [Split(segment, 0, 0, segment.base_offset) for segment in segments]
    return pack(splits, task_bytes(len(splits) * OPEN_COST, options))


def task_bytes(total: int, options: ReadOptions) -> int:
    """Return the number of bytes that a task should read."""
    return min(options.max_partition_bytes, _even_share(total, options))


def _even_share(total: int, options: ReadOptions) -> int:
    if options.min_partitions is not None:
        return max(1, -(-total // options.min_partitions))
    return max(-(-total // (os.cpu_count() or 1)), SMALLEST_TASK)


def pack(splits: Iterable[Split], target: int) -> list[list[Split]]:
    """Combine neighbouring splits into tasks of about ``target`` bytes."""
    tasks: list[list[Split]] = []
    free = 0
    for split in splits:
        cost = split.size + OPEN_COST
        if not tasks or cost > free:
            tasks.append([])
            free = target + OPEN_COST
        tasks[-1].append(split)
        free -= cost
    return tasks


def _splits_of(log: PartitionLog, options: ReadOptions, predicates: Predicates, counter: Counter) -> Iterator[Split]:
    first, end = range_of(log.key, log, options, counter)
    if predicates.min_offset is not None:
        first = max(first, predicates.min_offset)
    if predicates.max_offset is not None:
        end = min(predicates.max_offset + 1, end if end is not None else predicates.max_offset + 1)
    if options.isolation == "read_committed":
        try:
            stable = last_stable_offset(log, counter, use_indexes=options.use_indexes)
        except FileNotFoundError:
            raise
        except (KidxError, OSError) as error:
            if options.fail_on_data_loss:
                raise ToolError(f"cannot read the transactions of {log.key}: {error}") from error
            stable = None
        if stable is not None:
            end = stable if end is None else min(end, stable)
    yield from _splits_between(log, first, end, options, predicates, counter)


def _splits_between(
    log: PartitionLog, first: int, end: int | None, options: ReadOptions, predicates: Predicates, counter: Counter
) -> Iterator[Split]:
    committed = options.isolation == "read_committed"
    for split in _whole_splits(log, first, end, committed=committed, use_indexes=options.use_indexes):
        checked = _checked(split, predicates) if checks_times(options, predicates) else split
        if checked.ranges is not None:
            if checked.size:
                yield checked
            continue
        narrowed = _narrowed(split, options, predicates, counter) if options.use_indexes else split
        if narrowed is not None:
            yield narrowed


def checks_times(options: ReadOptions, predicates: Predicates) -> bool:
    """Return True if a query restricts times, and gives no bound on their disorder: the records are checked."""
    return predicates.restricts_times and options.check_crcs and options.max_timestamp_disorder is None


def _checked(split: Split, predicates: Predicates) -> Split:
    """Return a split with the ranges that can have requested records, if all its times were checked before.

    Raises:
        FileNotFoundError: the segment was removed.
    """
    segment = split.segment
    if segment.store.is_local:
        with segment.store.open(segment.file("log")) as reader:
            version = reader.version() if reader.size == segment.size else ""
    else:  # without a request for each of its segments
        version = listed_version(segment.identity, segment.modified)
    offsets = split.first_offset, split.stop_offset
    ranges = known_ranges(segment, version, (0, segment.size), offsets, predicates)
    return split if ranges is None else replace(split, version=version, ranges=ranges)


def _whole_splits(
    log: PartitionLog, first: int, end: int | None, *, committed: bool, use_indexes: bool = True
) -> Iterator[Split]:
    """Yield the segments that can contain the offsets from ``first`` to before ``end``, each as one split."""
    segments, topic_id = log.segments, log.topic_id
    # Neighbours share these, so that a plan grows with the number of segments, not with its square.
    earlier = [_earlier(segments, number) for number in range(0, len(segments), EARLIER)]
    with_transactions = [n for n, each in enumerate(segments) if each.is_last or each.sizes.get("txnindex")]
    indexed_from = len(segments)
    while use_indexes and indexed_from and not is_unindexed(segments[indexed_from - 1]):
        indexed_from -= 1
    for number, segment in enumerate(segments):
        following_base = segment.next_base_offset
        is_before = following_base is not None and following_base <= first
        is_after = end is not None and segment.base_offset >= end
        if not segment.size or is_before or is_after:
            continue
        later: Sequence[Segment] = ()
        if committed and number < indexed_from:  # the markers of a segment must be read
            later = segments[number : number + LATER + 1]
        elif committed:
            place = bisect_left(with_transactions, number)
            later = [segments[n] for n in with_transactions[place : place + LATER + 1]]
        yield Split(
            segment,
            0,
            segment.size,
            max(first, segment.base_offset),
            end,
            later=tuple(later[:LATER]),
            has_more=len(later) > LATER,
            earlier=earlier[number // EARLIER],
            topic_id=topic_id,
            mark=_mark_of(segment, end, use_indexes=use_indexes) if segment.is_last else None,
        )


def _earlier(segments: list[Segment], number: int) -> Earlier:
    known = segments[max(0, number - EARLIER) : number + EARLIER]
    return Earlier(known[0].base_offset, frozenset((each.base_offset, each.identity) for each in known))


def later_segments(split: Split) -> Iterator[Segment]:
    """Yield the segment of a split and later ones in which its aborted transactions can end.

    Raises:
        FileNotFoundError: the partition no longer exists.
        OSError: the partition cannot be listed.
    """
    yield from split.later
    if split.has_more:
        log = _listed_again(split)
        if log is None:
            raise FileNotFoundError(f"{split.segment.name} no longer exists")
        yield from (each for each in log.segments if each.base_offset > split.later[-1].base_offset)


def _narrowed(split: Split, options: ReadOptions, predicates: Predicates, counter: Counter) -> Split | None:
    """Restrict a split to the part that can have requested records, by its index files; None if no part can.

    The time index has the largest timestamps of the batches' headers, which are trusted only with
    ``timestampDisorderMs``: see :mod:`kidx.tables.predicates`.
    """
    segment = split.segment
    if predicates.min_time is not None and options.max_timestamp_disorder is not None:
        largest = last_time_entry(segment, counter)
        if largest is not None and largest[0] < predicates.min_time:
            if not segment.is_last:
                return None
            split = replace(split, first_offset=max(split.first_offset, largest[1] + 1))
        elif largest is not None:
            older = read_time_index(segment, counter).offset_before(predicates.min_time)
            if older is not None:
                split = replace(split, first_offset=max(split.first_offset, older + 1))
    if predicates.max_time is not None and options.max_timestamp_disorder is not None:
        # From the record of that entry on, every record is newer than the bound.
        younger = read_time_index(segment, counter).offset_at_or_above(
            predicates.max_time + options.max_timestamp_disorder + 1
        )
        if younger is not None:
            end_offset = younger if split.end_offset is None else min(younger, split.end_offset)
            split = replace(split, end_offset=end_offset)
    if split.end_offset is not None and split.end_offset <= split.first_offset:
        return None
    following = segment.next_base_offset
    cuts_end = split.end_offset is not None and (following is None or split.end_offset < following)
    if split.first_offset == segment.base_offset and not cuts_end:
        return split
    entries = read_offset_index(segment, counter)
    start = min(entries.floor(split.first_offset), segment.size)
    end = entries.position_after(split.end_offset - 1) if cuts_end and split.end_offset is not None else None
    return replace(split, start=start, end=max(start, min(segment.size if end is None else end, segment.size)))


def _cut(split: Split, even: int, options: ReadOptions, counter: Counter) -> Iterator[Split]:
    """Yield a split in parts, cut at the batches that the offset index names, or else at batches of the log.

    Finding the batches of a log costs the driver one read of it, so a log without an index is only cut to give all
    tasks an even share, not to ``maxPartitionBytes``; and in an object store it is not cut.
    """
    tolerance = 1 if options.min_partitions is not None else 1.5
    target = min(options.max_partition_bytes, even)
    if split.size <= target * tolerance or not options.use_indexes:
        yield split
        return
    entries = read_offset_index(split.segment, counter)
    if not len(entries.offsets):
        if split.size <= even * tolerance or not split.segment.store.is_local:
            yield split
            return
        target, entries = even, _entries_of_log(split, counter)
    rest = split
    parts = (split.end - split.start) / target
    # The minimum applies to the whole query, so the number of parts is rounded up.
    number = math.ceil(parts) if options.min_partitions is not None else round(parts)
    try:
        cuts = list(_cuts(split, entries, number, counter))
    except FileNotFoundError:  # the reader of the split plans it again
        cuts = []
    for position, offset in cuts:
        yield replace(rest, end=position, end_offset=min(offset, split.stop_offset), exact_end=True)
        rest = replace(rest, start=position, first_offset=max(offset, split.first_offset), is_continuation=True)
    yield rest


def _entries_of_log(split: Split, counter: Counter) -> OffsetEntries:
    """Return what an offset index with an entry for each :data:`HEADERS_APART` bytes would have; up to a corruption."""
    found: list[tuple[int, int]] = []
    segment = split.segment
    with suppress(KidxError, FileNotFoundError), segment.store.open(segment.file("log")) as reader:
        walk = BatchWalk(reader, split.start, split.end, source=segment.name, wanted=lambda _: False)
        for position, batch, _ in walk:
            if position - (found[-1][1] if found else split.start) >= HEADERS_APART:
                found.append((batch.last_offset, position))
        counter.log_bytes += reader.bytes_read
    offsets, positions = np.array(found, np.int64).reshape(-1, 2).T
    return OffsetEntries(offsets, positions)


def _cuts(split: Split, entries: OffsetEntries, parts: int, counter: Counter) -> Iterator[tuple[int, int]]:
    """Yield positions and base offsets of valid batches that divide a split into about equal parts."""
    step = (split.end - split.start) / parts
    last = split.start
    slots = entries.positions.searchsorted([split.start + step * part for part in range(1, parts)])
    with split.segment.store.open(split.segment.file("log")) as reader:
        for slot in dict.fromkeys(slots.tolist()):
            if slot >= len(entries.positions):
                break
            position, offset = int(entries.positions[slot]), int(entries.offsets[slot])
            if not last < position < split.end:
                continue
            try:
                _, batch, _ = next(iter(BatchWalk(reader, position, position, split.segment.size, source="")))
                if batch.is_valid and split.segment.base_offset <= batch.last_offset <= offset:
                    yield position, batch.base_offset
                    last = position
            except (KidxError, StopIteration):
                continue  # the index is wrong here: do not cut
        counter.log_bytes += reader.bytes_read
