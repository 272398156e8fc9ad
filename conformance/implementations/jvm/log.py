"""Kafka's own log of one release: ``kafka.log.Log``, ``kafka.log.UnifiedLog`` or ``o.a.k.storage.….UnifiedLog``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.step_batch import Requests, performed, require_int, step
from conformance.operations import Operation, Outcome
from conformance.operations.log import (
    EXPIRATION,
    LOG_ERROR_KINDS,
    LOG_OPS,
    TOPIC_DIRECTORY,
    UNLIMITED,
    VERIFICATION,
    LogObservation,
    LogState,
)
from kidx.producers import EXPIRATION_MS

if TYPE_CHECKING:
    from pathlib import Path

LOG_KIND_OF: Final = {
    "org.apache.kafka.common.errors.InvalidOffsetException": "invalid_offset",
    "kafka.common.IndexOffsetOverflowException": "offset_overflow",
    "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException": "offset_overflow",
    "kafka.common.LogSegmentOffsetOverflowException": "segment_overflow",
    "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException": "segment_overflow",
    "kafka.common.LogCleaningAbortedException": "cleaning_aborted",
    "org.apache.kafka.storage.internals.log.LogCleaningAbortedException": "cleaning_aborted",
    "kafka.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.storage.internals.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.common.errors.OffsetOutOfRangeException": "out_of_range",
    "kafka.common.OffsetsOutOfOrderException": "out_of_order",
    "org.apache.kafka.common.errors.OffsetsOutOfOrderException": "out_of_order",
    "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException": "out_of_order",
    "kafka.common.UnexpectedAppendOffsetException": "unexpected_offset",
    "org.apache.kafka.storage.internals.log.UnexpectedAppendOffsetException": "unexpected_offset",
    "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException": "unexpected_offset",
    "org.apache.kafka.common.errors.RecordBatchTooLargeException": "too_large",
    "org.apache.kafka.common.errors.RecordTooLargeException": "too_large",
    "org.apache.kafka.common.errors.CorruptRecordException": "corrupt_record",
    "org.apache.kafka.common.InvalidRecordException": "invalid_record",
    "kafka.common.RecordValidationException": "refused_records",
    "org.apache.kafka.storage.internals.log.RecordValidationException": "refused_records",
    "org.apache.kafka.common.errors.InvalidTimestampException": "invalid_timestamp",
    "org.apache.kafka.common.errors.UnknownProducerIdException": "unknown_producer",
    "org.apache.kafka.common.errors.OutOfOrderSequenceException": "out_of_order_sequence",
    "org.apache.kafka.common.errors.InvalidProducerEpochException": "producer_fenced",
    "org.apache.kafka.common.errors.ProducerFencedException": "producer_fenced",
    "org.apache.kafka.common.errors.InvalidTxnStateException": "invalid_txn_state",
    "org.apache.kafka.common.errors.TransactionCoordinatorFencedException": "coordinator_fenced",
    "org.apache.kafka.common.errors.UnsupportedForMessageFormatException": "unsupported_format",
    "org.apache.kafka.common.errors.KafkaStorageException": "io",
    "org.apache.kafka.common.KafkaException": "kafka",
    "java.lang.NegativeArraySizeException": "kafka",  # a snappy block of a negative length, up to 3.4
    "org.xerial.snappy.SnappyError": "kafka",  # the same, since
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IllegalStateException": "illegal_state",
    "java.lang.UnsupportedOperationException": "unsupported_operation",
    "java.lang.NullPointerException": "closed",
    "java.nio.ReadOnlyBufferException": "read_only",
    "java.nio.BufferOverflowException": "buffer_overflow",
    "java.nio.BufferUnderflowException": "buffer_underflow",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.io.IOException": "io",
}
"""Error kinds of Kafka's exceptions; a class includes its subclasses."""

_SETTINGS: Final = UNLIMITED | {EXPIRATION: EXPIRATION_MS, VERIFICATION: 0}
"""Settings that a log has unless ``open_log`` sets them."""


def of_settings(settings: dict[str, Any]) -> bytes:
    """Encode topic settings for Java: names and values, separated by zero bytes."""
    settings = _SETTINGS | settings
    require_int(settings["segment.bytes"])
    require_int(settings[EXPIRATION])
    return "\0".join(f"{name}\0{value}" for name, value in settings.items()).encode()


_OPERATIONS: Final = performed(LOG_OPS)


class JvmLog(JvmClasses[LogObservation]):
    """Log of one release; the base class explains the attributes."""

    driver_name = "LogDriver"
    group = "log"
    kind_of = LOG_KIND_OF
    error_kinds = LOG_ERROR_KINDS
    operations = _OPERATIONS
    state = LogState
    observation_type = LogObservation
    reply_bytes = 1 << 20
    ignores_texts = True
    encode_step = Requests(_OPERATIONS, of_settings)

    @property
    def class_name(self) -> str:
        """Name of the Java class of the log."""
        return str(self.driver.className())

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory / TOPIC_DIRECTORY)

    def perform_bytes(self, records: bytes, epoch: int) -> LogObservation:
        """Append bytes as a follower."""
        self.driver.step(step(list(_OPERATIONS).index("append_as_follower"), (epoch,), records))
        return self.observation(Operation("append_as_follower"))

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """Return the outcome of an exception; see the base class."""
        return Outcome(kind, None, text)
