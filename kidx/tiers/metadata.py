"""Metadata of the remote segments of one partition, in memory (``RemoteLogMetadataCache``).

A broker reads them from the topic ``__remote_log_metadata``. Here each event takes effect immediately.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from kidx.remote import RemoteSegment, RemoteStorageError

COPY_STARTED: Final = 0
COPY_FINISHED: Final = 1
DELETE_STARTED: Final = 2
DELETE_FINISHED: Final = 3
State = Literal[0, 1, 2, 3]
"""States of a remote segment, with the numbers of ``RemoteLogSegmentState``."""


@dataclass(eq=False)
class CopiedSegment:
    """Remote segment, with the files that were copied.

    Attributes:
        number: number of the segment in the order of copying; also its id.
        start_offset, end_offset: first and last offset, both inclusive.
        max_timestamp: largest timestamp, or else the time of the last write to the log, in milliseconds.
        epochs: start offset of each leader epoch within the segment, oldest first.
        has_no_transactions: True if the transaction index is known to be empty (from 4.0).
        size: bytes of the log.
        files: content of each file by its suffix.
    """

    number: int
    start_offset: int
    end_offset: int
    max_timestamp: int
    epochs: Mapping[int, int]
    has_no_transactions: bool
    size: int
    state: State = COPY_STARTED
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> bytes:
        """Id of the segment, sixteen bytes."""
        return self.number.to_bytes(16)

    @property
    def cached(self) -> RemoteSegment:
        """Segment as the cache of remote index files names it."""
        return RemoteSegment(self.start_offset, self.id)

    def end_of(self, epoch: int) -> int:
        """Return the last offset of a leader epoch within the segment."""
        later = [start for other, start in self.epochs.items() if other > epoch]
        return later[0] - 1 if later else self.end_offset


class _EpochSegments:
    """Remote segments with records of one leader epoch.

    Attributes:
        referenced: the segments that a lookup finds, by the first offset of the epoch in each.
        unreferenced: the other segments, by number: those whose copy or deletion has started, and those that a segment
            copied later covers.
        highest_offset: highest offset of the epoch that was ever copied, or None.
    """

    def __init__(self) -> None:
        self.referenced: dict[int, CopiedSegment] = {}
        self.unreferenced: dict[int, CopiedSegment] = {}
        self.highest_offset: int | None = None

    def finish(self, start_offset: int, segment: CopiedSegment, end_offset: int) -> None:
        """Add a copied segment; segments that it covers are no longer referenced (TL-3)."""
        while self.referenced:
            last = max(self.referenced)
            if last < start_offset or (self.highest_offset is not None and self.highest_offset > end_offset):
                break
            covered = self.referenced.pop(last)
            self.unreferenced[covered.number] = covered
        self.referenced[start_offset] = segment
        self.unreferenced.pop(segment.number, None)
        self.highest_offset = end_offset if self.highest_offset is None else max(self.highest_offset, end_offset)

    def find(self, epoch: int, offset: int) -> CopiedSegment | None:
        """Return the referenced segment with an offset of the leader epoch, or None."""
        starts = [start for start in self.referenced if start <= offset]
        segment = self.referenced[max(starts)] if starts else None
        return None if segment is None or offset > segment.end_of(epoch) else segment

    def segments(self) -> list[CopiedSegment]:
        """Return all segments by start offset; of the same start offset, the referenced one is first."""
        ordered = [self.referenced[start] for start in sorted(self.referenced)]
        if not self.unreferenced:
            return ordered
        ordered += [self.unreferenced[number] for number in sorted(self.unreferenced)]
        return sorted(ordered, key=lambda segment: segment.start_offset)


class RemoteMetadata:
    """Metadata of all remote segments of one partition, until they are deleted.

    Attributes:
        segments: the segments that are not deleted, by number.
        failing: the operations of storage that fail: ``"copy"``, ``"fetch"`` or ``"delete"``.
    """

    def __init__(self) -> None:
        self.segments: dict[int, CopiedSegment] = {}
        self.failing: frozenset[str] = frozenset()
        self._epochs: dict[int, _EpochSegments] = {}
        self._next = 0

    def new_number(self) -> int:
        """Return the number of the next segment."""
        self._next += 1
        return self._next - 1

    def require(self, operation: str) -> None:
        """Check that an operation of storage does not fail.

        Raises:
            RemoteStorageError: it fails.
        """
        if operation in self.failing:
            raise RemoteStorageError("storage fails")

    def delete(self, segment: CopiedSegment) -> None:
        """Delete a segment in storage, and then its metadata.

        Raises:
            RemoteStorageError: storage fails; the deletion remains started.
        """
        self.update(segment, DELETE_STARTED)
        self.delete_files(segment)
        self.update(segment, DELETE_FINISHED)

    def delete_files(self, segment: CopiedSegment) -> None:
        """Delete the files of a segment, but not its metadata.

        Raises:
            RemoteStorageError: storage fails.
        """
        self.require("delete")
        segment.files = {}

    def of_epoch(self, epoch: int) -> list[CopiedSegment]:
        """Return the segments with records of a leader epoch, by start offset."""
        known = self._epochs.get(epoch)
        return [] if known is None else known.segments()

    def find(self, epoch: int, offset: int) -> CopiedSegment | None:
        """Return the referenced segment with an offset of a leader epoch, or None."""
        known = self._epochs.get(epoch)
        return None if known is None else known.find(epoch, offset)

    def highest_offset(self, epoch: int) -> int | None:
        """Return the highest offset of a leader epoch that was ever copied, or None (TL-4)."""
        known = self._epochs.get(epoch)
        return None if known is None else known.highest_offset

    def add(self, segment: CopiedSegment) -> None:
        """Add a segment whose copy starts."""
        self.segments[segment.number] = segment
        for epoch in segment.epochs:
            self._epochs.setdefault(epoch, _EpochSegments()).unreferenced[segment.number] = segment

    def update(self, segment: CopiedSegment, state: State) -> None:
        """Change the state of a segment."""
        segment.state = state
        for epoch, start in segment.epochs.items():
            known = self._epochs.setdefault(epoch, _EpochSegments())
            if state == COPY_FINISHED:
                known.finish(start, segment, segment.end_of(epoch))
            elif state == DELETE_STARTED:
                if known.referenced.get(start) is segment:
                    del known.referenced[start]
                known.unreferenced[segment.number] = segment
            elif state == DELETE_FINISHED:
                known.unreferenced.pop(segment.number, None)
        if state == DELETE_FINISHED:
            self.segments.pop(segment.number, None)
