"""A task over logs: the batches of its pieces, and their records as a consumer would get them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kidx.errors import KidxError, ToolError
from kidx.java_numbers import LONG_MAX, LONG_MIN
from kidx.records.errors import CorruptRecordError
from kidx.scan import decode_batch
from kidx.scan.compiled import worth_compiling
from kidx.tables.columns import RowBuffer, to_microseconds
from kidx.tables.extending import extend, headers_of
from kidx.tables.isolation import AbortedFilter, aborted_transactions
from kidx.tables.runs import Runs
from kidx.tables.walking import BatchWalk

if TYPE_CHECKING:
    import pyarrow as pa

    from kidx.records import RecordBatch
    from kidx.scan import RecordColumns
    from kidx.tables.conditions import Conditions
    from kidx.tables.indexes import Counter
    from kidx.tables.options import Isolation
    from kidx.tables.splits import Piece
    from kidx.tables.storage import RangeReader

_logger: Final = logging.getLogger("kidx.spark")
_NEVER: Final = 1 << 63


@dataclass(frozen=True)
class Reading:
    """How pieces are read; picklable.

    Attributes:
        conditions: that the query pushed down.
        fail_on_data_loss: fail at a damaged batch, or leave out what cannot be read from there on.
        check_crcs: whether a wrong checksum is damage.
        isolation: which records are hidden.
    """

    conditions: Conditions
    fail_on_data_loss: bool = True
    check_crcs: bool = True
    isolation: Isolation = "read_uncommitted"

    def records(self, piece: Piece, buffer: RowBuffer, counter: Counter) -> Iterator[pa.RecordBatch]:
        """The records of a piece, as rows of ``content=records``.

        Raises:
            ToolError: the segment is damaged, and that is to fail.
        """
        try:
            aborted = self._aborted(piece, counter)
            compiled = worth_compiling(counter.log_bytes + piece.end - piece.start)
            for position, batch in self._batches(piece, counter, buffer, compiled=compiled):
                if batch is not None and not batch.is_control and not aborted.hides(batch):
                    try:
                        yield from self._add(piece, batch, buffer, compiled=compiled)
                    except KidxError as error:
                        raise _Damage(position, error) from error
                if buffer.is_full:
                    yield from buffer.flush()
        except (_Damage, OSError) as error:
            damage = f"{piece.segment.name}{error}" if isinstance(error, _Damage) else f"{piece.segment.name}: {error}"
            if self.fail_on_data_loss:
                hint = "failOnDataLoss=false reads on with the next segment"
                raise ToolError(f"{damage} ({hint})") from error
            _logger.warning("data loss: %s", damage)

    def _aborted(self, piece: Piece, counter: Counter) -> AbortedFilter:
        if self.isolation == "read_uncommitted":
            return AbortedFilter(())
        behind = piece.segment.next_base_offset
        ends = [end for end in (piece.end_offset, behind) if end is not None]
        found = aborted_transactions(piece.later, piece.segment.base_offset, min(ends, default=_NEVER), counter)
        return AbortedFilter(found)

    def _add(self, piece: Piece, batch: RecordBatch, buffer: RowBuffer, *, compiled: bool) -> Iterator[pa.RecordBatch]:
        """Adds the records of a batch; gives what the buffer holds whenever it is full of those of a large one."""
        if self.check_crcs:
            batch.ensure_valid()
        segment, kind, bounds = piece.segment, int(batch.timestamp_type), self.conditions
        first, last = piece.first_offset, LONG_MAX if piece.end_offset is None else piece.end_offset - 1
        least = LONG_MIN if bounds.least_time is None else bounds.least_time
        largest = LONG_MAX if bounds.largest_time is None else bounds.largest_time
        if compiled and (columns := _columns_of(batch)) is not None:
            offsets, times = columns.rows["offset"], columns.rows["timestamp"]
            there = (offsets >= first) & (offsets <= last) & (times >= least) & (times <= largest)
            extend(segment, kind, columns._replace(rows=columns.rows[there]), buffer)
            return
        for record in batch:
            if not (first <= record.offset <= last and least <= record.timestamp <= largest):
                continue
            key, value = record.key, record.value
            row = {
                "key": key,
                "value": value,
                "topic": segment.topic,
                "partition": segment.partition,
                "offset": record.offset,
                "timestamp": to_microseconds(record.timestamp),
                "timestampType": kind,
                "headers": headers_of(record.headers),
            }
            if buffer.is_full:
                yield from buffer.flush()
            buffer.add(row, len(key or b"") + len(value or b""))

    def _batches(
        self, piece: Piece, counter: Counter, buffer: RowBuffer, *, compiled: bool
    ) -> Iterator[tuple[int, RecordBatch | None]]:
        """The batches of a piece that can hold wanted records; None where the buffer was given those of many at once.

        Raises:
            _Damage: what comes next is no batch.
        """
        segment = piece.segment

        def wanted(batch: RecordBatch) -> bool:
            return (
                batch.last_offset >= piece.first_offset
                and (piece.end_offset is None or batch.base_offset < piece.end_offset)
                and self.conditions.admits_batch(batch)
            )

        with segment.store.open(segment.file("log")) as reader:
            try:
                hard_end = piece.end if piece.exact_end else max(segment.size, piece.end)
                walk = BatchWalk(reader, piece.start, piece.end, hard_end, source=segment.name, wanted=wanted)
                committed = self.isolation == "read_committed"
                runs = Runs(
                    walk,
                    piece,
                    self.conditions,
                    buffer,
                    checked=self.check_crcs,
                    committed=committed,
                    compiled=compiled,
                )
                try:
                    for position, batch, is_wanted in walk:
                        if position == piece.start > 0 and _begins_too_late(piece, batch):
                            # The offset index leads behind what it should find, or into the middle of something.
                            again = replace(piece, start=0, end=hard_end)
                            yield from self._batches(again, counter, buffer, compiled=compiled)
                            return
                        if is_wanted and runs.are_any and (yield from runs.take(position)):
                            continue
                        if is_wanted and (batch.magic >= 2 or wanted(batch)):
                            yield position, batch
                        if piece.end_offset is not None and batch.last_offset >= piece.end_offset - 1:
                            return
                except (KidxError, CorruptRecordError) as error:
                    if segment.is_last and _is_zero(reader, walk.position):
                        return  # a log that is written to, at full size beforehand
                    raise _Damage(walk.position, error) from error
                if walk.position < hard_end and (piece.exact_end or not segment.is_last):
                    raise _Damage(walk.position, f"no whole batch in the {hard_end - walk.position} bytes that follow")
            finally:
                counter.log_bytes += reader.bytes_read


class _Damage(Exception):  # noqa: N818 -- never leaves this module
    """A place in a log, and what is wrong with it."""

    def __init__(self, position: int, problem: object) -> None:
        super().__init__(f" at byte {position}: {problem}")


def _begins_too_late(piece: Piece, batch: RecordBatch) -> bool:
    """Whether a place from the offset index cannot be right, as the first batch there is behind the offset sought."""
    try:
        return batch.base_offset > piece.first_offset and not piece.is_continuation
    except KidxError:
        return True


def _is_zero(reader: RangeReader, position: int) -> bool:
    return not any(reader.read(position, 1 << 12))


def _columns_of(batch: RecordBatch) -> RecordColumns | None:
    """The records, unless the batch is damaged or old: then the reference gives what can be read, and says more."""
    try:
        return decode_batch(batch)
    except KidxError:
        return None
