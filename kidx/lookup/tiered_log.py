"""Log across tiers, read in place: remote segments first, then local ones (``RemoteLogManager``; LO-19).

The files of a remote segment are copied to this machine when it is searched, unless they are local already.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kidx.dialect import dialect_of
from kidx.discovery import Segment
from kidx.errors import ToolError
from kidx.index.time import TimestampOffset
from kidx.log.lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    fetch_offset,
    supports_target,
)
from kidx.lookup.read_only_log import FileSegment, ReadOnlyLog
from kidx.printable import dated
from kidx.records.record import NO_TIMESTAMP
from kidx.remote import RemoteStorageError
from kidx.remote.directory import add_metadata, read_remote
from kidx.remote.metadata import read_metadata
from kidx.remote.stored import LOG, chain, epochs_of, in_epoch, is_within, topic_id_in, with_records
from kidx.segment import TimestampAndOffset
from kidx.storage import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from kidx.dialect import Dialect
    from kidx.remote.directory import RemoteDirectory
    from kidx.remote.stored import StoredSegment
    from kidx.segment.segment import SegmentReader


class RemoteFileSegment(FileSegment):
    """Remote segment as a broker reads it: a missing or corrupt index is an error, and nothing is rebuilt.

    Args:
        dialect: rules of a release.
        scratch: directory for copies of files that are not on this machine.
    """

    tier = "remote"

    def __init__(self, stored: StoredSegment, dialect: Dialect, scratch: Path) -> None:
        self.stored = stored
        log = Path(stored.path(LOG))
        if not stored.store.has_files:
            log = scratch / log.name
        existing = frozenset(f".{suffix}" for suffix in stored.suffixes)
        super().__init__(
            Segment(log, stored.base_offset, existing=existing, is_last=False, clean=True), dialect, scratch
        )

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """Largest timestamp in milliseconds; its offset is not read."""
        dated = self.stored.files.get("timeindex")
        timestamp = self.largest_timestamp if dated is not None and dated.size else NO_TIMESTAMP
        return TimestampOffset(timestamp, self.base_offset)

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp of the time index, or else the modification time of the remote log, in milliseconds."""
        return self.stored.largest_timestamp

    @property
    def log_size(self) -> int:
        """Size of the log in bytes."""
        return self.stored.size

    def _open(self) -> SegmentReader:
        if missing := self.stored.missing:
            name = self.stored.name(missing[0])
            raise RemoteStorageError(f"{name} is missing in remote storage: a broker answers with an error", None)
        if not self.stored.store.has_files:
            for entry in self.stored.files.values():
                self.stored.store.fetch(entry.path, self.files.log.with_name(entry.name))
        return super()._open()

    def _recovered(self, reason: str) -> NoReturn:
        raise RemoteStorageError(f"{self.stored.name(LOG)}: {reason.partition(',')[0]}", None)


NO_EPOCH = -1
"""The leader epoch of a result without a record."""


class Visit(NamedTuple):
    """Segment that a lookup by time considered.

    Attributes:
        start: offset from which it is searched; None if it is not searched.
        why: reason for the decision.
    """

    segment: FileSegment
    start: int | None
    why: str


class TieredLog(ReadOnlyLog):
    """Log whose older segments are in remote storage; a context manager.

    A broker reads in the topic ``__remote_log_metadata`` which copies are complete. So does this class if the log
    directory has the topic's records about the partition. Without them, it counts a segment as copied if remote storage
    has all its files, or if the local log no longer has the segment.

    Args:
        remote: the remote storage directory, in a layout of :mod:`kidx.remote.directory`: a path or a URL of fsspec.
        dialect: See :class:`~kidx.lookup.ReadOnlyLog`.

    Attributes:
        remote: the remote segments that belong to this log, by base offset.
        all_segments: the segments of both tiers, oldest first; if both tiers have an offset, the local segment.
        local_start: the local log start offset.
        highest_remote: the highest offset in remote storage, or -1.

    Raises:
        ToolError: the directory is not a partition, the release has no tiered storage, or remote storage does not have
            the partition or has an unknown layout.
        KidxError, OSError: a checkpoint or a remote index cannot be read.
    """

    is_tiered = True

    def __init__(
        self,
        directory: str | os.PathLike[str],
        remote: str | os.PathLike[str] | Store,
        dialect: str | Dialect | None = None,
    ) -> None:
        rules = dialect_of(dialect)
        if not rules.has_remote_index_cache:
            raise ToolError(f"Kafka {rules.release} has no tiered storage; choose 3.6.0 or later")
        found = read_remote(remote)
        home = Path(directory).absolute().parent
        add_metadata(found, read_metadata([(Store(str(home)), str(home))], rules.release))
        super().__init__(directory, dialect)
        try:
            self._add(found)
        except BaseException:
            self.close()
            raise

    def _add(self, found: RemoteDirectory) -> None:
        name = self.segments[0].files.topic, self.segments[0].files.partition
        stored = found.of(*name, topic_id_in(self.directory))
        if stored is None:
            raise ToolError(f"{found.store.url} has no remote segment of {self.directory.name}")
        first_local = self.segments[0].base_offset
        copied = [
            each for each in stored.read_segments if each.noted or not each.missing or each.base_offset < first_local
        ]
        lineage = with_records({entry.epoch: entry.start_offset for entry in self.epochs.entries})
        end = self.end_offset
        self._epochs = {each: epochs_of(each, lineage) for each in copied}
        own = [each for each in copied if is_within(self._epochs[each], each.end_offset, lineage, end, self.dialect)]
        self.remote = {each: RemoteFileSegment(each, self.dialect, self.scratch) for each in own}
        self.highest_remote = max((each.end_offset for each in own), default=0) - 1
        first = min([first_local, *(each.base_offset for each in own)])
        self.start_offset = self.search_start = max(self.checkpointed_start or 0, first)
        self.local_start = max(self.start_offset, first_local)
        self.begins_before = None
        older = [each for each in chain(own) if each.base_offset < first_local]
        self.all_segments = [*(self.remote[each] for each in older), *self.segments]

    def epoch_of(self, offset: int) -> int | None:
        """Return the leader epoch of an offset (``LeaderEpochFileCache.epochForOffset``); None if it is unknown."""
        return next((e.epoch for e in reversed(self.epochs.entries) if e.start_offset <= offset), None)

    def _fetch(self, target: int) -> TimestampAndOffset | None:
        if not supports_target(self.dialect, target):
            return self._by_time(target)
        if target == EARLIEST_LOCAL:
            return TimestampAndOffset(NO_TIMESTAMP, self.local_start, self.epoch_of(self.local_start))
        if target == LATEST_TIERED:
            epoch = NO_EPOCH if self.highest_remote < 0 else self.epoch_of(self.highest_remote)
            return TimestampAndOffset(NO_TIMESTAMP, self.highest_remote, epoch)
        if target == EARLIEST_PENDING_UPLOAD:
            return self._pending_upload()
        return fetch_offset(self, target)  # max-timestamp: a broker looks only at the local segments

    def _pending_upload(self) -> TimestampAndOffset | None:
        if self.highest_remote >= 0:
            offset = max(self.highest_remote + 1, self.start_offset)
            return TimestampAndOffset(NO_TIMESTAMP, offset, self.epoch_of(offset))
        if self.local_start == self.start_offset:
            return fetch_offset(self, EARLIEST)
        return TimestampAndOffset(NO_TIMESTAMP, -1, NO_EPOCH)

    def _by_time(self, timestamp: int) -> TimestampAndOffset | None:
        for visit in self.path_to(timestamp):
            if visit.start is not None:
                found = visit.segment.find_offset_by_timestamp(timestamp, visit.start)
                if found is not None:
                    return found
        return None

    def path_to(self, timestamp: int) -> Iterator[Visit]:
        """Yield the segments that a lookup by time considers, in order. The lookup stops when a segment has the record.

        Only one remote segment is searched: the first that can have the record (``findOffsetByTimestamp``). If it does
        not have the record, local segments are searched. From 4.0 on, a segment in both tiers is searched locally.

        Raises:
            KidxError, OSError: an index cannot be read.
        """
        yield from self._remote_path(timestamp)
        for segment in self.segments:
            largest = segment.largest_timestamp
            if largest >= timestamp:
                yield Visit(
                    segment,
                    self.local_start,
                    f"its largest timestamp {dated(largest)} is the first local one not before the target",
                )
                return
            yield Visit(segment, None, f"its largest timestamp {dated(largest)} is before the target")

    def _remote_path(self, timestamp: int) -> Iterator[Visit]:
        epoch = self.epoch_of(self.start_offset)
        while epoch is not None:
            for stored in in_epoch(self._epochs, epoch):
                segment = self.remote.get(stored)
                if segment is None:  # the log has diverged from this remote segment
                    continue
                largest = segment.largest_timestamp
                if largest < timestamp:
                    yield Visit(segment, None, f"its largest timestamp {dated(largest)} is before the target")
                    continue
                if stored.end_offset <= self.start_offset:
                    yield Visit(segment, None, f"it ends before the log start {self.start_offset}")
                    continue
                why = (
                    f"its largest timestamp {dated(largest)} is the first not before the target; later remote "
                    "segments are skipped"
                )
                if self.dialect.prefers_local_segments and stored.base_offset >= self.segments[0].base_offset:
                    return  # the local log has the same records
                yield Visit(segment, self.start_offset, why)
                return
            following = (entry.epoch for entry in self.epochs.entries if entry.epoch > epoch)
            epoch = next(following, None)
