"""Log with a local and a remote tier (``UnifiedLog`` with ``remote.storage.enable``; clauses TL and LO-1 … LO-19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from kidx.log import LogConfig, UnifiedLog
from kidx.log.lookup import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    find_in_segments,
    supports_target,
)
from kidx.log.retention import by_size, by_time
from kidx.records import iter_memory_batches
from kidx.records.record import NO_TIMESTAMP
from kidx.remote import RemoteIndexCache, RemoteResourceNotFoundError, RemoteSegment
from kidx.remote.cache import release_handles
from kidx.remote.stored import is_within, with_records
from kidx.segment import TimestampAndOffset
from kidx.tiers.metadata import COPY_FINISHED, CopiedSegment

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from kidx.log.retention import Predicate
    from kidx.segment import LogSegment
    from kidx.tiers.metadata import RemoteMetadata

_CACHE_BYTES = 1 << 30
"""Maximum size of the cache of index files: the default of ``remote.log.index.file.cache.total.size.bytes``."""

_AS_TOTAL: Final = -2
"""Value of a local retention that is the retention of both tiers."""


class RemoteLookup:
    """Search in the remote segments of one log, with a cache of their index files next to the log's directory."""

    def __init__(self, log: UnifiedLog, remote: RemoteMetadata) -> None:
        self._log, self._remote = log, remote
        self.cache = RemoteIndexCache(
            log.directory.parent, self, max_size=_CACHE_BYTES, clock=log.clock, dialect=log.dialect
        )

    def close(self) -> None:
        """Close the cached files."""
        release_handles(self.cache.entries)

    def fetch_index(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Fetch a copied file; see :class:`kidx.remote.RemoteStorage`."""
        files = self._remote.segments[int.from_bytes(segment.id)].files
        if kind not in files:
            raise RemoteResourceNotFoundError(f"there is no {segment.file_name(kind)}")
        return (files[kind],)

    def lineage(self) -> dict[int, int]:
        """Return the start offset of each leader epoch of the log that has records."""
        return with_records({entry.epoch: entry.start_offset for entry in self._log.epochs.entries})

    def is_valid(self, segment: CopiedSegment, lineage: dict[int, int]) -> bool:
        """Return True if a remote segment belongs to the log."""
        log = self._log
        return is_within(segment.epochs, segment.end_offset + 1, lineage, log.end_offset, log.dialect)

    def find(self, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """Return the first record with that timestamp or a later one, or None.

        Args:
            timestamp: milliseconds.
            starting_offset: minimum offset of the record.

        Raises:
            KidxError, OSError: an index or a log cannot be read.
        """
        log = self._log
        first = log.epochs.epoch_of(starting_offset)
        if first is None:
            return None
        lineage = self.lineage()
        for epoch in [entry.epoch for entry in log.epochs.entries if entry.epoch >= first]:
            for segment in self._remote.of_epoch(epoch):
                if (
                    segment.max_timestamp < timestamp
                    or segment.end_offset < starting_offset
                    or not self.is_valid(segment, lineage)
                    or (segment.state != COPY_FINISHED and log.dialect.lookup_omits_unfinished_copies)
                ):
                    continue
                is_local = segment.start_offset >= log.segments.first.base_offset
                if not (is_local and log.dialect.prefers_local_segments):
                    return self.find_in(segment, timestamp, starting_offset)
                if any(each.largest_timestamp >= timestamp for each in log.segments):
                    return find_in_segments(log, timestamp, starting_offset)
        return None

    def find_in(self, segment: CopiedSegment, timestamp: int, starting_offset: int) -> TimestampAndOffset | None:
        """Return the first record of a remote segment with that timestamp or a later one, or None."""
        position = self.cache.lookup_timestamp(segment.cached, timestamp, starting_offset)
        self._remote.require("fetch")
        for batch in iter_memory_batches(segment.files[".log"][position:]):
            if batch.max_timestamp < timestamp or batch.last_offset < starting_offset:
                continue
            for record in batch.offset_timestamps(streaming=True):
                if record.timestamp >= timestamp and record.offset >= starting_offset:
                    epoch = batch.partition_leader_epoch
                    return TimestampAndOffset(record.timestamp, record.offset, epoch if epoch >= 0 else None)
        return None


@dataclass(frozen=True, slots=True)
class TieredConfig(LogConfig):
    """Settings of a topic with remote storage.

    Attributes:
        local_retention_ms: ``local.retention.ms``, the age at which a copied segment is deleted locally; -2 for
            ``retention.ms``.
        local_retention_bytes: ``local.retention.bytes``, the local size above which copied segments are deleted; -2 for
            ``retention.bytes``.
    """

    local_retention_ms: int = _AS_TOTAL
    local_retention_bytes: int = _AS_TOTAL

    @classmethod
    def of_topic(cls, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a topic's settings; see the base class."""
        base = LogConfig.of_topic(settings)
        return cls(
            **{name: getattr(base, name) for name in LogConfig.__dataclass_fields__},
            local_retention_ms=int(settings.get("local.retention.ms", _AS_TOTAL)),
            local_retention_bytes=int(settings.get("local.retention.bytes", _AS_TOTAL)),
        )


class TieredLog(UnifiedLog):
    """Log of one partition whose inactive segments are copied to remote storage.

    Args:
        config: settings of the topic.
        remote: metadata of the remote segments, which outlives the log.
        **options: further arguments of :class:`~kidx.log.UnifiedLog`.

    Attributes:
        local_start_offset: first offset of the local log.
        highest_remote_offset: highest offset in remote storage, as far as this broker knows; -1 for none.
    """

    config: TieredConfig
    remote_lookup: type[RemoteLookup] = RemoteLookup

    def __init__(
        self, directory: str | os.PathLike[str], config: TieredConfig, remote: RemoteMetadata, **options: Any
    ) -> None:
        self.remote = remote
        self.highest_remote_offset = -1
        self.local_start_offset = 0
        super().__init__(directory, config, **options)
        self.local_start_offset = max(self.start_offset, self.segments.first.base_offset)
        if self.high_watermark < self.local_start_offset:
            self.update_high_watermark(self.local_start_offset)
        self.recovery_point = max(self.recovery_point, self.local_start_offset)
        self.lookup = self.remote_lookup(self, remote)

    def _loaded_start(self, log_start_offset: int) -> int:
        """Return the checkpoint: the log start may be in remote storage (TL-1)."""
        return log_start_offset

    # -- moving the start ----------------------------------------------------------------------------------------

    def delete_records(self, offset: int) -> None:
        """Move the log start offset up to ``offset``, and the local start to it if that is smaller (TL-2).

        Raises:
            OffsetOutOfRangeError: ``offset`` is larger than the high watermark.
        """
        if offset <= self.high_watermark:
            self.local_start_offset = max(offset, self.local_start_offset)
        super().delete_records(offset)

    def _truncate_fully(self, offset: int) -> None:
        if self.dialect.truncation_moves_local_start:
            self.local_start_offset = offset
        super()._truncate_fully(offset)

    # -- local retention -----------------------------------------------------------------------------------------

    def delete_old_segments(self) -> int:
        """Delete copied segments that local retention allows, and return their number (TL-5).

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        with self._operation():
            return _delete_local_segments(self)

    def is_removable(self, following: LogSegment | None, upper: int) -> bool:
        """Return True if a segment is copied, or below the log start.

        Args:
            following: the segment after it, or None.
            upper: offset after the segment's last one.
        """
        if 0 < upper <= self.highest_remote_offset + 1:
            return True
        if not self.dialect.local_retention_knows_log_start:
            return False
        return following is not None and self.start_offset >= following.base_offset

    def remove_oldest(self, segments: list[LogSegment]) -> None:
        """Remove these first segments; the local start moves, the log start does not.

        Raises:
            KidxError, OSError: as rolling and deleting.
        """
        if len(segments) == len(self.segments):
            self._roll(0)
        following = self.segments.higher(segments[-1].base_offset)
        if following is not None:
            self.local_start_offset = max(self.local_start_offset, following.base_offset)
        self._detach(segments)

    def roll_active(self) -> None:
        """Start a new segment, within another operation."""
        self._roll(0)

    def highest_copied_offset(self) -> int:
        """Return the highest copied offset of the newest epoch that has one, within the epoch, or -1 (TL-4)."""
        end = self.end_offset
        for entry in reversed(self.epochs.entries):
            highest = self.remote.highest_offset(entry.epoch)
            if highest is not None:
                return min(highest, end - 1) if self.dialect.highest_remote_offset_is_in_epoch else highest
            end = entry.start_offset
        return -1

    @property
    def only_local_size(self) -> int:
        """Bytes of the local segments from the highest remote offset on (TL-8)."""
        highest = self.highest_remote_offset + (self.dialect.remote_size == "exact")
        return sum(segment.size for segment in self.segments if segment.base_offset >= highest)

    # -- lookup --------------------------------------------------------------------------------------------------

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the result of a lookup across both tiers; see the base class.

        Raises:
            KidxError, OSError: an index or a log of either tier cannot be read.
        """
        if not supports_target(self.dialect, target):
            if self.start_offset == self.end_offset and self.dialect.prefers_local_segments:
                return find_in_segments(self, target, self.start_offset)
            found = self.lookup.find(target, self.start_offset)
            return find_in_segments(self, target, self.local_start_offset) if found is None else found
        if target == EARLIEST_LOCAL:
            return TimestampAndOffset(
                NO_TIMESTAMP, self.local_start_offset, self.epochs.epoch_of(self.local_start_offset)
            )
        if target == LATEST_TIERED:
            highest = self.highest_remote_offset
            epoch = self.epochs.epoch_of(highest)
            return TimestampAndOffset(NO_TIMESTAMP, highest, -1 if epoch is None and highest == -1 else epoch)
        if target == EARLIEST_PENDING_UPLOAD:
            return self._earliest_pending_upload()
        return super().fetch_offset_by_timestamp(target)

    def _earliest_pending_upload(self) -> TimestampAndOffset | None:
        if self.highest_remote_offset == -1:
            if self.local_start_offset == self.start_offset:
                return super().fetch_offset_by_timestamp(-2)
            return TimestampAndOffset(NO_TIMESTAMP, -1, -1)
        offset = max(self.highest_remote_offset + 1, self.start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, offset, self.epochs.epoch_of(offset))


def _delete_local_segments(log: TieredLog) -> int:
    """Delete local segments below the local start, then by local size, then by local age; return their number.

    Raises:
        KidxError, OSError: as rolling and deleting.
    """
    config, count = log.config, 0
    has_limits = config.deletes or (not config.compacts and log.dialect.local_retention_needs_no_policy)
    for rule in (_before_start, _by_size, _by_time) if has_limits else (_before_start,):
        selected = _selected(log, rule(log))
        if selected:
            log.remove_oldest(selected)
        count += len(selected)
    return count


def _before_start(log: TieredLog) -> Predicate:
    return lambda _, following: following is not None and following.base_offset <= log.local_start_offset


def _by_size(log: TieredLog) -> Predicate:
    return by_size(log, _local_limit(log, log.config.local_retention_bytes, log.config.retention_bytes))


def _by_time(log: TieredLog) -> Predicate:
    return by_time(log, _local_limit(log, log.config.local_retention_ms, log.config.retention_ms))


def _local_limit(log: TieredLog, local: int, total: int) -> int:
    """Return a limit of the local log; negative for none."""
    return total if local == _AS_TOTAL and log.dialect.local_retention_may_be_total else local


def _selected(log: TieredLog, predicate: Predicate) -> list[LogSegment]:
    """Return the oldest segments that may be deleted; roll an active segment that should be (TL-6)."""
    segments = list(log.segments)
    selected: list[LogSegment] = []
    rolls = False
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        upper = log.end_offset if following is None else following.base_offset
        if log.high_watermark < upper or not predicate(segment, following):
            break
        is_empty = following is None and segment.size == 0
        rolls |= following is None and not is_empty
        if is_empty or not log.is_removable(following, upper):
            break
        selected.append(segment)
    if rolls and log.dialect.local_retention_rolls:
        log.roll_active()
    return selected
