"""Tasks that a broker runs for one tiered log (``RemoteLogManager``; clauses TL)."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kidx.discovery import SEGMENT_SUFFIXES
from kidx.errors import InvalidArgumentError
from kidx.log import OffsetOutOfRangeError
from kidx.log.epochs import FILE_NAME, checkpoint_text
from kidx.producers import SNAPSHOT_SUFFIX, snapshot_name
from kidx.remote import RemoteStorageError
from kidx.segment import file_name
from kidx.tiers.metadata import COPY_FINISHED, COPY_STARTED, DELETE_STARTED, CopiedSegment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kidx.segment import LogSegment
    from kidx.tiers.tiered_log import TieredLog

_COUNTED: Final = {
    "all": {COPY_STARTED, COPY_FINISHED, DELETE_STARTED},
    "complete": {COPY_FINISHED, DELETE_STARTED},
}
"""States of the segments whose size counts, by the size that a release computes; of others only copied segments do."""


class Expiration:
    """Expiration task of one leader.

    The task takes each segment that age or size selects off the surplus, the bytes above ``retention.bytes`` that
    are still to be deleted. Therefore :meth:`is_too_old` and :meth:`is_surplus` must be called once per segment.
    """

    def __init__(self, log: TieredLog) -> None:
        self.log = log
        self._all_valid = False  # True if the last run found that all counted segments belong to the log
        self._surplus = 0  # bytes above retention.bytes, without the segments selected so far

    def run(self) -> None:
        """Delete remote segments below the log start, past an age, or above a total size, oldest first.

        The log start moves to the end of the newest segment that age or size selects, before anything is deleted.

        Raises:
            OffsetOutOfRangeError: the new log start is above the high watermark; nothing is deleted.
            RemoteStorageError: storage fails; the deletion of the first segment remains started.
            InvalidArgumentError: ``retention.ms`` is longer than the time since 1970 (up to 3.9.0).
        """
        log = self.log
        everything = list(log.remote.segments.values())
        if not everything:
            return
        if log.highest_remote_offset == -1 and log.dialect.expiration_finds_highest_offset:
            log.highest_remote_offset = max(-1, log.highest_copied_offset())
        lineage = log.lookup.lineage()
        self._surplus = self.surplus(everything, lineage)
        if log.dialect.rejects_age_before_1970 and log.clock() < log.config.retention_ms:
            raise InvalidArgumentError("cleanupUntilMs must be non-negative")
        selected, new_start = self._selected(lineage)
        epochs = {epoch for segment in everything for epoch in segment.epochs}
        if not log.dialect.expires_older_epochs_last:
            self._delete_older_epochs(epochs)
        if new_start is not None:
            log.delete_records(new_start)
        for segment in selected:
            log.remote.delete(segment)
        if log.dialect.expires_older_epochs_last:
            self._delete_older_epochs(epochs)

    def _selected(self, lineage: dict[int, int]) -> tuple[list[CopiedSegment], int | None]:
        """Return the segments to delete, and the log start after it or None."""
        log_start = self.log.start_offset
        selected: list[CopiedSegment] = []
        new_start: int | None = None
        for segment, belongs in self._in_order(lineage):
            if segment.state == DELETE_STARTED and self.log.dialect.cleans_up_remotely:
                selected.append(segment)
                continue
            if segment in selected and self.log.dialect.expires_older_epochs_last:
                continue
            deletes = self.is_below_start(segment, log_start, lineage)
            valid = False
            if not deletes:
                valid = belongs
                deletes = valid and (self.is_too_old(segment) or self.is_surplus(segment))
                if deletes:
                    following = segment.end_offset + 1
                    if new_start is None or following > new_start or self.log.dialect.start_follows_last_listed:
                        new_start = following
            if deletes:
                selected.append(segment)
            elif valid:
                break
        return selected, new_start

    def _in_order(self, lineage: dict[int, int]) -> list[tuple[CopiedSegment, bool]]:
        """Return the segments of each epoch of the log in order, with whether each belongs to the log."""
        remote, lookup = self.log.remote, self.log.lookup
        return [(each, lookup.is_valid(each, lineage)) for epoch in lineage for each in remote.of_epoch(epoch)]

    def is_below_start(self, segment: CopiedSegment, log_start: int, lineage: dict[int, int]) -> bool:
        """Return True if a segment ends before the log start, and has no epoch after the first of the log (TL-10)."""
        return (
            bool(lineage) and all(epoch <= min(lineage) for epoch in segment.epochs) and segment.end_offset < log_start
        )

    def is_too_old(self, segment: CopiedSegment) -> bool:
        """Return True if a segment is past ``retention.ms`` (TL-11a, TL-11b); its size is then off the surplus."""
        limit = self.log.config.retention_ms
        until = self.log.clock() - limit
        if limit < 0 or until < 0 or segment.max_timestamp > until:
            return False
        if segment.max_timestamp == until and not self.log.dialect.expires_at_exact_age:
            return False
        self._surplus = max(0, self._surplus - segment.size)
        return True

    def is_surplus(self, segment: CopiedSegment) -> bool:
        """Return True if both tiers without a segment still have ``retention.bytes`` (TL-12).

        The size of a segment for which this returns True is then off the surplus.
        """
        if self._surplus <= 0 or self._surplus < segment.size:
            return False
        self._surplus -= segment.size
        return True

    def surplus(self, segments: list[CopiedSegment], lineage: dict[int, int]) -> int:
        """Return the bytes of both tiers above ``retention.bytes``; 0 without a limit, or below it.

        Releases that trust valid segments count all of them if the last run found no other.
        """
        limit = self.log.config.retention_bytes
        local = self.log.only_local_size
        counted = _COUNTED.get(self.log.dialect.remote_size, {COPY_FINISHED})
        copied = sum(segment.size for segment in segments if segment.state in counted)
        if limit < 0 or local + copied <= limit:
            return 0
        if not (self._all_valid and self.log.dialect.trusts_valid_segments):
            finished = {each: valid for each, valid in self._in_order(lineage) if each.state in counted}
            size = sum(each.size for each, valid in finished.items() if valid)
            self._all_valid = all(finished.values()) and size == copied
        else:
            size = copied
        return max(0, local + size - limit)

    def _delete_older_epochs(self, epochs: set[int]) -> None:
        """Delete the segments all of whose epochs are older than the first one of the log (TL-13)."""
        earliest = self.log.epochs.earliest_entry
        if earliest is None:
            return
        older = sorted(epoch for epoch in epochs if epoch < earliest.epoch)
        segments = [segment for epoch in older for segment in self.log.remote.of_epoch(epoch)]
        for segment in dict.fromkeys(segments):
            if all(epoch < earliest.epoch for epoch in segment.epochs):
                self.log.remote.delete(segment)


class RemoteTasks:
    """Tasks for one log, as a leader runs them while it is the leader, and as a follower runs them.

    Attributes:
        expiration: class that deletes the remote segments.
    """

    expiration: type[Expiration] = Expiration

    def __init__(self, log: TieredLog) -> None:
        self.log = log
        self._expiration = self.expiration(log)
        self._copied: int | None = None  # last offset in remote storage; None before the first run as the leader

    # -- copying -------------------------------------------------------------------------------------------------

    def copy(self) -> None:
        """Copy the inactive segments below the last stable offset that are not copied yet (TL-7).

        The first run of a leader also moves the log start to the first remote segment (TL-9). The task of a
        broker logs an error that ends it.

        Raises:
            KidxError, OSError: a segment cannot be read.
        """
        log = self.log
        if self._copied is None:
            try:
                log.delete_records(self.remote_start())
            except OffsetOutOfRangeError:
                return
            self._copied = log.highest_copied_offset()
            if log.dialect.copies_find_highest_offset:
                log.highest_remote_offset = max(log.highest_remote_offset, self._copied)
        stable = log.last_stable_offset
        if not self._copied < stable:
            return
        for segment, following in self.candidates(max(self._copied + 1, log.start_offset), stable):
            if not self._copy(segment, following):
                return

    def candidates(self, start: int, stable: int) -> list[tuple[LogSegment, int]]:
        """Return the segments from offset ``start`` on that end below the LSO ``stable``, each with the next base."""
        segments = self.log.segments.values_from(start)
        return [(one, other.base_offset) for one, other in pairwise(segments) if other.base_offset <= stable]

    def remote_start(self) -> int:
        """Return the start of the first remote segment of the oldest epoch that has one; else the local start."""
        log = self.log
        for entry in log.epochs.entries:
            segments = log.remote.of_epoch(entry.epoch)
            if segments:
                return segments[0].start_offset
        return log.local_start_offset

    def epochs_between(self, start: int, end: int) -> dict[int, int]:
        """Return the first offset of each leader epoch in the range from ``start`` to ``end`` (excluded), by epoch."""
        entries = self.log.epochs.entries
        before = [entry for entry in entries if entry.start_offset <= start]
        found = {before[-1].epoch: start} if before else {}
        found |= {entry.epoch: entry.start_offset for entry in entries if entry.start_offset > start}
        return {epoch: first for epoch, first in found.items() if first < end}

    def _copy(self, segment: LogSegment, following: int) -> bool:
        """Copy a segment; return False if it cannot be copied.

        ``following`` is the base offset of the next segment, here and in :meth:`files_of`.
        """
        log = self.log
        epochs = self.epochs_between(segment.base_offset, following)
        if not epochs:
            return False
        copied = CopiedSegment(
            log.remote.new_number(),
            segment.base_offset,
            following - 1,
            segment.largest_timestamp,
            epochs,
            segment.txn_index.is_empty and log.dialect.metadata_knows_empty_transactions,
            segment.size,
        )
        log.remote.add(copied)
        if not (log.directory / snapshot_name(following)).exists():
            return False
        copied.files = self.files_of(segment, following)
        try:
            log.remote.require("copy")
        except RemoteStorageError:
            with suppress(RemoteStorageError):
                if log.dialect.cleans_up_remotely:
                    log.remote.delete(copied)
                elif not log.dialect.failed_copies_leave_files:
                    log.remote.delete_files(copied)
            return False
        log.remote.update(copied, COPY_FINISHED)
        self._copied = copied.end_offset
        log.highest_remote_offset = max(log.highest_remote_offset, copied.end_offset)
        return True

    def files_of(self, segment: LogSegment, following: int) -> Mapping[str, bytes]:
        """Return the content of a segment's files by suffix, with its producer snapshot and earlier epochs."""
        log = self.log
        _ = segment.offset_index, segment.time_index  # Kafka opens them to get their paths
        paths = {suffix: log.directory / file_name(segment.base_offset, suffix) for suffix in SEGMENT_SUFFIXES}
        files = {suffix: path.read_bytes() for suffix, path in paths.items() if path.exists()}
        files[SNAPSHOT_SUFFIX] = (log.directory / snapshot_name(following)).read_bytes()
        entries = [entry for entry in log.epochs.entries if entry.start_offset < following]
        files[f".{FILE_NAME.replace('-', '_')}"] = checkpoint_text(entries).encode()
        return files

    # -- the other tasks -----------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Delete the remote segments that retention allows; see :class:`~kidx.tiers.tasks.Expiration`.

        Raises:
            KidxError: the log start cannot be moved.
        """
        self._expiration.run()

    def follow(self) -> None:
        """Raise the log's highest remote offset to the last offset in remote storage, as a follower does (TL-4)."""
        self.log.highest_remote_offset = max(self.log.highest_remote_offset, self.log.highest_copied_offset())
