"""Which task reads which bytes: segments, cut at entries of the offset index where they are big, packed where small."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kidx.errors import KidxError, ToolError
from kidx.tables.indexes import OffsetEntries, last_time_entry, read_offset_index, read_time_index
from kidx.tables.isolation import last_stable_offset
from kidx.tables.offsets import check_tables, range_of
from kidx.tables.segments import TopicPartition, find_partitions
from kidx.tables.walking import BatchWalk

if TYPE_CHECKING:
    from kidx.tables.conditions import Conditions
    from kidx.tables.indexes import Counter
    from kidx.tables.options import ReadOptions
    from kidx.tables.segments import PartitionLog, Segment

OPEN_COST: Final = 64 << 10
"""What opening a segment is worth in bytes, so that a task does not get too many empty ones."""
SMALLEST_TASK: Final = 4 << 20
"""Bytes below which a task is not worth starting, unless ``minPartitions`` asks for it."""


@dataclass(frozen=True)
class Piece:
    """A run of batches in one segment.

    Attributes:
        segment: that they lie in.
        start, end: byte positions; more may be read if the wanted offsets go on.
        first_offset: of the records that are wanted.
        end_offset: behind them; None for the end of the log.
        exact_end: another piece begins at ``end``.
        is_continuation: another piece ends at ``start``.
        later: segments behind this one that have transaction indexes, for ``read_committed``.
    """

    segment: Segment
    start: int
    end: int
    first_offset: int
    end_offset: int | None = None
    exact_end: bool = False
    is_continuation: bool = False
    later: tuple[Segment, ...] = ()


def chosen_partitions(options: ReadOptions, conditions: Conditions) -> list[PartitionLog]:
    """The replicas that a query reads; of each partition the longest one, unless all are asked for.

    Raises:
        ToolError: a root holds no segments, or there is no partition that was asked for by name.
        OSError: a directory cannot be read.
    """
    found = find_partitions(options.stores)
    logs = [log for log in found if options.wants(log.key)]
    topics = {log.key.topic for log in found}
    missing = sorted((options.topics or frozenset()) - topics)
    missing += sorted(map(str, (options.assigned or frozenset()) - {log.key for log in found}))
    if missing:
        there_are = ", ".join(sorted(topics))
        raise ToolError(f"there is no {', '.join(missing)} here; the topics are {there_are}")
    if options.content in ("records", "batches"):
        check_tables({log.key for log in logs}, options)
    if not options.all_replicas:
        longest: dict[TopicPartition, PartitionLog] = {}
        for log in logs:
            known = longest.setdefault(log.key, log)
            if _length(log) > _length(known):
                longest[log.key] = log
        logs = list(longest.values())
    return [log for log in logs if conditions.admits(log.key)]


def _length(log: PartitionLog) -> tuple[int, int]:
    last = log.segments[-1]
    return last.base_offset, last.size


def plan_pieces(options: ReadOptions, conditions: Conditions, counter: Counter) -> list[list[Piece]]:
    """The pieces of a query over records or batches, by task.

    Raises:
        ToolError: as :func:`chosen_partitions` and :func:`kidx.tables.offsets.range_of`.
        OSError: a directory or a file cannot be read.
    """
    pieces: list[Piece] = []
    for log in chosen_partitions(options, conditions):
        pieces += _pieces_of(log, options, conditions, counter)
    target = task_bytes(sum(piece.end - piece.start + OPEN_COST for piece in pieces), options)
    return pack((part for piece in pieces for part in _cut(piece, target, options, counter)), target)


def plan_segments(options: ReadOptions, conditions: Conditions) -> list[list[Piece]]:
    """The segments of a query that reads no logs, by task."""
    segments = [segment for log in chosen_partitions(options, conditions) for segment in log.segments]
    pieces = [Piece(segment, 0, 0, segment.base_offset) for segment in segments]
    return pack(pieces, task_bytes(len(pieces) * OPEN_COST, options))


def task_bytes(total: int, options: ReadOptions) -> int:
    """How many bytes a task should read."""
    if options.min_partitions is not None:
        return max(1, min(options.max_partition_bytes, -(-total // options.min_partitions)))
    even = -(-total // (os.cpu_count() or 1))
    return min(options.max_partition_bytes, max(even, SMALLEST_TASK))


def pack(pieces: Iterable[Piece], target: int) -> list[list[Piece]]:
    """Neighbouring pieces together, up to about ``target`` bytes a task."""
    tasks: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        cost = piece.end - piece.start + OPEN_COST
        if not tasks or cost > room:
            tasks.append([])
            room = target + OPEN_COST
        tasks[-1].append(piece)
        room -= cost
    return tasks


def _pieces_of(log: PartitionLog, options: ReadOptions, conditions: Conditions, counter: Counter) -> Iterator[Piece]:
    first, end = range_of(log.key, log, options, counter)
    if conditions.least_offset is not None:
        first = max(first, conditions.least_offset)
    if conditions.largest_offset is not None:
        end = min(conditions.largest_offset + 1, end if end is not None else conditions.largest_offset + 1)
    committed = options.isolation == "read_committed"
    if committed:
        try:
            stable = last_stable_offset(log, counter)
        except (KidxError, OSError) as error:
            if options.fail_on_data_loss:
                raise ToolError(f"the transactions of {log.key}: {error}") from error
            stable = None
        if stable is not None:
            end = stable if end is None else min(end, stable)
    for number, segment in enumerate(log.segments):
        behind = segment.next_base_offset
        is_before = behind is not None and behind <= first
        is_behind = end is not None and segment.base_offset >= end
        if not segment.size or is_before or is_behind:
            continue
        later = tuple(each for each in log.segments[number:] if each.sizes.get("txnindex")) if committed else ()
        piece = Piece(segment, 0, segment.size, max(first, segment.base_offset), end, later=later)
        narrowed = _narrowed(piece, options, conditions, counter) if options.use_indexes else piece
        if narrowed is not None:
            yield narrowed


def _narrowed(piece: Piece, options: ReadOptions, conditions: Conditions, counter: Counter) -> Piece | None:
    """The part of a piece that its index files say is enough; None if none of it is needed."""
    segment = piece.segment
    if conditions.least_time is not None:
        largest = last_time_entry(segment, counter)
        if largest is not None and largest[0] < conditions.least_time:
            if not segment.is_last:
                return None
            piece = replace(piece, first_offset=max(piece.first_offset, largest[1] + 1))
        elif largest is not None:
            older = read_time_index(segment, counter).offset_before(conditions.least_time)
            if older is not None:
                piece = replace(piece, first_offset=max(piece.first_offset, older + 1))
    if conditions.largest_time is not None and options.disorder is not None:
        # From that entry's record on, everything is younger than the bound.
        younger = read_time_index(segment, counter).offset_at_or_above(conditions.largest_time + options.disorder + 1)
        if younger is not None:
            end_offset = younger if piece.end_offset is None else min(younger, piece.end_offset)
            piece = replace(piece, end_offset=end_offset)
    if piece.end_offset is not None and piece.end_offset <= piece.first_offset:
        return None
    behind = segment.next_base_offset
    cuts_end = piece.end_offset is not None and (behind is None or piece.end_offset < behind)
    if piece.first_offset == segment.base_offset and not cuts_end:
        return piece
    entries = read_offset_index(segment, counter)
    start = min(entries.floor(piece.first_offset), segment.size)
    end = entries.behind(piece.end_offset - 1) if cuts_end and piece.end_offset is not None else None
    return replace(piece, start=start, end=max(start, min(segment.size if end is None else end, segment.size)))


def _cut(piece: Piece, target: int, options: ReadOptions, counter: Counter) -> Iterator[Piece]:
    """A piece in parts of about ``target`` bytes, cut where the offset index says that a batch begins."""
    tolerated = target if options.min_partitions is not None else target + target // 2
    if piece.end - piece.start <= tolerated or not options.use_indexes:
        yield piece
        return
    entries = read_offset_index(piece.segment, counter)
    rest = piece
    parts = (piece.end - piece.start) / target
    # "At least" is meant for the whole query: every piece is cut once more rather than once less.
    number = math.ceil(parts) if options.min_partitions is not None else round(parts)
    for position in _cuts(piece, entries, number, counter):
        yield replace(rest, end=position, exact_end=True)
        rest = replace(rest, start=position, is_continuation=True)
    yield rest


def _cuts(piece: Piece, entries: OffsetEntries, parts: int, counter: Counter) -> Iterator[int]:
    """Positions of intact batches that cut a piece into about equal parts."""
    step = (piece.end - piece.start) / parts
    last = piece.start
    slots = entries.positions.searchsorted([piece.start + step * part for part in range(1, parts)])
    with piece.segment.store.open(piece.segment.file("log")) as reader:
        for slot in dict.fromkeys(slots.tolist()):
            if slot >= len(entries.positions):
                break
            position, offset = int(entries.positions[slot]), int(entries.offsets[slot])
            if not last < position < piece.end:
                continue
            try:
                _, batch, _ = next(iter(BatchWalk(reader, position, position, piece.segment.size, source="")))
                if batch.is_valid and piece.segment.base_offset <= batch.last_offset <= offset:
                    yield position
                    last = position
            except (KidxError, StopIteration):
                continue  # the index is wrong here: the piece stays whole
        counter.log_bytes += reader.bytes_read
