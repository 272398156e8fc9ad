"""The segments of a log by their base offsets, and the files of those that have been removed (``LogSegments``)."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kidx.segment import LogSegment

DELETED: Final = ".deleted"
"""What Kafka renames the files of a removed segment to before it deletes them."""
CLEANED: Final = ".cleaned"
"""What the files of a segment are called while the cleaner writes them."""
SWAP: Final = ".swap"
"""What they are called until those that they replace are gone."""


class Segments:
    """An ordered map from base offset to segment; the last one is the active one."""

    def __init__(self) -> None:
        self._by_base: dict[int, LogSegment] = {}
        self._bases: list[int] = []
        self._ordered: list[LogSegment] | None = None
        self._removed: list[LogSegment] = []
        self._replaced: list[LogSegment] = []

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        if self._ordered is None:
            self._ordered = [self._by_base[base] for base in self._bases]
        return iter(self._ordered)

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_base

    @property
    def first(self) -> LogSegment:
        """The one with the smallest base offset."""
        return self._by_base[self._bases[0]]

    @property
    def active(self) -> LogSegment:
        """The one that is appended to."""
        return self._by_base[self._bases[-1]]

    def add(self, segment: LogSegment) -> None:
        """Adds a segment, in the place of the one with the same base offset."""
        if segment.base_offset not in self._by_base:
            insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment
        self._ordered = None

    def higher(self, base_offset: int) -> LogSegment | None:
        """The first segment behind a base offset."""
        at = bisect_right(self._bases, base_offset)
        return self._by_base[self._bases[at]] if at < len(self._bases) else None

    def values_from(self, offset: int) -> list[LogSegment]:
        """The segment that ``offset`` lies in, and all behind it."""
        at = max(0, bisect_right(self._bases, offset) - 1)
        return [self._by_base[base] for base in self._bases[at:]]

    def floor(self, offset: int) -> LogSegment | None:
        """The segment that ``offset`` lies in; None if that is before all of them."""
        at = bisect_right(self._bases, offset)
        return self._by_base[self._bases[at - 1]] if at else None

    def values_between(self, start: int, end: int) -> list[LogSegment]:
        """The segments that hold offsets from ``start`` up to, but without, ``end``."""
        return [segment for segment in self.values_from(start) if segment.base_offset < end]

    @property
    def last_two_bases(self) -> list[int]:
        """The base offsets of the last two segments, or of as many as there are."""
        return self._bases[-2:]

    def clear(self) -> None:
        """Forgets all segments and leaves their files alone."""
        self._by_base.clear()
        self._bases.clear()
        self._ordered = None

    def retire(self, segments: Iterable[LogSegment]) -> None:
        """Takes segments out and renames their files; :meth:`delete_retired` deletes them.

        Raises:
            OSError: a file cannot be renamed.
        """
        chosen = list(segments)
        for segment in chosen:
            if self._by_base.get(segment.base_offset) is segment:
                del self._by_base[segment.base_offset]
                self._bases.remove(segment.base_offset)
        self._ordered = None
        for segment in chosen:
            if not segment.has_suffix(DELETED):
                segment.change_file_suffixes("", DELETED)
        self._removed += chosen

    def retire_replaced(self, old: LogSegment, new: LogSegment) -> None:
        """Renames the files of a segment whose records are in ``new``, which has been added.

        Raises:
            OSError: a file cannot be renamed.
        """
        if old.base_offset != new.base_offset:
            self.retire([old])
            return
        if not old.has_suffix(DELETED):
            old.change_file_suffixes("", DELETED)
        self._replaced.append(old)

    def delete_retired(self) -> list[LogSegment]:
        """Deletes the files of retired segments, as Kafka does after ``file.delete.delay.ms``.

        Returns:
            Those that no other segment has replaced.
        """
        removed, self._removed = self._removed, []
        replaced, self._replaced = self._replaced, []
        for segment in (*replaced, *removed):
            segment.delete_if_exists()
        return removed
