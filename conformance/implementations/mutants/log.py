"""Defects of a log: results of ListOffsets, rolls, truncations and deletions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import defect
from kidx.log import UnifiedLog
from kidx.log.lookup import EARLIEST, LATEST, MAX_TIMESTAMP

if TYPE_CHECKING:
    from kidx.segment import LogSegment, TimestampAndOffset

# -- ListOffsets -------------------------------------------------------------------------------------------------------


@defect("LO-1")
class EarliestIsTheFirstSegments(UnifiedLog):
    """The earliest offset is the first segment's base, not the log start offset."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return found._replace(offset=self.segments.first.base_offset) if found and target == EARLIEST else found


@defect("LO-1")
class EarliestHasNoEpoch(UnifiedLog):
    """The earliest offset comes without an epoch."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return found._replace(leader_epoch=None) if found and target == EARLIEST else found


@defect("LO-2a")
class LatestIsTheHighWatermark(UnifiedLog):
    """The latest offset of a log is its high watermark."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return found._replace(offset=self.high_watermark) if found and target == LATEST else found


@defect("LO-2a")
class LatestIsTheLastRecord(UnifiedLog):
    """The latest offset is the last record's (off by one)."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return found._replace(offset=max(found.offset - 1, 0)) if found and target == LATEST else found


@defect("LO-2a")
class LatestHasNoEpoch(UnifiedLog):
    """The latest offset comes without an epoch."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        return found._replace(leader_epoch=None) if found and target == LATEST else found


@defect("LO-10")
class MaximumOfTheActiveSegment(UnifiedLog):
    """The largest timestamp is looked for in the active segment only."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if target != MAX_TIMESTAMP or found is None or found.offset >= self.segments.active.base_offset:
            return found
        return None


@defect("LO-10")
class MaximumIsTheBatchsLast(UnifiedLog):
    """The largest timestamp comes with the last offset of its batch, as up to 3.7."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if target != MAX_TIMESTAMP or found is None:
            return found
        latest = max(self.segments, key=lambda segment: segment.max_timestamp_so_far.timestamp)
        return found._replace(offset=latest.max_timestamp_so_far.offset)


@defect("LO-10")
class MaximumIsTheLatestOfEquals(UnifiedLog):
    """Of segments with the same largest timestamp the last one answers."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if target != MAX_TIMESTAMP or found is None:
            return found
        equal = [s for s in self.segments if s.max_timestamp_so_far.timestamp == found.timestamp]
        for batch in equal[-1].batches() if len(equal) > 1 else ():
            for record in batch:
                if record.timestamp == found.timestamp:
                    return found._replace(offset=record.offset)
        return found


@defect("LO-23")
class GoesOnToTheNextSegment(UnifiedLog):
    """A search by timestamp continues if the first segment that could contain the record has none."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        found = super().fetch_offset_by_timestamp(target)
        if found is None and target >= 0:
            for segment in self.segments:
                found = segment.find_offset_by_timestamp(target, self.start_offset)
                if found is not None:
                    break
        return found


@defect("LO-6")
class PassesOverEqualSegments(UnifiedLog):
    """A segment whose largest timestamp is the target is passed over (``>`` for ``>=``)."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        if target >= 0:
            for segment in self.segments:
                if segment.largest_timestamp > target:
                    return segment.find_offset_by_timestamp(target, self.start_offset)
            return None
        return super().fetch_offset_by_timestamp(target)


@defect("LO-6")
class FindsDeletedRecords(UnifiedLog):
    """A search by timestamp also finds records before the log start offset."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        if target >= 0:
            for segment in self.segments:
                if segment.largest_timestamp >= target:
                    return segment.find_offset_by_timestamp(target)
            return None
        return super().fetch_offset_by_timestamp(target)


@defect("LO-15a")
class KnowsNothingOfUnknownTargets(UnifiedLog):
    """A negative target without a meaning is answered with nothing, not as an ordinary timestamp."""

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        return None if target < -6 else super().fetch_offset_by_timestamp(target)


# -- rolling, cutting, deleting ----------------------------------------------------------------------------------------


@defect("LG-5")
class RollsAtTheEnd(UnifiedLog):
    """A new segment begins at the end of the log, also where the next batch begins later."""

    def _roll(self, expected_offset: int) -> LogSegment:
        return super()._roll(0)


@defect("LG-6")
class RefusesToRollAnEmptySegment(UnifiedLog):
    """Rolling an empty segment does nothing."""

    def _roll(self, expected_offset: int) -> LogSegment:
        active = self.segments.active
        return active if active.size == 0 else super()._roll(expected_offset)


@defect("SEG-22")
class RollsWithoutFinishing(UnifiedLog):
    """A roll does not finish the previous segment."""

    def _roll(self, expected_offset: int) -> LogSegment:
        active = self.segments.active
        active.on_become_inactive_segment = lambda: None  # type: ignore[method-assign]
        return super()._roll(expected_offset)


@defect("LG-7")
class CutsOneOffsetTooLate(UnifiedLog):
    """Truncation keeps the batch that the offset lies in."""

    def truncate_to(self, offset: int) -> bool:
        inside = offset < self.end_offset and any(
            batch.base_offset == offset for segment in self.segments for batch in segment.batches()
        )
        return super().truncate_to(offset + 1 if inside else offset)


@defect("LG-7")
class TruncationKeepsTheHighWatermark(UnifiedLog):
    """A truncation below the high watermark leaves it where it was."""

    def truncate_to(self, offset: int) -> bool:
        before = self.high_watermark
        done = super().truncate_to(offset)
        self.high_watermark = before
        return done


@defect("LG-7")
class TruncationKeepsEpochs(UnifiedLog):
    """A truncation keeps the epochs that begin after it."""

    def truncate_to(self, offset: int) -> bool:
        self.epochs.truncate_from_end = lambda _: None  # type: ignore[method-assign, assignment]
        try:
            return super().truncate_to(offset)
        finally:
            del self.epochs.truncate_from_end


@defect("LG-12")
class DeletesUpToTheEnd(UnifiedLog):
    """Records beyond the high watermark can be deleted."""

    def delete_records(self, offset: int) -> None:
        if self.high_watermark < offset <= self.end_offset:
            self.update_high_watermark(offset)
        super().delete_records(offset)


@defect("LG-12")
class DeletesWholeSegmentsOnly(UnifiedLog):
    """The log start offset moves to the beginning of a segment."""

    def delete_records(self, offset: int) -> None:
        bases = [segment.base_offset for segment in self.segments if segment.base_offset <= offset]
        super().delete_records(offset if offset > self.high_watermark or not bases else bases[-1])


@defect("LG-14")
class RetainsOneSegmentMore(UnifiedLog):
    """A segment that ends exactly at the log start offset is kept."""

    def delete_old_segments(self) -> int:
        start = self.start_offset
        if start in self.segments and self.config.retention_ms < 0 and self.config.retention_bytes < 0:
            self.start_offset = start - 1
            try:
                return super().delete_old_segments()
            finally:
                self.start_offset = start
        return super().delete_old_segments()


@defect("LG-15")
class ForgetsToMakeRoomAgain(UnifiedLog):
    """Opening a log leaves the indexes of its last segment full."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        active = self.segments.active
        active.offset_index.trim_to_valid_size()
        active.time_index.trim_to_valid_size()


@defect("LG-15")
class RecoversAfterACleanStart(UnifiedLog):
    """Segments are recovered although the last shutdown was clean."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **(options | {"clean": False, "recovery_point": 0}))  # type: ignore[arg-type]


@defect("LG-2")
class IgnoresGapsOfAFollower(UnifiedLog):
    """A follower rejects batches that do not begin exactly at its end."""

    def append_as_follower(self, records: bytes, leader_epoch: int = (1 << 31) - 1) -> None:
        if len(records) >= 8 and int.from_bytes(records[:8], "big", signed=True) > self.end_offset:
            return
        super().append_as_follower(records, leader_epoch)
