"""Kafka's own log of one release: ``kafka.log.Log``, ``kafka.log.UnifiedLog`` or ``o.a.k.storage.….UnifiedLog``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.files import JvmFiles
from conformance.implementations.jvm.script import require_ints, step
from conformance.operations import Operation, Outcome
from conformance.operations.batches import encode, is_marker, producer_of
from conformance.operations.log import (
    EXPIRATION,
    LOG_ERROR_KINDS,
    PLACES,
    TOPIC_DIRECTORY,
    UNLIMITED,
    VERIFICATION,
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
    "kafka.common.RecordValidationException": "refused_records",
    "org.apache.kafka.storage.internals.log.RecordValidationException": "refused_records",
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
    "java.lang.UnsupportedOperationException": "unsupported_operation",
    "java.lang.NullPointerException": "closed",
    "java.nio.ReadOnlyBufferException": "read_only",
    "java.nio.BufferOverflowException": "buffer_overflow",
    "java.nio.BufferUnderflowException": "buffer_underflow",
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
            "append_as_leader",
            "append_as_follower",
            "list_offsets",
            "open_log",
            "offset_snapshot",
            "clean_log",
            "crash_cleaning",
            "verify_transaction",
            "append_verified",
        )
    )
}


_NUMBERS: Final = frozenset({"offset_snapshot", "clean_log"})
"""Operations with several numbers as their value."""


def _step(operation: Operation) -> bytes:
    """The beginning of a step of a script."""
    name, arguments = operation
    code = _CODES.get(name)
    if code is None:
        raise ValueError(f"{name} is the harness's own")
    if name == "open_log":
        return _opening(*arguments)
    if name in ("append_as_leader", "append_as_follower"):
        batches, epoch = arguments
        require_ints(epoch)
        return step(code, (epoch, not is_marker(batches)), encode(batches))
    if name == "append_verified":
        batches, epoch, version = arguments
        require_ints(epoch, version)
        return step(code, (epoch, not is_marker(batches), producer_of(batches), version), encode(batches))
    if name == "verify_transaction":
        require_ints(arguments[1], arguments[2])
    if name == "list_offsets":
        return step(code, arguments[0])
    if name == "assign_epoch":
        require_ints(arguments[0])
    if name in ("clean_log", "crash_cleaning"):
        checkpoint, buffer, slots, age, *place = arguments
        require_ints(buffer, slots)
        stops = (PLACES.index(place[0]), place[1]) if place else ()
        return step(code, (checkpoint, buffer, slots, age, *stops))
    return step(code, arguments)


def _opening(settings: dict[str, Any], start: int, recovery_point: int, clean: bool, now: int) -> bytes:
    words = "".join(
        f"\0{name}\0{value}"
        for name, value in (UNLIMITED | settings).items()
        if name not in ("segment.bytes", EXPIRATION, VERIFICATION)
    )
    segment_bytes, expiration_ms = settings["segment.bytes"], settings.get(EXPIRATION, EXPIRATION_MS)
    require_ints(segment_bytes, expiration_ms)
    numbers = segment_bytes, start, recovery_point, clean, now, expiration_ms, settings.get(VERIFICATION, 0)
    return step(_CODES["open_log"], numbers, words.encode())


class JvmLog(JvmFiles[LogObservation]):
    """One release's log."""

    driver_name = "LogDriver"
    group = "log"
    kind_of = LOG_KIND_OF
    error_kinds = LOG_ERROR_KINDS
    operations = _CODES
    reply_bytes = 1 << 20
    any_text = True
    step_of = staticmethod(_step)

    @property
    def class_name(self) -> str:
        """The Java class that is driven."""
        return str(self.driver.className())

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self.driver.begin(str(directory / TOPIC_DIRECTORY))

    def perform_bytes(self, records: bytes, epoch: int) -> LogObservation:
        """Appends bytes as a follower."""
        self.driver.step(step(_CODES["append_as_follower"], (epoch,), records))
        return self.observation(Operation("append_as_follower"))

    @staticmethod
    def numbers_of_value(name: str, value: Any) -> Sequence[int]:
        """See the base class."""
        if name == "list_offsets":
            return [number for found in value for number in ((0, -1, -1, -1) if found is None else (1, *found))]
        return value if name in _NUMBERS else (value,)

    @staticmethod
    def numbers_of_state(state: LogState) -> Sequence[int]:
        """See the base class."""
        return state.to_numbers()

    def value(self, name: str, values: tuple[int, ...]) -> Any:
        """See the base class."""
        if name == "list_offsets":
            return tuple(values[i + 1 : i + 4] if values[i] else None for i in range(0, len(values), 4))
        if name in _NUMBERS:
            return values
        return bool(values[0]) if name in ("truncate_log", "verify_transaction") else values[0]

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """See the base class."""
        return Outcome(kind, None, text)

    def observed(self, outcome: Outcome, state: tuple[int, ...]) -> LogObservation:
        """See the base class."""
        if not state:
            return LogObservation(outcome, None)
        return LogObservation(outcome, LogState.of_numbers(state))
