"""What a log is configured with: the topic settings that this package reads, under Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kidx.producers import EXPIRATION_MS
from kidx.segment import SegmentConfig

_INTEGERS: Final = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "max.decompressed.message.bytes": "max_record_body_size",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "max.message.bytes": "max_message_bytes",
    "producer.id.expiration.ms": "producer_id_expiration_ms",
}
_TIMESTAMP_TYPE: Final = "message.timestamp.type"


@dataclass(frozen=True, slots=True)
class LogConfig(SegmentConfig):
    """The settings of one topic.

    Attributes:
        retention_ms: ``retention.ms``, the age at which a segment is deleted; negative for never.
        retention_bytes: ``retention.bytes``, the size beyond which the oldest segments are; negative for never.
        max_message_bytes: ``max.message.bytes``, the largest batch.
        producer_id_expiration_ms: ``producer.id.expiration.ms`` of the broker, the silence that makes it forget a
            producer.
        log_append_time: whether ``message.timestamp.type`` is ``LogAppendTime``.
    """

    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    max_message_bytes: int = 1_048_588
    producer_id_expiration_ms: int = EXPIRATION_MS
    log_append_time: bool = False

    @classmethod
    def of_topic(cls, settings: Mapping[str, Any]) -> Self:
        """From a topic's settings by their names in Kafka; those that say nothing about a log's files are ignored.

        Raises:
            ValueError: a number is none.
        """
        values: dict[str, Any] = {field: int(settings[name]) for name, field in _INTEGERS.items() if name in settings}
        if _TIMESTAMP_TYPE in settings:
            values["log_append_time"] = settings[_TIMESTAMP_TYPE] == "LogAppendTime"
        return cls(**values)
