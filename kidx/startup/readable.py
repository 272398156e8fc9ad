"""Records of a log before and after a start, from the batches in its files alone, whatever loads them.

A start loses the difference between two sets of offsets. A batch belongs to a log if its offsets are in the range of
its segment, up to the next segment, and in ascending order with most batches of its file: a batch of another partition
is no record of this log. What an interrupted compaction has rewritten completely, ``.log.swap``, replaces the segments
that it covers; the records that it lacks were removed by the compaction if the topic is compacted. A ``.log.deleted``
whose offsets are too far apart for an index was replaced by a split, which removes no record: what no other file has of
it is still there.
"""

from __future__ import annotations

import contextlib
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kidx.discovery import DELETED, SWAP
from kidx.errors import KidxError
from kidx.java_values import INT_MAX, LONG_MAX
from kidx.log.segments import CLEANED
from kidx.records import file_batches
from kidx.records.record import NO_TIMESTAMP
from kidx.scan.blocks import LogBlocks, hidden_batches
from kidx.startup.views import Shown, shown_by

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_LOG_FILE: Final = re.compile(r"(\d{20})\.log(\.swap|\.cleaned|\.deleted)?", re.ASCII)
_ROW: Final = np.dtype([("first", "i8"), ("end", "i8"), ("records", "i8"), ("position", "i8"), ("after", "i8")])
"""Whole batch: its first offset and the one after its last, its readable records, and its position and end in the file.

A batch that fails its checksum, or has an unknown format, has no readable record.
"""
_LATEST_FORMAT: Final = 2
_COUNTED: Final = 64
"""Maximum number of batches at a time whose records are read: those that count more records than offsets."""


class Piece(NamedTuple):
    """Segment whose batches are in the first bytes of a file."""

    base: int  # base offset of the segment
    path: Path
    size: int  # number of bytes


class Loss(NamedTuple):
    """Part of a log that is lost.

    Attributes:
        records: number of readable records.
        offsets: number of offsets of whole batches, readable or not.
        first, last: first and last of these offsets.
    """

    records: int = 0
    offsets: int = 0
    first: int = -1
    last: int = -1

    def __bool__(self) -> bool:
        return self.offsets > 0

    @property
    def place(self) -> str:
        """The offsets as text."""
        some = "" if self.offsets == self.last - self.first + 1 else f"{self.offsets} of "
        return f"{some}offsets {self.first} to {self.last}" if self.offsets > 1 else f"offset {self.first}"

    def to_json(self) -> dict[str, int | None]:
        """Return an object of ``kidx verify --json``."""
        place = self or (None,) * 4
        return {"records": self.records, "offsets": self.offsets, "first_offset": place[2], "last_offset": place[3]}


NOTHING: Final = Loss()


class _Scan(NamedTuple):
    """Batches of a file, also those after bytes that nobody can pass.

    Attributes:
        rows: the batches, as they lie.
        is_whole: True if the file has only whole batches.
        reached: number of batches that are reached from the beginning.
    """

    rows: Array
    is_whole: bool
    reached: int


def _scan(path: Path) -> _Scan:
    """Return the whole batches of a file, or of the file that it represents in a view; none if it cannot be read."""
    shown = shown_by(path) or Shown(path)
    parts = [np.zeros(0, _ROW)]
    is_whole, reached = False, 0
    with contextlib.suppress(OSError), LogBlocks(shown.source, end=shown.size) as blocks:
        for rows in blocks:
            offsets = np.maximum(rows["last_offset"] - rows["base_offset"], -1) + 1
            part = np.zeros(len(rows), _ROW)
            part["first"], part["end"] = rows["base_offset"], np.minimum(rows["last_offset"], LONG_MAX - 1) + 1
            is_readable = rows["crc_ok"] & (rows["magic"] >= 0) & (rows["magic"] <= _LATEST_FORMAT)
            part["records"] = np.where(rows["count"] >= 0, rows["count"], offsets) * is_readable
            for number in np.flatnonzero((part["records"] > offsets) & is_readable)[:_COUNTED].tolist():
                if not _has_records(shown.source, int(rows["position"][number])):
                    part["records"][number] = 0
            part["position"], part["after"] = rows["position"], rows["position"] + rows["size"]
            if shown.data and (part["position"] == shown.position).any():
                (number,) = np.flatnonzero(part["position"] == shown.position)
                first = int.from_bytes(shown.data, "big", signed=True)
                part["first"][number], part["end"][number] = first, first + offsets[number]
            reached += len(part)
            parts.append(part)
        is_whole = blocks.tail.kind == "whole"
        if blocks.tail.kind in {"partial", "corrupt"}:
            found = hidden_batches(shown.source, blocks.tail.valid_bytes)
            fields = [
                (
                    min(each.base_offset, LONG_MAX),
                    min(each.last_offset, LONG_MAX - 1) + 1,
                    each.records,
                    each.position,
                    each.position + each.size,
                )
                for each in found
                if shown.size is None or each.position + each.size <= shown.size
            ]
            parts.append(np.array(fields, _ROW))
    rows = np.concatenate(parts)
    # A batch whose last offset is too small has all its records nevertheless, up to the next batch.
    following = np.append(rows["first"][1:], LONG_MAX)
    after_records = rows["first"] + np.minimum(rows["records"], LONG_MAX - rows["first"])
    rows["end"] = np.maximum(rows["end"], np.minimum(after_records, following))
    return _Scan(rows, is_whole, reached)


def _has_records(path: Path, position: int) -> bool:
    """Return True if a batch has as many records as it counts."""
    try:
        batch = next(file_batches(path, position))
        return sum(1 for _ in batch) == batch.count
    except (KidxError, OSError, StopIteration):
        return False


def _size(path: Path) -> int:
    shown = shown_by(path)
    if shown is None:
        return path.stat().st_size
    return shown.source.stat().st_size if shown.size is None else shown.size


def records_in(path: Path, size: int) -> int:
    """Return the number of readable records in the first bytes of a ``.log``, wherever reading stops."""
    rows = _scan(path).rows
    return int(rows["records"][rows["after"] <= size].sum())


def largest_timestamp_in(path: Path, size: int) -> int:
    """Return the largest timestamp of the batches in the first bytes of a ``.log``; -1 without one."""
    largest = NO_TIMESTAMP
    with contextlib.suppress(OSError), LogBlocks(path, end=size, checked=False) as blocks:
        for rows in blocks:
            largest = max(largest, int(rows["max_timestamp"].max(initial=NO_TIMESTAMP)))
    return largest


class LoggedRecords:
    """Records in the files of a partition, before a start.

    Args:
        may_shrink: False if the topic is known not to be compacted: then no compaction wrote a segment that replaces
            others, and records that it lacks are lost.

    Attributes:
        may_shrink: see above.
        sizes: size of each ``.log`` in bytes, by base offset.

    Raises:
        OSError: the directory cannot be read.
    """

    def __init__(self, directory: Path, *, may_shrink: bool = True) -> None:
        self.may_shrink = may_shrink
        self._scans: dict[Path, _Scan] = {}
        self._pieces: dict[str, list[Piece]] = {"": [], SWAP: [], CLEANED: [], DELETED: []}
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if (match := _LOG_FILE.fullmatch(entry.name)) and int(match[1]) <= LONG_MAX and entry.is_file():
                    piece = Piece(int(match[1]), path := directory / entry.name, _size(path))
                    self._pieces[match[2] or ""].append(piece)
        self.sizes: Mapping[int, int] = {piece.base: piece.size for piece in self._pieces[""]}
        self._paths = {piece.base: piece.path for piece in self._pieces[""]}

    @cached_property
    def end(self) -> int:
        """Offset after the last whole batch of the log, wherever it lies."""
        last = self._pieces[""][-1:]
        found = [piece.base for piece in last]
        for piece in (*last, *self._pieces[SWAP]):
            found += self._rows(piece, piece.base, LONG_MAX)["end"].tolist()[-1:]
        return max(found, default=0)

    @property
    def readable_end(self) -> int:
        """Offset at which reading the last segment from its beginning stops."""
        for base, path, _ in self._pieces[""][-1:]:
            rows, _, reached = self._scanned(path)
            rows = rows[:reached]
            found: list[int] = _ascending(rows[rows["first"] >= base])["end"].tolist()
            return max([base, *found[-1:]])
        return 0

    @property
    def records(self) -> int:
        """Number of readable records in the files, wherever reading stops."""
        return self.lost([], 0, 0, 0).records

    @property
    def reached(self) -> int:
        """Number of readable records at which a consumer arrives that reads each segment from its beginning."""
        found = (self._scanned(piece.path) for piece in self._pieces[""])
        return sum(int(rows["records"][:reached].sum()) for rows, _, reached in found)

    @property
    def swaps(self) -> list[Path]:
        """The ``.log.swap`` files, which a start renames."""
        return [piece.path for piece in self._pieces[SWAP]]

    @property
    def leftovers(self) -> list[Path]:
        """Files of interrupted compactions that have batches."""
        pieces = [*self._pieces[SWAP], *self._pieces[CLEANED]]
        return [piece.path for piece in pieces if len(self._scanned(piece.path).rows)]

    @property
    def split(self) -> list[Piece]:
        """Segments that a split has replaced."""
        ends = ((piece, self._scanned(piece.path).rows["end"]) for piece in self._pieces[DELETED])
        return [piece for piece, end in ends if len(end) and int(end.max()) - 1 - piece.base > INT_MAX]

    def records_from(self, base: int, position: int) -> int:
        """Return the number of records of a ``.log`` from a position on, in all whole batches with a right checksum.

        A batch without a number of records, of an old format, counts as one for each offset.
        """
        rows = self._scanned(self._paths[base]).rows
        return int(rows["records"][rows["position"] >= position].sum())

    def lost(self, after: Iterable[Piece], log_start: int, start: int, end: int, *, whole: bool = False) -> Loss:
        """Return what is lost if these segments remain.

        Args:
            after: segments after the start.
            log_start: checkpointed start of the log: earlier records were deleted.
            start: start of the log after the start.
            end: end of the log after the start.
            whole: True to count what a compaction removed, too.
        """
        kept = list(_with_ends(sorted(after)))
        unchanged = {(piece, stop) for piece, stop in kept}
        stops = dict(unchanged)
        replaced = self.replaced if self.may_shrink and not whole else set()
        before: list[Array] = []
        for piece, stop in _with_ends(self._pieces[""]):
            is_kept = stops.get(piece, -1) >= stop and start <= max(piece.base, log_start) and stop <= end
            if not is_kept and piece.base not in replaced:
                before.append(self._rows(piece, piece.base, stop))
        others = [*self._pieces[SWAP], *self._pieces[CLEANED], *self.split]
        before += [self._rows(piece, piece.base, LONG_MAX) for piece in others]
        first = log_start if log_start <= self.end else 0
        there = _clipped(np.concatenate([np.zeros(0, _ROW), *before]), first, LONG_MAX)
        if not len(there):
            return NOTHING
        low, high = int(there["first"].min()), int(there["end"].max())
        some = [(piece, stop) for piece, stop in kept if piece.base < high and stop > low]
        rows = [self._rows(piece, piece.base, stop) for piece, stop in some]
        return _difference(there, _clipped(np.concatenate([np.zeros(0, _ROW), *rows]), start, end))

    @property
    def replaced(self) -> set[int]:
        """Base offsets of the segments that a compaction has rewritten."""
        replaced = set()
        for piece in self._pieces[SWAP]:
            found = self._scanned(piece.path)
            if found.is_whole:
                end = max([piece.base + 1, *found.rows["end"].tolist()[-1:]])
                replaced |= {base for base in self.sizes if piece.base <= base < end}
        return replaced

    def _scanned(self, path: Path) -> _Scan:
        if path not in self._scans:
            self._scans[path] = _scan(path)
        return self._scans[path]

    def _rows(self, piece: Piece, first: int, end: int) -> Array:
        """Return the batches of a segment that have offsets from ``first`` to ``end``, in ascending order."""
        rows = self._scanned(piece.path).rows
        rows = rows[(rows["after"] <= piece.size) & (rows["first"] >= first) & (rows["first"] < rows["end"])]
        return _clipped(_ascending(rows), first, end)


def _with_ends(pieces: Sequence[Piece]) -> Iterable[tuple[Piece, int]]:
    """Yield each segment with the offset at which the next one begins."""
    return zip(pieces, [*(piece.base for piece in pieces[1:]), LONG_MAX], strict=False)


def _clipped(rows: Array, first: int, end: int) -> Array:
    """Return the parts of batches that are in a range of offsets."""
    rows = rows[(rows["end"] > first) & (rows["first"] < end)]
    rows["first"], rows["end"] = np.maximum(rows["first"], first), np.minimum(rows["end"], end)
    rows["records"] = np.minimum(rows["records"], rows["end"] - rows["first"])
    return rows


def _ascending(rows: Array) -> Array:
    """Return the longest sequence of batches whose first offsets ascend: batches out of order are of no use."""
    if (rows["first"][1:] >= rows["end"][:-1]).all():
        return rows
    lowest: list[int] = []  # for each length, the smallest offset with which a sequence of that length ends
    places: list[int] = []
    before = np.full(len(rows), -1)
    for number, first in enumerate(rows["first"].tolist()):
        length = bisect_left(lowest, first)
        lowest[length : length + 1], places[length : length + 1] = [first], [number]
        before[number] = places[length - 1] if length else -1
    chosen, number = [], places[-1]
    while number >= 0:
        chosen.append(number)
        number = int(before[number])
    return rows[chosen[::-1]]


def _difference(before: Array, after: Array) -> Loss:
    """Return the offsets of some batches that others do not have."""
    lost: list[tuple[int, int]] = []
    kept = iter(_merged(after))
    first, end = next(kept, (LONG_MAX, LONG_MAX))
    for low, high in _merged(before):
        while low < high:
            while end <= low:
                first, end = next(kept, (LONG_MAX, LONG_MAX))
            if first > low:
                lost.append((low, min(first, high)))
            low = min(end, high)  # noqa: PLW2901 -- the rest of the range
    if not lost:
        return NOTHING
    starts, stops = np.array(lost, "i8").T
    lengths = np.concatenate([[0], np.cumsum(stops - starts)])

    def covered(offsets: Array) -> Array:
        """Return the number of lost offsets below each offset."""
        place = np.searchsorted(starts, offsets, "right")
        last = np.maximum(place - 1, 0)
        inside = np.minimum(offsets, stops[last]) - starts[last]
        return np.where(place > 0, lengths[last] + inside, 0)

    rows = np.sort(before[before["records"] > 0], order="first")
    begin = rows["first"].copy()
    begin[1:] = np.maximum(begin[1:], np.maximum.accumulate(rows["end"])[:-1])  # an offset counts once
    offsets = np.maximum(covered(rows["end"]) - covered(np.minimum(begin, rows["end"])), 0)
    records = int(np.minimum(rows["records"], offsets).sum())
    return Loss(records, int(lengths[-1]), lost[0][0], lost[-1][1] - 1)


def _merged(rows: Array) -> Iterable[tuple[int, int]]:
    """Yield the ranges of offsets that batches cover, in order."""
    if not len(rows):
        return
    rows = np.sort(rows, order="first")
    reached = np.maximum.accumulate(rows["end"])
    breaks = np.flatnonzero(rows["first"][1:] > reached[:-1]) + 1
    starts, stops = [0, *breaks.tolist()], [*breaks.tolist(), len(rows)]
    for start, stop in zip(starts, stops, strict=True):
        yield int(rows["first"][start]), int(reached[stop - 1])
