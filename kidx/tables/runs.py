"""Many batches of a window at once: those that a walk over their headers says all about, which most logs consist of.

Batches of old formats, damaged ones, and compressed ones whose records are wanted are left to be read one by one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.java_numbers import LONG_MAX
from kidx.records.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
)
from kidx.scan import BATCH, RecordColumns
from kidx.scan.records import RECORD
from kidx.scan.walk import walk
from kidx.tables.columns import ROWS
from kidx.tables.extending import extend, extend_by_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kidx.scan.rows import Array
    from kidx.tables.columns import RowBuffer
    from kidx.tables.conditions import Conditions
    from kidx.tables.splits import Piece
    from kidx.tables.walking import BatchWalk

_BATCHES: Final = 1 << 12
"""Headers looked at together."""
_MOST_BY_HEADER: Final = 1 << 16
"""Records of a compressed batch whose number is believed without looking."""
_SMALLEST_RECORD: Final = 7
OF_RECORDS: Final = frozenset({"key", "value", "headers"})
"""Columns that no header tells; it tells timestamps where the broker has set them."""


def dense(rows: Array) -> NDArray[np.bool_]:
    """Which v2 batches have a record for each of their offsets, as every batch has that was never compacted."""
    plain = rows["attributes"] & ATTRIBUTE_CODEC == 0
    most = np.where(plain, rows["size"] // _SMALLEST_RECORD, _MOST_BY_HEADER)
    counts = rows["count"]
    dense: NDArray[np.bool_] = (counts == rows["last_offset"] - rows["base_offset"] + 1) & (counts <= most)
    return dense


class Runs:
    """Takes runs of batches off a walk.

    Args:
        walk: over the piece.
        piece: that is read.
        conditions: that the query pushed down.
        buffer: to be filled.
        checked: whether checksums are looked at.
        committed: whether transactional batches are to be looked at one by one.
        compiled: whether kernels are worth their loading; without them only headers are read.
    """

    def __init__(
        self,
        walk: BatchWalk,
        piece: Piece,
        conditions: Conditions,
        buffer: RowBuffer,
        *,
        checked: bool,
        committed: bool,
        compiled: bool,
    ) -> None:
        self._walk, self._piece, self._conditions, self._buffer = walk, piece, conditions, buffer
        self._checked, self._committed, self._compiled = checked, committed, compiled
        self._wants_records = not OF_RECORDS.isdisjoint(buffer.schema.names)
        self._window = b""
        self._found = np.empty(_BATCHES, BATCH)
        self._headers = self._found[:0]
        self._rows = np.empty(ROWS if compiled else 0, RECORD)

    @property
    def are_any(self) -> bool:
        """Whether there can be runs; without kernels, records are read from each batch by itself."""
        return self._compiled or not self._wants_records

    def take(self, position: int) -> Generator[tuple[int, None], None, bool]:
        """Adds what can be added from a position on, and moves the walk behind it; stops after some rows.

        Returns:
            Whether it has moved the walk.
        """
        headers = self._from(position)
        if not len(headers):
            return False
        attributes = headers["attributes"]
        fixed = attributes[0] & ATTRIBUTE_LOG_APPEND_TIME
        skipped = self._skipped(headers)
        taken = headers["crc_ok"] & (attributes & ATTRIBUTE_LOG_APPEND_TIME == fixed) & (headers["count"] >= 0)
        if self._committed:
            taken &= attributes & ATTRIBUTE_TRANSACTIONAL == 0
        unbound = self._conditions.least_time is None and self._conditions.largest_time is None
        by_header = unbound and not self._wants_records and (bool(fixed) or "timestamp" not in self._buffer)
        if not (by_header or self._compiled):
            return False
        taken &= dense(headers) if by_header else attributes & ATTRIBUTE_CODEC == 0
        going = (headers["magic"] == 2) & (taken | skipped)
        if self._piece.end_offset is not None:
            going &= headers["last_offset"] < self._piece.end_offset - 1
        run = headers if going.all() else headers[: int(going.argmin())]
        wanted = run[~skipped[: len(run)]]
        add = self._by_header if by_header else self._decoded
        number = 0
        while number < len(wanted) and (added := add(wanted[number:], fixed=bool(fixed))):
            number += added
            yield position, None
        if number < len(wanted):
            behind = int(wanted["position"][number])
        else:
            behind = int(run["position"][-1] + run["size"][-1]) if len(run) else 0
        if self._walk.base + behind <= position:
            return False
        self._walk.position = self._walk.base + behind
        return True

    def _from(self, position: int) -> Array:
        """The headers from a position on that the window has whole batches of; their positions count in the window."""
        walked, start = self._walk, position - self._walk.base
        if walked.window is not self._window or not len(self._headers) or start > self._headers["position"][-1]:
            self._window = walked.window
            buffer = np.frombuffer(self._window, np.uint8)
            end = walked.hard_end - walked.base
            filled = min(len(buffer), end)
            found = walk(
                buffer, filled, self._found, start=start, file_end=end, checked=self._checked, compiled=self._compiled
            )
            self._headers = self._found[: found.rows]
        return self._headers[int(np.searchsorted(self._headers["position"], start)) :]

    def _skipped(self, headers: Array) -> NDArray[np.bool_]:
        """Which batches have no wanted record, by their headers."""
        conditions, stamps, attributes = self._conditions, headers["max_timestamp"], headers["attributes"]
        skipped = (attributes & ATTRIBUTE_CONTROL != 0) | (headers["last_offset"] < self._piece.first_offset)
        if conditions.least_time is not None:
            skipped |= stamps < conditions.least_time
        if conditions.largest_time is not None:
            sure = (headers["count"] == 1) | (attributes & ATTRIBUTE_LOG_APPEND_TIME != 0)
            skipped |= (stamps > conditions.largest_time) & sure
        return skipped  # type: ignore[no-any-return]

    def _bounds(self) -> tuple[int, int]:
        piece = self._piece
        return piece.first_offset, LONG_MAX if piece.end_offset is None else piece.end_offset - 1

    def _by_header(self, headers: Array, *, fixed: bool) -> int:
        """Adds records of some batches, and says of how many."""
        first, last = self._bounds()
        number = max(1, int(np.searchsorted(np.cumsum(headers["count"], dtype=np.int64), ROWS)))
        headers = headers[:number]
        firsts = np.maximum(headers["base_offset"], first)
        counts = np.maximum(np.minimum(headers["last_offset"], last) - firsts + 1, 0)
        extend_by_header(self._piece.segment, int(fixed), firsts, counts, headers["max_timestamp"], self._buffer)
        return number

    def _decoded(self, headers: Array, *, fixed: bool) -> int:
        """As :meth:`_by_header`, of records that are decoded; 0 if the first batch is to be looked at by itself."""
        from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

        (first, last), conditions = self._bounds(), self._conditions
        buffer = np.frombuffer(self._window, np.uint8)
        number, filled, _ = record_kernels.read_batches(buffer, headers, 0, self._rows, len(buffer))
        rows = self._rows[:filled]
        there = (rows["offset"] >= first) & (rows["offset"] <= last)
        if conditions.least_time is not None:
            there &= rows["timestamp"] >= conditions.least_time
        if conditions.largest_time is not None:
            there &= rows["timestamp"] <= conditions.largest_time
        columns = RecordColumns(self._window, rows if there.all() else rows[there])
        extend(self._piece.segment, int(fixed), columns, self._buffer)
        return number
