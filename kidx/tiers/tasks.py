"""Tasks that a broker runs for one tiered log (``RemoteLogManager``; clauses TL).

A leader copies segments to remote storage and deletes expired ones; a follower reads how far the leader has copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from kidx.discovery import SEGMENT_SUFFIXES
from kidx.log import OffsetOutOfRangeError
from kidx.log.epochs import FILE_NAME, checkpoint_text
from kidx.producers import SNAPSHOT_SUFFIX, snapshot_name
from kidx.remote import RemoteStorageError
from kidx.segment import file_name
from kidx.tiers.expiration import Expiration
from kidx.tiers.metadata import COPY_FINISHED, CopiedSegment

if TYPE_CHECKING:
    from kidx.segment import LogSegment
    from kidx.tiers.tiered_log import TieredLog


class RemoteTasks:
    """Tasks for one log, as a leader runs them while it is the leader, and as a follower runs them.

    Args:
        log: the log.

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
        """Delete the remote segments that retention allows; see :class:`~kidx.tiers.expiration.Expiration`.

        Raises:
            KidxError: the log start cannot be moved.
        """
        self._expiration.run()

    def follow(self) -> None:
        """Raise the log's highest remote offset to the last offset in remote storage, as a follower does (TL-4)."""
        self.log.highest_remote_offset = max(self.log.highest_remote_offset, self.log.highest_copied_offset())
