"""Kafka's own log of one release: ``kafka.log.Log``, ``kafka.log.UnifiedLog`` or ``o.a.k.storage.….UnifiedLog``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.files import JvmFiles
from conformance.implementations.jvm.fleet import JvmFleet
from conformance.implementations.jvm.virtual_machine import start_jvm
from conformance.operations import Operation, Outcome
from conformance.operations.batches import encode, is_marker
from conformance.operations.log import (
    EXPIRATION,
    LOG_ERROR_KINDS,
    LOG_SIGNATURES,
    TOPIC_DIRECTORY,
    LogObservation,
    LogState,
)
from kidx.producers import EXPIRATION_MS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOG_KIND_OF: Final = {
    "org.apache.kafka.common.errors.InvalidOffsetException": "invalid_offset",
    "kafka.common.IndexOffsetOverflowException": "offset_overflow",
    "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException": "offset_overflow",
    "kafka.common.LogSegmentOffsetOverflowException": "segment_overflow",
    "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException": "segment_overflow",
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
    "kafka.common.RecordValidationException": "invalid_record",
    "org.apache.kafka.storage.internals.log.RecordValidationException": "invalid_record",
    "org.apache.kafka.common.errors.InvalidTimestampException": "invalid_timestamp",
    "org.apache.kafka.common.errors.OutOfOrderSequenceException": "producer",
    "org.apache.kafka.common.errors.InvalidProducerEpochException": "producer",
    "org.apache.kafka.common.errors.ProducerFencedException": "producer",
    "org.apache.kafka.common.errors.InvalidTxnStateException": "producer",
    "org.apache.kafka.common.errors.TransactionCoordinatorFencedException": "producer",
    "org.apache.kafka.common.errors.UnsupportedForMessageFormatException": "unsupported_format",
    "org.apache.kafka.common.errors.KafkaStorageException": "io",
    "org.apache.kafka.common.KafkaException": "kafka",
    "java.lang.NegativeArraySizeException": "kafka",  # a snappy block of a negative length, up to 3.4
    "org.xerial.snappy.SnappyError": "kafka",  # the same, since
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IllegalStateException": "illegal_state",
    "java.nio.ReadOnlyBufferException": "read_only",
    "java.nio.BufferOverflowException": "buffer_overflow",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.io.IOException": "io",
}
"""Which of Kafka's exceptions is which kind; a class stands for its subclasses too."""

# The numbers of LogDriver.java.
_CODES: Final = {
    name: code
    for code, name in enumerate(
        (
            "roll_log",
            "truncate_log",
            "truncate_fully",
            "delete_records",
            "apply_retention",
            "update_high_watermark",
            "close_log",
            "crash_log",
            "set_clock",
            "assign_epoch",
            "expire_producers",
        )
    )
}
_SETTINGS: Final = {
    "message.timestamp.difference.max.ms": str((1 << 63) - 1),  # the timestamps of batches follow no clock
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}


class _Driving:
    """Tells a driver, or a fleet of them, to perform an operation."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        jpype = start_jvm()
        self._new_map = jpype.JClass("java.util.HashMap")
        self._longs = jpype.JArray(jpype.JLong)

    def __call__(self, operation: Operation) -> None:
        name, arguments = operation
        code = _CODES.get(name)
        if code is not None:
            first, second = (*arguments, 0, 0)[:2]
            self._driver.perform(code, int(first), int(second))
        elif name == "open_log":
            self._open(*arguments)
        elif name == "append_as_leader":
            batches, epoch = arguments
            self._driver.appendAsLeader(encode(batches), epoch, not is_marker(batches))
        elif name == "append_as_follower":
            batches, epoch = arguments
            self._driver.appendAsFollower(encode(batches), epoch)
        elif name == "list_offsets":
            self._driver.fetchOffsets(self._longs(arguments[0]))
        else:
            raise ValueError(f"{name} is the harness's own")

    def _open(self, settings: dict[str, Any], start: int, recovery_point: int, clean: bool, now: int) -> None:
        properties = self._new_map()
        for key, value in (_SETTINGS | settings).items():
            if key not in ("segment.bytes", EXPIRATION):
                properties.put(key, str(value))
        expiration_ms = settings.get(EXPIRATION, EXPIRATION_MS)
        self._driver.open(properties, settings["segment.bytes"], start, recovery_point, clean, now, expiration_ms)


class JvmLog(JvmFiles[LogObservation]):
    """One release's log."""

    driver_name = "LogDriver"
    group = "log"
    kind_of = LOG_KIND_OF
    error_kinds = LOG_ERROR_KINDS
    operations = LOG_SIGNATURES
    reply_bytes = 1 << 20
    driving = _Driving

    @property
    def class_name(self) -> str:
        """The Java class that is driven."""
        return str(self.driver.className())

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.driver.begin(str(directory / TOPIC_DIRECTORY))

    def perform_bytes(self, records: bytes, epoch: int) -> LogObservation:
        """Appends bytes as a follower."""
        self.driver.appendAsFollower(records, epoch)
        return self.observation(Operation("append_as_follower"))

    @staticmethod
    def fleet(members: Sequence[JvmLog]) -> JvmFleet:
        """All of them, to be driven as one."""
        return JvmFleet("LogFleet", members, _Driving)

    def value(self, name: str, values: tuple[int, ...]) -> Any:
        """See the base class."""
        if name == "list_offsets":
            return tuple(values[i + 1 : i + 4] if values[i] else None for i in range(0, len(values), 4))
        return bool(values[0]) if name == "truncate_log" else values[0]

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """See the base class."""
        return Outcome(kind, None, text)

    def observed(self, outcome: Outcome, state: tuple[int, ...]) -> LogObservation:
        """See the base class."""
        if not state:
            return LogObservation(outcome, None)
        return LogObservation(outcome, LogState.of_numbers(state))
