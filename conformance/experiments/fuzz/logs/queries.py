"""Results of queries to a log, computed from its batches and index entries (``kidx.segment.reader``)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from conformance.experiments.fuzz.seed_files import BASE_OFFSET
from kidx.java_numbers import INT_MAX, to_int, to_long

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.experiments.fuzz.logs.known_batches import KnownBatch
    from conformance.experiments.fuzz.logs.recovery import Offsets, Times
    from kidx.dialect import Dialect
    from kidx.errors import KidxError


class ReadableLog(NamedTuple):
    """Log that can be queried.

    Attributes:
        batches: All batches.
        end: The error at the end of the batches, or None.
        size: The size of the file in bytes.
        offset_index: The entries of the offset index.
        time_index: The entries of the time index.
        dialect: The dialect of a release.
    """

    batches: Sequence[KnownBatch]
    end: KidxError | None
    size: int
    offset_index: Offsets
    time_index: Times
    dialect: Dialect

    def _from(self, position: int) -> Iterator[KnownBatch]:
        """Yield all batches from the batch at a position on.

        Raises:
            KidxError: The error at the end of the batches.
        """
        first = bisect_left(self.batches, position, key=_position) if position else 0
        yield from self.batches[first:]
        if self.end is not None:
            raise self.end.with_traceback(None)

    def _search(self, target: int) -> tuple[int, int, int] | None:
        """Return offset, position and size for an offset, as ``translate_offset`` does, or None."""
        start = self.offset_index.position(target)
        if self.dialect.searches_by_base_offset:
            return self._search_by_base_offset(target, start)
        for batch in self._from(start):
            last = batch.last_offset
            if last >= target:
                alike = batch.magic >= 2 and batch.base_offset == last
                base = not alike and self.dialect.translates_to_base_offset
                return batch.base_offset if base else last, batch.position, batch.size
        return None

    def _search_by_base_offset(self, target: int, start: int) -> tuple[int, int, int] | None:
        previous: KnownBatch | None = None
        for batch in self._from(start):
            base = batch.base_offset
            if base == target:
                return base, batch.position, batch.size
            if base > target:
                found = batch if previous is None or previous.last_offset < target else previous
                return found.base_offset, found.position, found.size
            previous = batch
        if previous is not None and previous.last_offset >= target:
            return previous.base_offset, previous.position, previous.size
        return None

    def translate_offset(self, offset: int, _start: int) -> tuple[int, ...] | None:
        """Translate an offset, from the beginning of the file; see the operation."""
        return self._search(offset)

    def read_segment(
        self, offset: int, max_size: int, max_position: int, min_one_message: bool
    ) -> tuple[int, ...] | None:
        """Read from an offset; see the operation."""
        found = self._search(offset)
        if found is None:
            return None
        first, position, size = found
        adjusted = max(max_size, size) if min_one_message else max_size
        available = min(to_int(max_position - position), adjusted, self.size - position)
        return first if self.dialect.translates_to_base_offset else offset, position, available, adjusted < size

    def find_offset(self, timestamp: int, starting_offset: int, _body_size: int) -> tuple[int, ...] | None:
        """Find the offset of a timestamp; see the operation."""
        entry = self.time_index.offset(timestamp)
        for batch in self._from(self.offset_index.position(max(entry, starting_offset))):
            if batch.max_timestamp < timestamp:
                continue
            stamp = batch.first_record(timestamp, starting_offset)
            if stamp is not None:
                return stamp.timestamp, stamp.offset, batch.batch.partition_leader_epoch
        return None

    def read_next_offset(self) -> int:
        """Return the next offset; see the operation."""
        if self._search(*self.offset_index.last) is None:
            return BASE_OFFSET
        if self.end is not None:
            raise self.end.with_traceback(None)
        return to_long(self.batches[-1].last_offset + 1)

    def has_overflow(self) -> bool:
        """Return True if an offset overflows; see the operation."""
        following = self.read_next_offset()
        return following > BASE_OFFSET and not 0 <= to_long(to_long(following - 1) - BASE_OFFSET) <= INT_MAX


def _position(batch: KnownBatch) -> int:
    return batch.position
