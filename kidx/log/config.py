"""Configuration of a log: the topic settings that this package uses, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from kidx.java_values import LONG_MAX
from kidx.producers import EXPIRATION_MS
from kidx.records import Codec
from kidx.segment import SegmentConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kidx.dialect import Dialect

_INTEGERS: Final = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "max.decompressed.message.bytes": "max_record_body_size",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "delete.retention.ms": "delete_retention_ms",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.message.bytes": "max_message_bytes",
    "producer.id.expiration.ms": "producer_id_expiration_ms",
    "flush.messages": "flush_messages",
    "message.timestamp.difference.max.ms": "timestamp_difference_max_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
}
_TIMESTAMP_TYPE: Final = "message.timestamp.type"
_VERIFICATION: Final = "transaction.partition.verification.enable"
_PREALLOCATE: Final = "preallocate"
_CLEANUP: Final = "cleanup.policy"
_COMPRESSION: Final = "compression.type"
_AS_PRODUCED: Final = "producer"
_CODECS: Final = {"uncompressed": Codec.NONE} | {codec.label: codec for codec in Codec}


@dataclass(frozen=True, slots=True)
class LogConfig(SegmentConfig):
    """Settings of one topic.

    Attributes:
        retention_ms: ``retention.ms``, the age at which a segment is deleted; negative for never.
        retention_bytes: ``retention.bytes``, the size above which the oldest segments are deleted; negative for never.
        max_message_bytes: ``max.message.bytes``, the maximum size of a batch; the release's default if None.
        producer_id_expiration_ms: ``producer.id.expiration.ms`` of the broker, the idle time after which a producer is
            forgotten.
        log_append_time: True if ``message.timestamp.type`` is ``LogAppendTime``.
        timestamp_difference_max_ms: ``message.timestamp.difference.max.ms`` of releases up to 3.9, the maximum
            difference between a producer's timestamp and the clock.
        timestamp_before_max_ms: ``message.timestamp.before.max.ms`` of 3.6 and later, the maximum time by which a
            producer's timestamp may be older than the clock.
        timestamp_after_max_ms: ``message.timestamp.after.max.ms`` of 3.6 and later, the maximum time by which it may be
            newer; the release's default if None.
        compression: ``compression.type``, the codec to which a leader changes batches; None for ``producer``, the codec
            of the incoming batches.
        delete_retention_ms: ``delete.retention.ms``, the time that a tombstone is retained in a compacted log.
        min_compaction_lag_ms: ``min.compaction.lag.ms``, the minimum age at which a record is compacted (CL-22).
        flush_messages: ``flush.messages``, the number of records after which an append also flushes (LG-107).
        verifies_transactions: ``transaction.partition.verification.enable`` of the broker (3.6).
        preallocate: True if a new log file gets its full size immediately.
        compacts, deletes: True if ``cleanup.policy`` contains ``compact`` or ``delete``.
    """

    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    max_message_bytes: int | None = None
    producer_id_expiration_ms: int = EXPIRATION_MS
    log_append_time: bool = False
    timestamp_difference_max_ms: int = LONG_MAX
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int | None = None
    compression: Codec | None = None
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    flush_messages: int = LONG_MAX
    verifies_transactions: bool = False
    preallocate: bool = False
    compacts: bool = False
    deletes: bool = True

    @classmethod
    def of_topic(cls, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a topic's settings by their Kafka names; unrelated settings are ignored.

        Raises:
            ValueError: a value is not a number, or the codec is unknown.
        """
        values: dict[str, Any] = {field: int(settings[name]) for name, field in _INTEGERS.items() if name in settings}
        if _TIMESTAMP_TYPE in settings:
            values["log_append_time"] = settings[_TIMESTAMP_TYPE] == "LogAppendTime"
        if _VERIFICATION in settings:
            values["verifies_transactions"] = str(settings[_VERIFICATION]).lower() in ("true", "1")
        if _PREALLOCATE in settings:
            values["preallocate"] = str(settings[_PREALLOCATE]).lower() == "true"
        if _CLEANUP in settings:
            policies = {policy.strip() for policy in settings[_CLEANUP].split(",")}
            values["compacts"], values["deletes"] = "compact" in policies, "delete" in policies
        compression = settings.get(_COMPRESSION, _AS_PRODUCED)
        if compression != _AS_PRODUCED:
            if compression not in _CODECS:
                raise ValueError(
                    f"unknown {_COMPRESSION} {compression!r}; choose from {_AS_PRODUCED}, {', '.join(_CODECS)}"
                )
            values["compression"] = _CODECS[compression]
        return cls(**values)

    @property
    def init_file_size(self) -> int:
        """Initial length of a new log file."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def takes_any_timestamp(self) -> bool:
        """True if no timestamp limit is set, under the rules of any release."""
        limits = self.timestamp_difference_max_ms, self.timestamp_before_max_ms, self.timestamp_after_max_ms
        return limits == (LONG_MAX, LONG_MAX, LONG_MAX)

    def largest_message(self, dialect: Dialect) -> int:
        """Return the maximum size of a batch in bytes."""
        return dialect.default_message_bytes if self.max_message_bytes is None else self.max_message_bytes

    def timestamp_limits(self, dialect: Dialect) -> tuple[int, int]:
        """Return the milliseconds by which a producer's timestamp may be older, and newer, than the broker's clock.

        Up to 3.9, ``timestamp_difference_max_ms`` replaces each of the two limits that is not set.
        """
        both, before, after = (
            self.timestamp_difference_max_ms,
            self.timestamp_before_max_ms,
            self.timestamp_after_max_ms,
        )
        if not dialect.timestamps_have_two_limits:
            return both, both
        if after is None:
            after = dialect.default_newest_timestamp
        if not dialect.single_timestamp_limit:
            return before, after
        return both if before == LONG_MAX else before, both if after == LONG_MAX else after
