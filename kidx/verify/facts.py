"""Facts that the rules need about a log and its index entries, gathered in one pass over the log's batches.

Memory is bounded by the number of entries, not by the number of batches. A few numbers are kept for each entry. For the
whole log its first and last offsets, epochs and transactions are kept, and the first batches of each kind of trouble.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kidx.java_values import INT_MAX
from kidx.layout import ATTRIBUTE_CODEC, ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from kidx.scan.blocks import HiddenBatch, hidden_batches
from kidx.scan.rows import BATCH, ODD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kidx.scan.blocks import LogBlocks

Array = np.ndarray[Any, Any]

MAX_LISTED_BATCHES: Final = 20
"""Maximum number of batches that are kept for each kind of trouble; the others are only counted."""
_MARKERS: Final = (0, 1)
"""Types of control records that end a transaction: abort, commit."""

_OFFSET_FACTS: Final = np.dtype(
    [
        ("at_batch", "?"),  # a batch starts at the entry's position
        ("batch_last", "i8"),  # last offset of this batch
        ("before_last", "i8"),  # largest offset before the entry's position
        ("before_position", "i8"),  # position of the previous batch; -1 for the first batch
        ("around_position", "i8"),  # start of the batch that contains the entry's position
        ("running_timestamp", "i8"),  # largest timestamp up to and including this batch
        ("running_offset", "i8"),  # last offset of the first batch with this timestamp
        ("in_log", "?"),  # the entry's offset is not past the end of the log
        ("ends_batch", "?"),  # the entry's offset is the last offset of some batch
    ]
)

_TIME_FACTS: Final = np.dtype(
    [
        ("in_log", "?"),  # the entry's offset is not past the end of the log
        ("holder_base", "i8"),  # base offset of the holder, the first batch that reaches the entry's offset
        ("holder_last", "i8"),
        ("holder_max", "i8"),  # largest timestamp of the holder
        ("holder_position", "i8"),
        ("holder_size", "i8"),
        ("holder_magic", "i1"),
        ("holder_attributes", "i2"),
        ("before_max", "i8"),  # largest timestamp of the batches before the holder
    ]
)


class FaultyBatch(NamedTuple):
    """Batch with a fault, or with a property that a remark is about."""

    position: int  # byte position in the log
    size: int  # bytes
    base_offset: int
    last_offset: int
    magic: int
    before: int  # largest offset before the batch


class TransactionEvent(NamedTuple):
    """Begin or end of a producer's transaction in a segment.

    ``kind`` is ``data`` for the first batch of the transaction in this segment, and ``abort`` or ``commit`` for its
    marker. The offsets are the first and last offset of the marker, and twice the first offset of the batch.
    """

    kind: str
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class LogFacts:
    """Facts about a whole log; offsets and timestamps are -1 in a log without batches or timestamps.

    Attributes:
        sparse_batches: number of batches with fewer records than offsets, as compaction leaves them.
        epochs: leader epochs, each with the base offset of its first batch.
        transactions: begins and ends of transactions.
        troubles: the first batches with each kind of fault or remark.
        counts: number of all batches with each kind.
        hidden: whole batches after bytes that reading cannot pass; a lookup may find them through an index.
    """

    base_offset: int
    batches: int = 0
    records: int = 0
    first_offset: int = -1
    last_offset: int = -1
    max_timestamp: int = -1
    max_timestamp_offset: int = -1
    last_position: int = 0
    sparse_batches: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    transactions: list[TransactionEvent] = field(default_factory=list)
    troubles: dict[str, list[FaultyBatch]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    hidden: list[HiddenBatch] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        """Offset after the last whole batch, wherever it lies."""
        last = max([self.last_offset, *(each.last_offset for each in self.hidden)])
        return last + 1 if self.batches or self.hidden else self.base_offset


class Gatherer:
    """Collector of facts, which receives the batches of a log block by block.

    Args:
        offsets: entries of the ``.index``: ``offset, position``.
        times: entries of the ``.timeindex``: ``timestamp, offset``.

    Attributes:
        log: facts about the log.
        offset_facts: one row per entry of the ``.index``.
        time_facts: one row per entry of the ``.timeindex``.
    """

    def __init__(self, base_offset: int, offsets: Array, times: Array) -> None:
        self.log = LogFacts(base_offset)
        self.offset_facts = np.zeros(len(offsets), _OFFSET_FACTS)
        self.time_facts = np.zeros(len(times), _TIME_FACTS)
        self._by_position = _Cursor(offsets["position"])
        self._by_offset = _Cursor(offsets["offset"])
        self._by_time = _Cursor(times["offset"])
        self._before_last = base_offset - 1
        self._before_position = -1
        self._before_max = -1
        self._before_max_offset = -1
        self._open: set[int] = set()
        self._timestamps, self._time_offsets = times["timestamp"], times["offset"]

    def read(self, blocks: LogBlocks) -> None:
        """Gather the facts about all batches of a log in one pass.

        Raises:
            OSError: the log cannot be read.
        """
        for rows in blocks.rows(self.quick if blocks.compiled else None):
            self.take(rows)
        if blocks.tail.kind in {"partial", "corrupt"}:
            self._take_hidden(hidden_batches(blocks.path, blocks.tail.valid_bytes))
        self.finish()

    def _take_hidden(self, batches: Sequence[HiddenBatch]) -> None:
        """Set the facts about index entries at batches that reading does not reach."""
        batches = [each for each in batches if each.base_offset > self._before_last]
        if not batches:
            return
        rows = np.zeros(len(batches), BATCH)
        for name in ("position", "base_offset", "last_offset", "size", "max_timestamp", "attributes"):
            rows[name] = [getattr(each, name) for each in batches]
        rows["magic"] = 2
        log, last = self.log, rows["last_offset"]
        reached = np.maximum.accumulate(last)
        running = np.maximum(np.maximum.accumulate(rows["max_timestamp"]), self._before_max)
        unknown = ~self.time_facts["in_log"]
        slots, positions = self._by_position.slots, self._by_position.keys
        between = slots[self._by_position.done :][positions[self._by_position.done :] < batches[0].position]
        self._place_positions(rows, np.append(self._before_last, reached[:-1]), running)
        self.offset_facts["around_position"][between] = -1
        self._place_offsets(rows, reached)
        self._place_times(rows, reached, running)
        unknown &= self.time_facts["in_log"] & (self._time_offsets < self.time_facts["holder_base"])
        self.time_facts["holder_max"][unknown] = self._timestamps[unknown]
        if running[-1] > self._before_max:
            log.max_timestamp = int(running[-1])
            log.max_timestamp_offset = int(last[np.argmax(rows["max_timestamp"] == running[-1])])
        log.hidden = batches

    def take(self, rows: Array) -> None:
        """Add the next batches of the log, at least one; ``rows`` has their headers."""
        last, stamps = rows["last_offset"], rows["max_timestamp"]
        reached = np.maximum.accumulate(last)
        before = np.empty_like(reached)
        before[0] = self._before_last
        np.maximum(reached[:-1], self._before_last, out=before[1:])
        np.maximum(reached, self._before_last, out=reached)
        running = np.maximum(np.maximum.accumulate(stamps), self._before_max)
        self._note_batches(rows, before)
        self._place_positions(rows, before, running)
        self._place_offsets(rows, reached)
        self._place_times(rows, reached, running)
        if running[-1] > self._before_max:
            self._before_max = int(running[-1])
            self._before_max_offset = int(last[np.argmax(stamps == running[-1])])
        self._before_last, self._before_position = int(reached[-1]), int(rows["position"][-1])
        log = self.log
        if not log.batches:
            log.first_offset = int(rows["base_offset"][0])
        log.batches += len(rows)
        log.records += int(np.maximum(rows["count"], 0).sum())
        log.last_offset, log.last_position = self._before_last, self._before_position
        log.max_timestamp, log.max_timestamp_offset = self._before_max, self._before_max_offset

    def quick(self, buffer: Array, filled: int, start: int, position: int, end: int) -> tuple[int, int]:
        """Add ordinary batches with the compiled kernel, with the same results; see :meth:`LogBlocks.rows`."""
        from kidx.scan import batch_kernels  # noqa: PLC0415 -- compiles code, which only large logs need

        if self._open:  # the next batches may be outside an open transaction
            return start, ODD
        log = self.log
        epoch = log.epochs[-1][0] if log.epochs else -1
        cursors = (self._by_position, self._by_offset, self._by_time)
        state = np.array(
            [
                self._before_last,
                self._before_position,
                self._before_max,
                self._before_max_offset,
                0,
                0,
                epoch,
                *(cursor.done for cursor in cursors),
            ],
            np.int64,
        )
        places = [column for cursor in cursors for column in (cursor.keys, cursor.slots)]
        stopped, reason = batch_kernels.follow(
            (buffer, filled, start, position, end),
            log.base_offset,
            state,
            (*places, self.offset_facts, self.time_facts),
        )
        before_last, before_position, before_max, before_max_offset, batches, records, _, *done = state.tolist()
        if batches:
            if not log.batches:
                log.first_offset = log.base_offset
            log.batches += batches
            log.records += records
            log.last_offset, log.last_position = before_last, before_position
            log.max_timestamp, log.max_timestamp_offset = before_max, before_max_offset
            self._before_last, self._before_position = before_last, before_position
            self._before_max, self._before_max_offset = before_max, before_max_offset
            for cursor, count in zip(cursors, done, strict=True):
                cursor.done = count
        return stopped, reason

    # -- entries -----------------------------------------------------------------------------------------------

    def _place_positions(self, rows: Array, before: Array, running: Array) -> None:
        """Set the facts about the ``.index`` entries whose positions these batches reach."""
        slots, positions = self._by_position.up_to(int(rows["position"][-1]))
        if not len(slots):
            return
        starts = np.ascontiguousarray(rows["position"])
        number = np.searchsorted(starts, positions, side="right") - 1
        inside = np.maximum(number, 0)
        facts = np.zeros(len(slots), _OFFSET_FACTS)
        facts["at_batch"] = starts[inside] == positions
        facts["batch_last"] = rows["last_offset"][inside]
        facts["before_last"] = before[inside]
        facts["before_position"] = np.where(inside > 0, starts[inside - 1], self._before_position)
        facts["around_position"] = np.where(number >= 0, starts[inside], self._before_position)
        facts["running_timestamp"] = running[inside]
        facts["running_offset"] = self._running_offsets(rows, running)[inside]
        for name in ("at_batch", "batch_last", "before_last", "before_position", "around_position"):
            self.offset_facts[name][slots] = facts[name]
        for name in ("running_timestamp", "running_offset"):
            self.offset_facts[name][slots] = facts[name]

    def _running_offsets(self, rows: Array, running: Array) -> Array:
        """Return the last offset of the first batch that has the largest timestamp so far."""
        raised = np.empty(len(rows), bool)
        raised[0] = running[0] > self._before_max
        raised[1:] = running[1:] > running[:-1]
        owner = np.maximum.accumulate(np.where(raised, np.arange(len(rows)), -1))
        return np.where(owner >= 0, rows["last_offset"][owner], self._before_max_offset)

    def _place_offsets(self, rows: Array, reached: Array) -> None:
        """Set the facts about the ``.index`` entries whose offsets these batches reach."""
        slots, offsets = self._by_offset.up_to(int(reached[-1]))
        if len(slots):
            number = np.searchsorted(reached, offsets, side="left")
            self.offset_facts["in_log"][slots] = True
            self.offset_facts["ends_batch"][slots] = rows["last_offset"][number] == offsets

    def _place_times(self, rows: Array, reached: Array, running: Array) -> None:
        """Set the facts about the ``.timeindex`` entries whose offsets these batches reach."""
        slots, offsets = self._by_time.up_to(int(reached[-1]))
        if not len(slots):
            return
        number = np.searchsorted(reached, offsets, side="left")
        facts = self.time_facts
        facts["in_log"][slots] = True
        for name, column in (
            ("holder_base", "base_offset"),
            ("holder_last", "last_offset"),
            ("holder_max", "max_timestamp"),
            ("holder_position", "position"),
            ("holder_size", "size"),
            ("holder_magic", "magic"),
            ("holder_attributes", "attributes"),
        ):
            facts[name][slots] = rows[column][number]
        facts["before_max"][slots] = np.where(number > 0, running[number - 1], self._before_max)

    def finish(self) -> None:
        """Resolve the entries that point past the last batch."""
        past_end = self._by_position.rest()
        self.offset_facts["before_last"][past_end] = self.log.end_offset - 1
        self.offset_facts["around_position"][past_end] = -1
        self.time_facts["before_max"][self._by_time.rest()] = self._before_max

    # -- batches -----------------------------------------------------------------------------------------------

    def _note_batches(self, rows: Array, before: Array) -> None:
        base, last, magic = rows["base_offset"], rows["last_offset"], rows["magic"]
        self._note("crc", ~rows["crc_ok"], rows, before)
        self._note("overlap", base <= before, rows, before)
        self._note("gap", base > before + 1, rows, before)
        self._note("reversed", last < base, rows, before)
        self._note("magic", (magic < 0) | (magic > 2), rows, before)
        self._note("range", last - self.log.base_offset > INT_MAX, rows, before)
        counts = rows["count"]
        self._note("count", (magic == 2) & (last >= base) & (counts > last - base + 1), rows, before)
        self.log.sparse_batches += int(((counts >= 0) & (counts < last - base + 1)).sum())
        self._note_epochs(rows)
        if self._open or (rows["attributes"] & (ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL)).any():
            self._note_transactions(rows, before)

    def _note(self, kind: str, mask: Array, rows: Array, before: Array) -> None:
        """Count the batches in a mask as a kind of trouble, and keep the first ones."""
        if not mask.any():
            return
        numbers = np.flatnonzero(mask)
        self.log.counts[kind] += len(numbers)
        kept = self.log.troubles.setdefault(kind, [])
        for number in numbers[: MAX_LISTED_BATCHES - len(kept)]:
            row = rows[number]
            places = (row[name] for name in ("position", "size", "base_offset", "last_offset", "magic"))
            kept.append(FaultyBatch._make([*map(int, places), int(before[number])]))

    def _note_epochs(self, rows: Array) -> None:
        epochs = rows["leader_epoch"]
        latest = self.log.epochs[-1][0] if self.log.epochs else -1
        changed = np.empty(len(rows), bool)
        changed[0] = epochs[0] != latest
        np.not_equal(epochs[1:], epochs[:-1], out=changed[1:])
        for number in np.flatnonzero(changed & (epochs >= 0)):
            if int(epochs[number]) != latest and len(self.log.epochs) < 10_000:
                latest = int(epochs[number])
                self.log.epochs.append((latest, int(rows["base_offset"][number])))

    def _note_transactions(self, rows: Array, before: Array) -> None:
        """Note the begins and ends of transactions; of consecutive batches of one producer only the first matters.

        A control batch without a marker, and a batch outside its producer's open transaction, are troubles.
        """
        control = rows["attributes"] & ATTRIBUTE_CONTROL != 0
        open_ = rows["attributes"] & ATTRIBUTE_TRANSACTIONAL != 0
        producers = rows["producer_id"]
        # A compressed marker, which no coordinator writes, is not read here.
        is_read = (producers >= 0) & rows["crc_ok"] & (rows["attributes"] & ATTRIBUTE_CODEC == 0) & (rows["count"] > 0)
        self._note("marker", control & is_read & ~np.isin(rows["control"], _MARKERS), rows, before)
        differs = np.empty(len(rows), bool)
        differs[0] = True
        np.not_equal(producers[1:], producers[:-1], out=differs[1:])
        differs[1:] |= control[:-1] | ~open_[:-1]
        plain = ~open_ & ~control & np.isin(producers, [*self._open, *producers[open_]])
        outside = np.zeros(len(rows), bool)
        for number in np.flatnonzero((producers >= 0) & ((open_ & differs) | control | plain)):
            producer, first = int(producers[number]), int(rows["base_offset"][number])
            if plain[number]:
                outside[number] = producer in self._open and rows["crc_ok"][number]
                continue
            if not control[number]:
                if producer not in self._open:
                    self._open.add(producer)
                    self.log.transactions.append(TransactionEvent("data", producer, first, first))
                continue
            ended = int(rows["control"][number])
            if ended in _MARKERS:
                self._open.discard(producer)
                kind = "commit" if ended else "abort"
                self.log.transactions.append(TransactionEvent(kind, producer, first, int(rows["last_offset"][number])))
        self._note("outside", outside, rows, before)


class _Cursor:
    """Entries in the order of one of their columns, consumed as a pass reaches them.

    Attributes:
        keys, slots: keys and slots of all entries, in the order of the keys.
        done: number of consumed entries.
    """

    def __init__(self, keys: Array) -> None:
        self.keys = np.ascontiguousarray(keys)
        self.slots = np.arange(len(keys))
        if (self.keys[1:] < self.keys[:-1]).any():
            self.slots = np.argsort(self.keys, kind="stable")
            self.keys = self.keys[self.slots]
        self.done = 0

    def up_to(self, key: int) -> tuple[Array, Array]:
        """Consume the entries whose key is at most ``key``; return their slots and keys."""
        start = self.done
        if start == len(self.keys) or self.keys[start] > key:
            return self.slots[:0], self.keys[:0]
        self.done = int(np.searchsorted(self.keys, key, side="right"))
        return self.slots[start : self.done], self.keys[start : self.done]

    def rest(self) -> Array:
        """Return the slots of the entries that were not consumed."""
        return self.slots[self.done :]
