"""Reference of the log machine: kidx in the dialect of one release."""

from __future__ import annotations

import contextlib
import os
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.kidx.list_offsets import Answers, ListOffsetsCache, results_per_dialect
from conformance.implementations.kidx.shared_dialect import SharedDialect, SharedReference
from conformance.operations import OK, Operation, Outcome
from conformance.operations.batches import encode, first_batch, is_marker, producer_of
from conformance.operations.log import (
    DIRECTORIES,
    FIRST_MODIFIED,
    LOG_OPS,
    TOPIC_DIRECTORY,
    UNLIMITED,
    LogObservation,
    LogState,
)
from kidx.dialect.release_range import ReleaseRange
from kidx.errors import KidxError
from kidx.log import AppendResult, LogConfig, OffsetOutOfRangeError, UnifiedLog
from kidx.log.fetch import OffsetMetadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.log.fetch import Isolation
    from kidx.producers import ProducerStateManager, VerificationStateEntry

_KINDS_OF_LOGS = {
    "unsupported_version": "kafka",
    "io": "kafka",  # for an unreadable batch: a KafkaException, while other I/O errors are storage errors
}
"""The names that the log machine has for some of kidx's error kinds."""
NOT_FETCHED: Final = OffsetMetadata(-1)
_HALVES: Final = struct.Struct(">qq")  # a topic id


class KilledError(Exception):
    """Simulated end of the process."""


_HAS_EPOCH: Final = ReleaseRange.parse(">=2.8.0")
"""The releases in which the result of an append has a leader epoch."""


def reported(result: AppendResult, dialect: Dialect) -> tuple[int, ...]:
    """Return the result of an append as a release reports it; a leader epoch that it does not report is -1."""
    return tuple(result if dialect.like in _HAS_EPOCH else result._replace(leader_epoch=-1))


def _producer(producers: ProducerStateManager, producer: int) -> tuple[Any, ...]:
    entry = producers.producers[producer]
    began = entry.current_txn_first_offset
    timestamp = producers.last_timestamp(entry)
    batches = tuple(map(tuple, entry.batches))
    return producer, entry.producer_epoch, entry.coordinator_epoch, timestamp, -1 if began is None else began, batches


class ReferenceLog(SharedReference):
    """Reference with kidx's own log."""

    operations = LOG_OPS
    unified_log: type[UnifiedLog] = UnifiedLog

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self._answers: Answers = {}  # results of ListOffsets in other dialects, by release, where they differ
        self.listing = ListOffsetsCache()
        self.log: UnifiedLog | None = None
        self._now = 0
        self._guards: dict[int, VerificationStateEntry] = {}
        self._fetched = NOT_FETCHED
        self._calls: dict[str, Callable[..., Any]] = {
            "open_log": self._open,
            "set_clock": self._set_clock,
            "append_as_leader": self._append_as_leader,
            "append_as_follower": self._append_as_follower,
            "verify_transaction": self._verify_transaction,
            "append_verified": self._append_verified,
            "late_transactions": self._late_transactions,
            "list_offsets": self._list_offsets,
            "read_log": self._read,
            "fetch": self._fetch,
            "bytes_after": self._bytes_after,
            "raise_high_watermark": self._raise_high_watermark,
            "rename_log": self._rename,
            "delete_log": self._delete,
            "assign_topic_id": self._assign_topic_id,
            "topic_id": self._topic_id,
            "clean_log": self._clean,
            "crash_cleaning": self._crash_cleaning,
            "close_log": self._close,
            "crash_log": self.end,
        }

    @property
    def _opened(self) -> UnifiedLog:
        if self.log is None:
            raise ValueError("no log is open")
        return self.log

    def observation_of(self, dialect: Dialect, observation: LogObservation) -> LogObservation:
        """Return the observation for one dialect; results may differ although the log is the same."""
        found = self._answers.get(dialect.release)
        return observation if found is None else observation._replace(outcome=found)

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        super().begin(directory)
        self._guards.clear()
        self._fetched = NOT_FETCHED

    def end(self) -> None:
        """End the example; see the protocol."""
        log, self.log = self.log, None
        if log is not None:
            log.release_handles()

    def perform(self, operation: Operation) -> LogObservation:
        """Execute an operation; see the protocol."""
        name, arguments = operation
        if self._answers:
            self._answers = {}
        try:
            value = (self._calls.get(name) or getattr(self._opened, self.operations[name].method or name))(*arguments)
            outcome = OK if value is None or name == "roll_log" else Outcome(None, value)
        except KidxError as error:
            outcome = Outcome(_KINDS_OF_LOGS.get(error.kind, error.kind), None, error.kafka_message)
        except OSError:
            outcome = Outcome("io")
        return LogObservation(outcome, None if self.log is None else self._state(self.log))

    def _open(self, settings: dict[str, Any], start: int, recovery_point: int, clean: bool, now: int) -> None:
        self.end()
        self._now = now
        self.log = self._new_log(
            self._directory / TOPIC_DIRECTORY,
            UNLIMITED | settings,
            log_start_offset=start,
            recovery_point=recovery_point,
            clean=clean,
            clock=lambda: self._now,
            dialect=self.dialect,
        )

    def _new_log(self, directory: Path, settings: dict[str, Any], **options: Any) -> UnifiedLog:
        return self.unified_log(directory, LogConfig.of_topic(settings), **options)

    def _set_clock(self, now: int) -> None:
        self._now = now

    def _append_as_leader(self, batches: list[dict[str, Any]], epoch: int) -> tuple[int, ...]:
        return self._appended(self._opened.append_as_leader(encode(batches), epoch, from_client=not is_marker(batches)))

    def _verify_transaction(self, producer: int, sequence: int, epoch: int, raises_epochs: bool) -> bool:
        guard = self._opened.start_verification(producer, sequence, epoch, raises_epochs=raises_epochs)
        if guard is not None:
            self._guards[producer] = guard
        return guard is not None

    def _append_verified(self, batches: list[dict[str, Any]], epoch: int, version: int) -> tuple[int, ...]:
        return self._appended(
            self._opened.append_as_leader(
                encode(batches),
                epoch,
                from_client=not is_marker(batches),
                guard=self._guards.get(producer_of(batches)),
                transaction_version=version,
            )
        )

    def _append_as_follower(self, batches: list[dict[str, Any]], epoch: int) -> tuple[int, ...]:
        return self._appended(self._opened.append_as_follower(encode(batches), epoch))

    def _appended(self, result: AppendResult) -> tuple[int, ...]:
        """Return the fields of a result that the newest release has, and keep the fields that others have."""
        dialect = self.dialect
        if not isinstance(dialect, SharedDialect):
            return reported(result, dialect)
        *others, newest = dialect.members
        own = reported(result, newest)
        self._answers = {each.release: Outcome(None, its) for each in others if (its := reported(result, each)) != own}
        return own

    def _late_transactions(self, times: list[int]) -> int:
        log = self._opened
        return sum(log.has_late_transaction(time, log.config.producer_id_expiration_ms) for time in times)

    def _list_offsets(self, targets: list[int]) -> tuple[Any, ...]:
        log, dialect = self._opened, self.dialect
        members = [member.release for member in dialect.members] if isinstance(dialect, SharedDialect) else None
        answers, self._answers = self.listing.answers(log, targets, members, lambda: self._listed(targets))
        return answers

    def _listed(self, targets: list[int]) -> tuple[tuple[Any, ...], Answers]:
        """Return the results of the newest dialect, and by release the outcomes that differ; nothing is cached."""
        log = self._opened

        def answer(target: int) -> tuple[int, int, int] | None:
            found = log.fetch_offset_by_timestamp(target)
            if found is None:
                return None
            return found.timestamp, found.offset, -1 if found.leader_epoch is None else found.leader_epoch

        dialect = self.dialect
        if not isinstance(dialect, SharedDialect):
            return tuple([answer(target) for target in targets]), {}
        return results_per_dialect(log, dialect, targets, answer)

    def _read(self, offset: int) -> tuple[int, ...] | None:
        """Return the fields of the batch that contains an offset, or of the first batch after the offset."""
        log = self._opened
        if offset == log.end_offset and (offset >= log.start_offset or self.dialect.reads_end_below_start):
            return None  # without opening an index
        # A full truncation that failed has moved the segments, but not the log start offset.
        if log.segments.floor(offset) is None or not log.start_offset <= offset < log.end_offset:
            raise OffsetOutOfRangeError(f"offset {offset} is not in {log.start_offset}..{log.end_offset}")
        for segment in log.segments.values_from(offset):
            found = segment.translate_offset(offset)
            if found is not None:
                if (segment.base_offset, found.position) == log.end_place:
                    return None  # the batch is of a rejected append
                return first_batch(next(segment.batches(found.position)).to_bytes())
        return None

    def _fetch(self, offset: int, max_bytes: int, isolation: Isolation, whole_batch: bool) -> tuple[int, ...]:
        found = self._opened.fetch(offset, max_bytes, isolation, whole_batch=whole_batch)
        self._fetched = found.start
        transactions = [number for each in found.aborted or () for number in (each.producer_id, each.first_offset)]
        count = -1 if found.aborted is None else len(found.aborted)
        return (*found.start, found.size, int(found.is_incomplete), count, *transactions)

    def _bytes_after(self, offset: int, isolation: Isolation) -> tuple[int, ...]:
        log = self._opened
        start = log.fetch(offset, 1, isolation, whole_batch=True).start
        last_stable, watermark = log.last_stable_metadata(), log.watermark_metadata()
        limits = {"log_end": log.end_metadata, "high_watermark": watermark, "txn_committed": last_stable}
        limit = limits[isolation]
        is_older, is_newer = limit.is_on_older_segment(start), start.is_on_older_segment(limit)
        return (*limit, int(is_older), int(is_newer), -1 if is_older or is_newer else limit.bytes_from(start))

    def _raise_high_watermark(self, offset: int) -> tuple[int, ...] | None:
        log = self._opened
        if self._fetched.offset == offset:
            known = self._fetched
        elif offset > log.end_offset:
            known = OffsetMetadata(offset)
        else:
            known = log.fetch(offset, 1, whole_batch=True).start
        return log.raise_high_watermark(known)

    def _assign_topic_id(self, number: int) -> None:
        self._opened.assign_topic_id(urlsafe_b64encode(_HALVES.pack(1, number)).rstrip(b"=").decode())

    def _topic_id(self) -> tuple[int, ...] | None:
        topic_id = self._opened.topic_id
        return None if topic_id is None else _HALVES.unpack(urlsafe_b64decode(topic_id + "=="))

    def _rename(self, role: str) -> None:
        self._opened.rename_directory(DIRECTORIES[role], deletes=role == "deleted")

    def _delete(self) -> None:
        self._opened.delete()
        self.log = None

    def _clean(
        self, checkpoint: int, io_buffer_size: int, slots: int, age: int, at: Callable[[str], None] | None = None
    ) -> tuple[int, ...] | None:
        log = self._opened
        for number, segment in enumerate(log.segments):
            modified = (FIRST_MODIFIED + number * age) * 1_000_000
            os.utime(segment.log.path, ns=(modified, modified))
        known = None if checkpoint < 0 else checkpoint
        done = log.clean(known, io_buffer_size=io_buffer_size, slots=slots, at=at)
        return None if done is None else astuple(done)

    def _crash_cleaning(
        self, checkpoint: int, io_buffer_size: int, slots: int, age: int, place: str, number: int
    ) -> None:
        left = number

        def at(reached: str) -> None:
            nonlocal left
            if reached == place:
                left -= 1
                if left == 0:
                    raise KilledError

        with contextlib.suppress(KilledError, KidxError, OSError):
            self._clean(checkpoint, io_buffer_size, slots, age, at)
        self.end()

    def index_lengths(self) -> dict[str, int]:
        """Return the number of bytes of entries in each loaded offset and time index, by file name."""
        segments = () if self.log is None else self.log.segments
        indexes = (index for each in segments for index in (each.lazy_offset_index, each.lazy_time_index))
        return {index.path.name: index.get().size_in_bytes for index in indexes if index.is_loaded}

    def delete_before_start(self) -> LogState:
        """Delete the segments before the log start offset, as a log does that does not wait for retention."""
        self._opened.delete_segments_before_start()
        return self._state(self._opened)

    def _close(self, prepared: bool) -> None:
        self._opened.close(prepare=prepared)
        self.log = None  # a log that failed to close is still open, as in Kafka

    @staticmethod
    def _state(log: UnifiedLog) -> LogState:
        producers = log.producers
        return LogState(
            log.start_offset,
            log.end_offset,
            log.high_watermark,
            log.last_stable_offset,
            log.recovery_point,
            tuple([(segment.base_offset, segment.size) for segment in log.segments]),
            producers.map_end_offset,
            tuple(sorted(producers.ongoing)),
            tuple(sorted(producers.unreplicated)),
            tuple([_producer(producers, producer) for producer in sorted(producers.producers)]),
        )
