"""Segment machine: a segment's four files, in lockstep with Kafka's ``LogSegment`` (clauses SEG)."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar, NamedTuple

from hypothesis.stateful import invariant

from conformance.lockstep.scopes.segment import SegmentLockstep
from conformance.machines.files import FilesMachine
from conformance.machines.seeded_rules import initialize, rule
from conformance.operations import Operation
from conformance.operations.segment import SUFFIXES, SegmentObservation
from conformance.strategies import draws as st
from conformance.strategies.batches import BatchPlan, RecordDamage, calls, plain_plans, record_damages, transactions
from conformance.strategies.draws import Draw
from conformance.strategies.index import NEAR, damages
from kidx.errors import KidxError
from kidx.java_values import INT_MAX, LONG_MAX, to_int, to_long
from kidx.records import iter_batches
from kidx.segment import AppendInfo, follower_append_info, leader_append_info

_ENTRY_SIZES = {".log": 61, ".index": 8, ".timeindex": 12, ".txnindex": 34}  # of .log: the header of a batch
_LEADERS = ("3.6.2", "3.7.2", "3.9.0")
"""Releases in which a leader passes different offsets and timestamps to the segment, for the same batches (SEG-8)."""


class BatchPosition(NamedTuple):
    """Position in the log, resolved when the rule runs: the index of a batch, and a distance from its offsets."""

    batch: int
    delta: int


class Batch(NamedTuple):
    """Batch in the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    position: int
    size: int


def spots() -> Draw[BatchPosition]:
    """Draw a position: at a batch, or near it."""
    return st.builds(BatchPosition, st.sampled_from((-1, -1, 0, 1, -2, 2, 5)), st.sampled_from((*NEAR, 50, -50)))


def sizes() -> Draw[int]:
    """Draw a size of index files: common sizes, zero, no multiple of an entry, and a rejected size (AI-44)."""
    return st.sampled_from((96, 1200, 48, 0, 7, -12))


def file_damages() -> Draw[list[tuple[str, Operation]]]:
    """Draw none, one or two corruptions of the closed files."""
    one = st.sampled_from(SUFFIXES).flatmap(lambda kind: damages(_ENTRY_SIZES[kind], st).map(lambda how: (kind, how)))
    return st.just([]) | st.lists(one, max_size=2)


class SegmentMachine(FilesMachine):
    """Machine of one segment. Every rule ends with an open segment.

    Attributes:
        base_offset: The base offset.
        settings: Index interval in bytes, index size in bytes, and roll jitter in milliseconds.
        suffix: The suffix of the files' names after a rename, such as ``.deleted``.
        now: The time in milliseconds.
    """

    kind: ClassVar[str] = "segment"
    lockstep_type = SegmentLockstep
    lockstep: ClassVar[SegmentLockstep]

    def __init__(self) -> None:
        super().__init__()
        self.base_offset = 0
        self.settings: tuple[int, int, int] = (0, 0, 0)
        self.suffix = ""
        self.now = 1000
        self._read = b""
        self._batches: list[Batch] = []

    def do(self, name: str, *arguments: Any) -> SegmentObservation:
        """Execute an operation with every participant."""
        seen: SegmentObservation = self.lockstep.perform(Operation(name, arguments))
        return seen

    # -- batches in the log ------------------------------------------------------------------------------------

    def batches(self) -> list[Batch]:
        """Return the batches in the log of the newest tested release, up to the first unreadable batch."""
        content = self.lockstep.primary.files[0] or b""
        if content is not self._read:
            if not content.startswith(self._read):
                self._batches = []
            self._read = content
            start = self._batches[-1].position + self._batches[-1].size if self._batches else 0
            with contextlib.suppress(KidxError):
                for b in iter_batches(content, start):
                    self._batches += [Batch(b.base_offset, b.last_offset, b.max_timestamp, b.position, b.size_in_bytes)]
        return self._batches

    def at(self, spot: BatchPosition) -> Batch:
        """Return the batch at a position, or an empty batch at the base offset if the log has no batches."""
        batches = self.batches()
        if not batches:
            return Batch(self.base_offset, self.base_offset, -1, 0, 0)
        return batches[max(-len(batches), min(spot.batch, len(batches) - 1))]

    def ends(self) -> tuple[int, int]:
        """Return the next offset, and the timestamp from which the timestamps of new batches count."""
        batches = self.batches()
        next_offset = to_long(batches[-1].last_offset + 1) if batches else self.base_offset
        largest = max((batch.max_timestamp for batch in batches), default=-1)
        return next_offset, 1000 if largest < 0 else min(largest, LONG_MAX // 2)

    def bytes_of(self, plans: tuple[BatchPlan, ...]) -> bytes:
        """Return the batches of an append call as bytes, with the next offsets and timestamps."""
        next_offset, largest = self.ends()
        records = b""
        for plan in plans:
            data = plan.to_bytes(next_offset, largest)
            info = follower_append_info(data)
            next_offset, largest = info.largest_offset + 1, max(largest, info.largest_timestamp)
            records += data
        return records

    # -- rules -------------------------------------------------------------------------------------------------

    @initialize(
        base_offset=st.sampled_from((0, 0, 0, 1000, 5_000_000_000)),
        interval=st.sampled_from((0, 70, 200, 0, 1, 1000, 4096)),
        index_size=st.sampled_from((1200,) * 6 + (300, 96, 48, 24, 12, 8)),
        jitter=st.sampled_from((0, 0, 50)),
        room=st.sampled_from((0, 0, 0, 5000, 100)),
    )
    def create(self, base_offset: int, interval: int, index_size: int, jitter: int, room: int) -> None:
        """Open a segment that does not exist yet, with or without a preallocated log file."""
        self.base_offset = base_offset
        self.settings = (interval, index_size, jitter)
        self.open(exists=False, room=room)

    def open(self, *, exists: bool, room: int = 0) -> None:
        """Open the segment."""
        self.now += 10
        self.do("open_segment", self.base_offset, *self.settings, exists, room, room > 0, self.suffix, self.now)

    @rule(plans=calls())
    def append_as_follower(self, plans: tuple[BatchPlan, ...]) -> None:
        """Append the next batches, with the numbers that a follower passes."""
        records = self.bytes_of(plans)
        self.do("append_records", records.hex(), *follower_append_info(records))

    @rule(plans=calls(), release=st.sampled_from(_LEADERS))
    def append_as_leader(self, plans: tuple[BatchPlan, ...], release: str) -> None:
        """Append the next batches, with the numbers that a leader of some release passes (SEG-8)."""
        records = self.bytes_of(plans)
        self.do("append_records", records.hex(), *leader_append_info(records, dialect=release))

    @rule(plans=st.lists(plain_plans(), min_size=2, max_size=6), in_one_call=st.booleans())
    def append_row(self, plans: list[BatchPlan], in_one_call: bool) -> None:
        """Append plain batches, in one call or in one call each: index entries depend on the calls (SEG-3, SEG-4)."""
        for call in (tuple(plans),) if in_one_call else tuple((plan,) for plan in plans):
            records = self.bytes_of(call)
            self.do("append_records", records.hex(), *follower_append_info(records))

    @rule(plans=transactions())
    def append_transactions(self, plans: tuple[BatchPlan, ...]) -> None:
        """Append transactions and their markers, which a later recovery has to find."""
        records = self.bytes_of(plans)
        self.do("append_records", records.hex(), *follower_append_info(records))

    @rule(
        plans=calls(),
        how=st.sampled_from(("nothing", "cut", "flip", "lie", "record", "cut", "flip", "lie", "record", "file")),
        at=st.integers(0, 400),
        last=st.sampled_from((0, 0, 1, -1, INT_MAX, INT_MAX + 1)),
        timestamp=st.sampled_from((-1, 0, 5000, LONG_MAX)),
        damage=record_damages(),
    )
    def append_oddly(
        self, plans: tuple[BatchPlan, ...], how: str, at: int, last: int, timestamp: int, damage: RecordDamage
    ) -> None:
        """Append no bytes, or corrupt bytes, or wrong offsets and timestamps for them, or bytes from a file."""
        if how == "record":
            self.append_unreadable(plans[-1], damage)
            return
        if how == "file":
            self.do("append_from_file", self.bytes_of(plans).hex(), at % 62 if at % 2 else 0)
            return
        records = bytearray(b"" if how == "nothing" else self.bytes_of(plans))
        if how == "cut":
            del records[len(records) - 1 - at % len(records) :]
        elif how == "flip":
            records[at % len(records)] ^= 1 << at % 8
        info = AppendInfo(to_long(self.base_offset + last), timestamp, to_long(self.base_offset + last))
        self.do("append_records", bytes(records).hex(), *info)

    def append_unreadable(self, plan: BatchPlan, damage: RecordDamage) -> None:
        """Append a batch with corrupt records, and search for the largest timestamp in its header (SEG-46)."""
        records = damage.of(plan, *self.ends())
        info = follower_append_info(records)
        self.do("append_records", records.hex(), *info)
        self.do("find_offset", info.largest_timestamp, self.base_offset, INT_MAX - 8)

    @rule(spot=spots(), span=st.sampled_from((0, 1, 5)), stable=st.sampled_from((1, 0, 5)), is_aborted=st.booleans())
    def complete_transaction(self, spot: BatchPosition, span: int, stable: int, is_aborted: bool) -> None:
        """Add the end of a transaction to the index, as a log does after it has appended a marker."""
        last = max(self.at(spot).last_offset + spot.delta, 0)
        self.do("update_txn_index", 1, max(last - span, 0), last, is_aborted, last + stable)

    @rule(
        reason=st.sampled_from(("time", "time", "size", "offset", "none", "age")),
        near=st.sampled_from((0, 1, -1)),
        spot=spots(),
        size=st.sampled_from((0, 100, INT_MAX)),
        max_ms=st.sampled_from((0, 100, 2000, LONG_MAX)),
    )
    def should_roll(self, reason: str, near: int, spot: BatchPosition, size: int, max_ms: int) -> None:
        """Query whether the segment should roll, exactly at one limit and far from the others."""
        timestamp = to_long(self.at(spot).max_timestamp + spot.delta)
        limit, max_bytes, offset = LONG_MAX, INT_MAX, 0
        if reason == "time":
            limit = max(0, timestamp - self.at(BatchPosition(-100, 0)).max_timestamp + self.settings[2] + near)
        elif reason == "age":
            limit = max_ms
        elif reason == "size":
            last = self.at(BatchPosition(-1, 0))
            max_bytes = to_int(max(0, last.position + last.size + size + near))
        elif reason == "offset":
            offset = INT_MAX + near
        if reason != "size":
            size = 0
        self.do("should_roll", limit, max_bytes, timestamp, to_long(self.base_offset + offset), size, self.now + 500)

    @rule(spot=spots())
    def truncate(self, spot: BatchPosition) -> None:
        """Truncate the segment at, in or between batches."""
        self.now += 10
        self.do("truncate_segment", to_long(self.at(spot).last_offset + spot.delta), self.now)

    @rule(spot=spots(), start=st.sampled_from((0, 0, 0, 61, -1)))
    def translate_offset(self, spot: BatchPosition, start: int) -> None:
        """Query the position of an offset."""
        self.do("translate_offset", to_long(self.at(spot).base_offset + spot.delta), start)

    @rule(
        spot=spots(),
        size=st.sampled_from((1, 100, 1000, INT_MAX, 0, -1)),
        limit=st.sampled_from((0, 1, 61, -61, LONG_MAX)),
        min_one=st.booleans(),
    )
    def read(self, spot: BatchPosition, size: int, limit: int, min_one: bool) -> None:
        """Read from an offset, up to a position, which may be before the offset."""
        batch = self.at(spot)
        position = limit if limit == LONG_MAX else batch.position + batch.size + limit
        self.do("read_segment", to_long(batch.base_offset + spot.delta), size, position, min_one)

    @rule(spot=spots(), start=spots(), from_base=st.booleans(), body=st.sampled_from((INT_MAX - 8, INT_MAX - 8, 5)))
    def find_offset(self, spot: BatchPosition, start: BatchPosition, from_base: bool, body: int) -> None:
        """Search for a timestamp around the timestamps of a batch."""
        timestamp = to_long(self.at(spot).max_timestamp + spot.delta)
        offset = self.base_offset if from_base else to_long(self.at(start).base_offset + start.delta)
        self.do("find_offset", timestamp, offset, body)

    @rule(
        name=st.sampled_from(
            (
                "read_next_offset",
                "largest_timestamp",
                "collect_from_segment",
                "upper_bound_in_segment",
                "first_batch_timestamp",
                "has_overflow",
                "flush_segment",
            )
        ),
        spot=spots(),
        upper=spots(),
        size=st.sampled_from((0, 100, INT_MAX)),
    )
    def ask(self, name: str, spot: BatchPosition, upper: BatchPosition, size: int) -> None:
        """Execute one of the remaining queries of a segment."""
        batch = self.at(spot)
        arguments: tuple[int, ...] = ()
        if name == "largest_timestamp":
            arguments = (1_000_000 + size,)
        elif name == "collect_from_segment":
            arguments = max(batch.base_offset + spot.delta, 0), max(self.at(upper).last_offset + upper.delta, 0)
        elif name == "upper_bound_in_segment":
            arguments = batch.base_offset, batch.position, size
        self.do(name, *arguments)

    @rule(is_last=st.sampled_from((True, True, False)))
    def recover(self, is_last: bool) -> None:
        """Rebuild the indexes of the open segment; a broker then preallocates the last segment's indexes (SEG-34)."""
        self.do("recover_segment")
        if is_last:
            self.do("resize_indexes", self.settings[1])

    @rule(
        how=st.sampled_from(("close_segment", "close_segment", "crash_segment", "close_handlers")),
        again=st.sampled_from((False, False, False, True)),
        damage=file_damages(),
        exists=st.sampled_from((True, True, True, False)),
        after=st.sampled_from(("check last", "recover last", "last", "recover", "check", "")),
    )
    def reopen(self, how: str, again: bool, damage: list[tuple[str, Operation]], exists: bool, after: str) -> None:
        """Close or crash the segment, corrupt files, and reopen it with the calls of a broker that loads a log."""
        self.do(how)
        if again and how != "crash_segment":
            self.do(how)
        for suffix, operation in damage:
            self.do("damage_segment_file", suffix, operation.name, operation.args)
        self.lockstep.compare_directories()
        is_new = self.lockstep.primary.files[2] is None
        self.open(exists=exists)
        if "recover" in after:
            self.do("recover_segment")
        elif "check" in after:
            self.do("check_segment", is_new)
        if "last" in after:
            self.do("resize_indexes", self.settings[1])

    @rule(then=st.sampled_from(("close_segment", "close_segment", "flush_segment", "delete_segment", "resize_indexes")))
    def lose_directory(self, then: str) -> None:
        """Remove the directory, and make a call that may report the missing file (SEG-24)."""
        self.do("lose_directory")
        self.do(then, *((self.settings[1],) if then == "resize_indexes" else ()))
        self.do("crash_segment")
        self.lockstep.compare_directories()
        self.open(exists=True)

    @rule(
        what=st.sampled_from(("inactive", "inactive", "resize", "resize", ".deleted", ".cleaned", "", "delete")),
        size=sizes(),
    )
    def keep_house(self, what: str, size: int) -> None:
        """Make the segment inactive, resize its indexes, rename it, or delete it, as a log does."""
        if what == "inactive":
            self.do("become_inactive")
        elif what == "resize":
            self.do("resize_indexes", size)
        elif what == "delete":
            self.do("delete_segment")
            self.lockstep.compare_directories()
            self.do("crash_segment")
            self.open(exists=False)
        else:
            self.do("rename_segment", self.suffix, what)
            self.suffix = what
            self.lockstep.compare_directories()

    @invariant()
    def the_log_is_as_long_as_the_segment_says(self) -> None:
        """Check that the file is at least as long as the segment's size, unless another step removed the file."""
        state, log = self.lockstep.primary.observation.state, self.lockstep.primary.files[0]
        if state is not None and log is not None:
            assert state.size <= len(log), state
