"""Vectorized reading of batches: many batches of a window together, from the fields of their headers.

Batches of old formats, corrupt batches, and compressed batches whose record fields are requested are read one by one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.layout import (
    ATTRIBUTE_CODEC,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
)
from kidx.scan import BATCH, RecordColumns
from kidx.scan.batch_headers import walk
from kidx.scan.records import RECORD
from kidx.tables.columns import ROWS
from kidx.tables.record_columns import extend, extend_by_header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kidx.scan.rows import Array
    from kidx.tables.batch_walk import BatchWalk
    from kidx.tables.columns import RowBuffer
    from kidx.tables.predicates import Predicates
    from kidx.tables.splits import Split

_BATCHES: Final = 1 << 12
"""Maximum number of headers that are scanned together."""
_MOST_BY_HEADER: Final = 1 << 16
"""Maximum record count of a compressed batch that is trusted without decompression."""
_SMALLEST_RECORD: Final = 7
"""Minimum number of bytes of a v2 record."""
OF_RECORDS: Final = frozenset({"key", "value", "headers"})
"""Columns that no header contains; a header contains the timestamps if the broker has set them."""


def dense(rows: Array) -> NDArray[np.bool_]:
    """Return True for each v2 batch that has a record for each of its offsets; only compaction removes records."""
    plain = rows["attributes"] & ATTRIBUTE_CODEC == 0
    most = np.where(plain, rows["size"] // _SMALLEST_RECORD, _MOST_BY_HEADER)
    counts = rows["count"]
    dense: NDArray[np.bool_] = (counts == rows["last_offset"] - rows["base_offset"] + 1) & (counts <= most)
    return dense


class VectorizedBatches:
    """A reader that takes several batches at a time from a walk.

    Args:
        walk: the walk over the split.
        split: the split to read.
        predicates: the predicates that the query pushed down.
        buffer: the buffer to fill.
        checked: True to validate checksums.
        committed: True if transactional batches must be read one by one.
        compiled: True if compiled kernels are worth their load time; without them only headers are read.
    """

    def __init__(
        self,
        walk: BatchWalk,
        split: Split,
        predicates: Predicates,
        buffer: RowBuffer,
        *,
        checked: bool,
        committed: bool,
        compiled: bool,
    ) -> None:
        self._walk, self._split, self._predicates, self._buffer = walk, split, predicates, buffer
        self._checked, self._committed, self._compiled = checked, committed, compiled
        self._wants_records = not OF_RECORDS.isdisjoint(buffer.schema.names)
        self._window = b""
        self._found = np.empty(_BATCHES, BATCH)
        self._headers = self._found[:0]
        self._rows = np.empty(ROWS if compiled else 0, RECORD)

    @property
    def is_possible(self) -> bool:
        """True if batches can be taken together: without compiled kernels, records are read batch by batch."""
        return self._compiled or not self._wants_records

    def take(self, position: int) -> Generator[tuple[int, None], None, bool]:
        """Add consecutive batches from a position on, and move the walk past them; yield after rows were added.

        Returns:
            True if the walk was moved.
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
        unbound = self._predicates.min_time is None and self._predicates.max_time is None
        by_header = not self._wants_records and (bool(fixed) or (unbound and "timestamp" not in self._buffer))
        if not (by_header or self._compiled):
            return False
        taken &= dense(headers) if by_header else attributes & ATTRIBUTE_CODEC == 0
        leading = (headers["magic"] == 2) & (taken | skipped)
        if self._split.end_offset is not None:
            leading &= headers["last_offset"] < self._split.end_offset - 1
        run = headers if leading.all() else headers[: int(leading.argmin())]
        wanted = run[~skipped[: len(run)]]
        add = self._by_header if by_header else self._decoded
        number = 0
        while number < len(wanted) and (added := add(wanted[number:], fixed=bool(fixed))):
            number += added
            yield position, None
        if number < len(wanted):
            stop = int(wanted["position"][number])
        else:
            stop = int(run["position"][-1] + run["size"][-1]) if len(run) else 0
        if self._walk.base + stop <= position:
            return False
        self._walk.position = self._walk.base + stop
        return True

    def _from(self, position: int) -> Array:
        """Return the headers of the complete batches in the window from a position on; positions are in the window."""
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
        """Return True for each batch whose header shows that it has no requested record."""
        predicates, stamps, attributes = self._predicates, headers["max_timestamp"], headers["attributes"]
        skipped = (attributes & ATTRIBUTE_CONTROL != 0) & headers["crc_ok"]
        skipped |= (headers["last_offset"] < self._split.first_offset) | (
            headers["base_offset"] >= self._split.stop_offset
        )
        exact = (attributes & ATTRIBUTE_LOG_APPEND_TIME != 0) & headers["crc_ok"]
        if predicates.min_time is not None:
            skipped |= (stamps < predicates.min_time) & exact
        if predicates.max_time is not None:
            skipped |= (stamps > predicates.max_time) & exact
        return skipped  # type: ignore[no-any-return]

    def _bounds(self) -> tuple[int, int]:
        return self._split.first_offset, self._split.stop_offset - 1

    def _by_header(self, headers: Array, *, fixed: bool) -> int:
        """Add records by the headers of some batches; return the number of these batches."""
        first, last = self._bounds()
        number = max(1, int(np.searchsorted(np.cumsum(headers["count"], dtype=np.int64), ROWS)))
        headers = headers[:number]
        firsts = np.maximum(headers["base_offset"], first)
        counts = np.maximum(np.minimum(headers["last_offset"], last) - firsts + 1, 0)
        extend_by_header(self._split.segment, int(fixed), firsts, counts, headers["max_timestamp"], self._buffer)
        return number

    def _decoded(self, headers: Array, *, fixed: bool) -> int:
        """Add decoded records of some batches; return the number of batches, 0 if the first must be read alone."""
        from kidx.scan import record_kernels  # noqa: PLC0415 -- numba takes a second to load

        (first, last), predicates = self._bounds(), self._predicates
        buffer = np.frombuffer(self._window, np.uint8)
        number, filled, _ = record_kernels.read_batches(buffer, headers, 0, self._rows, len(buffer))
        rows = self._rows[:filled]
        there = (rows["offset"] >= first) & (rows["offset"] <= last)
        if predicates.min_time is not None:
            there &= rows["timestamp"] >= predicates.min_time
        if predicates.max_time is not None:
            there &= rows["timestamp"] <= predicates.max_time
        columns = RecordColumns(self._window, rows if there.all() else rows[there])
        extend(self._split.segment, int(fixed), columns, self._buffer)
        return number
