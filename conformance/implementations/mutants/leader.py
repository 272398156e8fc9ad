"""Defects of a leader's validation: accepted, rejected and rewritten batches.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source, and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import Row, defect, plant
from kidx.log import InvalidTimestampError, RecordValidationError, UnifiedLog
from kidx.log.validation import Validated, ValidationContext, validate
from kidx.records import RecordBatch, TimestampType, build_batch, iter_memory_batches

if TYPE_CHECKING:
    from kidx.records import Record

# fmt: off
plant(
    UnifiedLog,
    Row("LG-50b", "allows-a-millisecond-more",
        "A timestamp may be a millisecond further from the clock than the topic allows.",
        "append_as_leader.ValidationContext.__post_init__", "self.config.timestamp_limits(self.dialect)",
        "tuple(min(limit + 1, LONG_MAX) for limit in self.config.timestamp_limits(self.dialect))"),
    Row("LG-50b", "limits-the-future-as-the-past", "The limit for older timestamps applies to newer ones, too.",
        "append_as_leader.ValidationContext.__post_init__", "self.config.timestamp_limits(self.dialect)",
        "self.config.timestamp_limits(self.dialect)[:1] * 2"),
    Row("LG-1", "stamps-a-millisecond-late",
        "With LogAppendTime a batch gets the time of the clock plus one millisecond.",
        "append_as_leader", "self.clock()", "self.clock() + self.config.log_append_time"),
    Row("LG-59", "asks-for-the-size-before-only", "A batch that was rebuilt may be larger than the topic allows.",
        "append_as_leader", "final, rebuilt, first_largest = self.validate(batches, context)",
        "final, rebuilt, first_largest = self.validate(batches, context); rebuilt = False"),
    Row("LG-60", "believes-headers-of-clients",
        "The header of a client's batch is not checked for contradictions, as if a coordinator had sent it.",
        "append_as_leader",
        "ValidationContext(self.dialect, self.config, self.end_offset, leader_epoch, self.clock(), from_client)",
        "ValidationContext(self.dialect, self.config, self.end_offset, leader_epoch, self.clock(), False)"),
    Row("LG-62", "takes-records-of-any-size", "A compressed record may have any size.",
        "append_as_leader.ValidationContext.max_record_body_size", "self.config.max_record_body_size", "2**31 - 9"),
    Row("LG-65b", "followers-ask-for-sizes",
        "A follower rejects batches that are larger than its topic allows, as it did up to 2.5.",
        "append_as_follower", "lambda: self.dialect.follower_checks_message_size", "lambda: True"),
    Row("LG-66", "retains-nothing-of-compacted-topics",
        "Retention deletes segments of a compacted topic by age and size, too.",
        "delete_old_segments.delete_old_segments.delete_by_rule", "log.config.deletes", "True"),
)
# fmt: on


@defect("LG-50b")
class LimitsMissingTimestamps(UnifiedLog):
    """A record without a timestamp is checked against the limits like one with the time -1."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        before, _ = context.limits
        valid = validate(batches, context)
        if not context.config.log_append_time and context.now + 1 > before:
            for record in _records(batches):
                if record.timestamp < 0:
                    raise InvalidTimestampError("Timestamp -1 is out of range")
        return valid


def _records(batches: Sequence[RecordBatch]) -> list[Record]:
    return [record for batch in batches for record in batch]


@defect("LG-51b")
class RefusesStampedBatches(UnifiedLog):
    """A producer's batch that claims to have LogAppendTime is rejected, as it was up to 3.5."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        if any(batch.timestamp_type is TimestampType.LOG_APPEND_TIME for batch in batches):
            raise InvalidTimestampError("Producer should not set timestamp type to LogAppendTime")
        return valid


@defect("LG-52b")
class TimestampsDoNotLead(UnifiedLog):
    """A batch with several invalid records is always rejected with InvalidRecordException."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        try:
            return validate(batches, context)
        except InvalidTimestampError as error:
            if len(error.records) > 1:
                raise RecordValidationError(str(error)) from error
            raise


@defect("LG-53")
class TakesRecordsWithoutKeys(UnifiedLog):
    """A compacted topic accepts records without keys."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        return validate(batches, replace(context, config=replace(context.config, compacts=False)))


@defect("LG-53")
class WantsKeysOfBytes(UnifiedLog):
    """A compacted topic rejects an empty key like a missing one."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        if context.config.compacts and any(record.key == b"" for record in _records(batches)):
            raise RecordValidationError("Compacted topic cannot accept message without key")
        return valid


@defect("LG-54b")
class ReadsAllOfCompressedRecords(UnifiedLog):
    """Compressed records that are not rewritten are read completely, and their sizes compared."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        for batch in iter_memory_batches(valid.records):
            for _ in batch:
                pass
        return valid


@defect("LG-55d")
class CountsUncompressedRecordsToo(UnifiedLog):
    """The offsets of the records of an uncompressed batch must count from 0."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        first = batches[0]
        if first.magic == 2 and not first.is_compressed and context.from_client:
            offsets = [record.offset for record in first]
            if offsets != list(range(len(offsets))):
                raise RecordValidationError("Inner records do not have incremental offsets")
        return valid


@defect("LG-56")
class TakesTheFirstMessageOnly(UnifiedLog):
    """Of several messages of an old format in one call only the first is converted."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        return validate(batches[:1], context) if batches[0].magic < 2 else valid


@defect("LG-57")
class ForgetsTheProducer(UnifiedLog):
    """A batch that is rebuilt loses its producer."""

    @staticmethod
    def validate(batches: Sequence[RecordBatch], context: ValidationContext) -> Validated:
        valid = validate(batches, context)
        if not valid.rebuilt:
            return valid
        (batch,) = iter_memory_batches(valid.records)
        records = build_batch(
            [(record.timestamp, record.key, record.value, record.headers) for record in batch],
            base_offset=batch.base_offset,
            codec=batch.codec,
            timestamp_type=batch.timestamp_type,
            log_append_time=batch.max_timestamp,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
        return Validated(records, rebuilt=True)
