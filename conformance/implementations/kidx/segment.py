"""Reference of the segment machine: kidx's ``LogSegment`` in the dialect of one release."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from conformance.implementations.jvm.segment import SEGMENT_SILENT, comparable, source_file
from conformance.implementations.kidx.shared_dialect import SharedReference
from conformance.operations import OK, Operation, Outcome
from conformance.operations.segment import SEGMENT_OPS, IndexState, SegmentObservation, SegmentState
from kidx.errors import KidxError
from kidx.index.offset import OffsetPosition
from kidx.segment import CompletedTxn, FileRecords, LogSegment, ProducerState, RollParams, SegmentConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimeIndex


class ReferenceSegment(SharedReference):
    """Reference with kidx's own segment."""

    operations = SEGMENT_OPS
    log_segment: type[LogSegment] = LogSegment

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self._segment: LogSegment | None = None
        self._calls: dict[str, Callable[..., Any]] = {}
        self._now = 0

    def end(self) -> None:
        """End the example; see the protocol."""
        if self._segment is not None:
            self._release()

    def perform(self, operation: Operation) -> SegmentObservation:
        """Execute an operation; see the protocol."""
        outcome = self._outcome(operation)
        return SegmentObservation(outcome, None if self._segment is None else _state(self._segment))

    def ask(self, operation: Operation) -> SegmentObservation:
        """Return the outcome of an operation that changes nothing; the observation has no state."""
        return SegmentObservation(self._outcome(operation), None)

    def _outcome(self, operation: Operation) -> Outcome:
        name, arguments = operation
        try:
            value = (self._open if name == "open_segment" else self._calls[name])(*arguments)
        except KidxError as error:
            return self.refusal(error)
        except OSError:
            return Outcome("io")
        return OK if value is None else Outcome(None, value)

    def refusal(self, error: KidxError) -> Outcome:
        """Return the outcome of an error."""
        text = error.kafka_message
        if text is None or error.kind in SEGMENT_SILENT:
            return Outcome(error.kind)
        return Outcome(error.kind, None, comparable(text, str(self._directory)))

    # -- operations --------------------------------------------------------------------------------------------

    def _open(
        self,
        base_offset: int,
        index_interval: int,
        index_size: int,
        roll_jitter_ms: int,
        file_already_exists: bool,
        init_file_size: int,
        preallocate: bool,
        suffix: str,
        now: int,
    ) -> None:
        self.end()
        self._now = now
        segment = self.log_segment.open(
            self._directory,
            base_offset,
            SegmentConfig(index_interval_bytes=index_interval, segment_index_bytes=index_size),
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
            file_suffix=suffix,
            clock=lambda: self._now,
            dialect=self.dialect,
        )
        segment.roll_jitter_ms = roll_jitter_ms
        self._segment = segment
        self._calls = self._calls_of(segment)

    def _calls_of(self, segment: LogSegment) -> dict[str, Callable[..., Any]]:
        return {
            "append_records": lambda records, last, timestamp, offset: segment.append(
                bytes.fromhex(records), largest_offset=last, largest_timestamp=timestamp, shallow_offset=offset
            ),
            "append_from_file": lambda records, start: self._append_from_file(segment, records, start),
            "update_txn_index": lambda *fields: segment.update_txn_index(CompletedTxn(*fields[:4]), fields[4]),
            "should_roll": lambda *fields: segment.should_roll(RollParams(*fields)),
            "become_inactive": segment.on_become_inactive_segment,
            "close_segment": segment.close,
            "close_handlers": segment.close_handlers,
            "crash_segment": self._release,
            "recover_segment": lambda: segment.recover(ProducerState("t-0", self.dialect)),
            "truncate_segment": lambda offset, now: self._truncate(segment, offset, now),
            "translate_offset": segment.translate_offset,
            "read_segment": segment.read,
            "read_next_offset": segment.read_next_offset,
            "find_offset": lambda *arguments: _find(segment, *arguments),
            "largest_timestamp": lambda modified: _largest_timestamp(segment, modified),
            "first_batch_timestamp": lambda: segment.first_batch_timestamp,
            "has_overflow": lambda: segment.has_overflow,
            "upper_bound_in_segment": lambda offset, position, size: segment.fetch_upper_bound_offset(
                OffsetPosition(offset, position), size
            ),
            "collect_from_segment": lambda start, end: tuple(segment.collect_aborted_txns(start, end)),
            "check_segment": segment.sanity_check,
            "resize_indexes": segment.resize_indexes,
            "flush_segment": segment.flush,
            "rename_segment": segment.change_file_suffixes,
            "delete_segment": segment.delete_if_exists,
            "lose_directory": lambda: segment.update_parent_dir(self._directory / "missing"),
        }

    def _append_from_file(self, segment: LogSegment, records: str, start: int) -> int:
        with source_file(str(self._directory), records) as path:
            source = FileRecords(path, file_already_exists=True, dialect=self.dialect)
            try:
                return segment.append_from_file(source, start)
            finally:
                source.close_handlers()

    def _truncate(self, segment: LogSegment, offset: int, now: int) -> int:
        self._now = now
        return segment.truncate_to(offset)

    def _release(self) -> None:
        """Release the segment as a killed process does, without trimming or flushing it."""
        segment, self._segment, self._calls = self._segment, None, {}
        if segment is not None:
            segment.release_handles()


def _find(segment: LogSegment, timestamp: int, starting_offset: int, max_record_body_size: int) -> Any:
    segment.max_record_body_size = max_record_body_size
    found = segment.find_offset_by_timestamp(timestamp, starting_offset)
    if found is None:
        return None
    return found.timestamp, found.offset, -1 if found.leader_epoch is None else found.leader_epoch


def _largest_timestamp(segment: LogSegment, last_modified: int) -> int:
    if segment.log.path.exists():
        os.utime(segment.log.path, ns=(last_modified * 1_000_000, last_modified * 1_000_000))
    return segment.largest_timestamp


def _state(segment: LogSegment) -> SegmentState:
    offset_index = segment.lazy_offset_index.get() if segment.lazy_offset_index.is_loaded else None
    time_index = segment.lazy_time_index.get() if segment.lazy_time_index.is_loaded else None
    maximum = segment.maximum.cached()
    return SegmentState(
        segment.size,
        segment.bytes_since_last_index_entry,
        segment.created,
        segment.rolling_based_timestamp,
        None if maximum is None else tuple(maximum),  # type: ignore[arg-type]
        None if offset_index is None else _index_state(offset_index, (offset_index.last_offset,)),
        None if time_index is None else _index_state(time_index, tuple(time_index.last_entry)),
        segment.txn_index.last_offset,
    )


def _index_state(index: OffsetIndex | TimeIndex, last: tuple[int, ...]) -> IndexState:
    return IndexState(index.entries, index.max_entries, index.length, last)
