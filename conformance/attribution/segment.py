"""Rows about segments (clauses SEG): the steps on a segment that exercise each clause.

A row names a clause, the operations and results (``ok`` or an error kind) that exercise it, and what a violation would
have changed, perhaps with a condition: :class:`~conformance.attribution.rules.Row` explains the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.attribution.rules import ANY, Condition, Row, Rules
from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.java_values import INT_MAX
from kidx.producers import ProducerState
from kidx.records import Codec, CorruptRecordError, InvalidRecordError, iter_batches

if TYPE_CHECKING:
    from conformance.operations import Operation, Outcome
    from conformance.operations.segment import IndexState, SegmentObservation, SegmentState

_ANY_REFUSAL = (
    "invalid_offset offset_overflow invalid_argument illegal_state corrupt_record invalid_record out_of_bounds"
    " buffer_overflow closed io"
)
"""Every kind of error with which a truncation can fail."""


@dataclass(slots=True)
class TrackedSegment:
    """State of a segment before a step that the segment itself does not report.

    Attributes:
        release: The release whose catalogue applies.
        state: The reference's state before the step, or None while no segment is open.
        corrupted: The suffixes of the files that have been corrupted since the last recovery.
        closed: True if the segment has been closed and not opened again.
        crashed: True if the process was killed and the files have not been recovered since.
        lost: True if the harness has removed the directory since the segment was opened.
        calls: The number of appends since the segment was opened.
    """

    release: str
    state: SegmentState | None = None
    corrupted: set[str] = field(default_factory=set)
    closed: bool = False
    crashed: bool = False
    lost: bool = False
    calls: int = 0


def track_segment_step(now: TrackedSegment, operation: Operation, observation: SegmentObservation) -> None:
    """Update the tracked state with a step; call :func:`segment_clauses_of` before."""
    name = operation.name
    if name == "open_segment":
        now.closed, now.lost, now.calls = False, False, 0
    elif name == "lose_directory":
        now.lost = True
    elif name in ("close_segment", "delete_segment"):
        now.closed = True
        now.crashed = False
    elif name == "crash_segment":
        now.crashed = not now.closed
    elif name == "recover_segment":
        now.crashed = False
        now.corrupted.clear()
    elif name == "append_records" and observation.outcome.error is None and operation.args[0]:
        now.calls += 1
    now.state = observation.state


class SegmentStep(NamedTuple):
    """Input of a row's condition.

    Attributes:
        args: The operation's arguments.
        before: The tracked state before the step.
        was: The state before the step; for the first ``open_segment``, the state after it.
        now: The state after the step.
        files_before: Log, offset index, time index and transaction index before the step; None if a file is missing.
        files: The same files after the step.
    """

    args: tuple[Any, ...]
    before: TrackedSegment
    was: SegmentState
    outcome: Outcome
    now: SegmentState
    files_before: tuple[bytes | None, ...]
    files: tuple[bytes | None, ...]


def _entries(index: IndexState | None) -> int:
    return 0 if index is None else index.entries


def _grew(step: SegmentStep) -> bool:
    return step.now.size > step.was.size


def _created(step: SegmentStep, file: int) -> bool:
    return step.files_before[file] is None and step.files[file] is not None


def _changed(step: SegmentStep, file: int) -> bool:
    return step.files_before[file] != step.files[file]


def _opened(index: IndexState | None) -> bool:
    return index is not None


def _has(codec: Codec) -> Condition:
    def holds(step: SegmentStep) -> bool:
        try:
            return any(batch.codec is codec for batch in iter_batches(step.files[0] or b""))
        except KidxError:
            return False

    return holds


def _ends_unreadably(step: SegmentStep) -> bool:
    """Return True if the last batch of the log has a marker that cannot be read."""
    try:
        batches = list(iter_batches(step.files[0] or b""))
        if batches and batches[-1].is_control:
            ProducerState(dialect=dialect_of(step.before.release)).update(batches[-1])
    except (CorruptRecordError, InvalidRecordError):
        return True
    except KidxError:
        pass
    return False


_NO_LIMIT = INT_MAX - 8
"""The value of ``max_record_body_size``, the third argument of ``find_offset``, that means no limit."""
_READS = "translate_offset read_segment read_next_offset find_offset"
"""The operations that read the log."""

# fmt: off
ROWS: tuple[Row, ...] = (
    Row("SEG-1", "open_segment", "ok", "index files would exist", lambda s: s.files[1] is None and s.files[2] is None),
    Row("SEG-1", "append_records", "ok", "an index file would be missing", lambda s: _created(s, 1) or _created(s, 2)),
    Row("SEG-2a", "append_records", "ok", "something would be written", lambda s: not s.args[0]),
    Row("SEG-2b", "append_records", "offset_overflow", "the records would be written"),
    Row("SEG-2c", "append_records", "ok", "the call would be rejected", lambda s: s.args[1] < 0,
        "few calls name a largest offset below 0"),
    Row("SEG-2d", "append_records", "offset_overflow", "the time index would not exist",
        lambda s: not _opened(s.was.time_index)),
    Row("SEG-2e", "append_records", "offset_overflow", "the time index would exist",
        lambda s: not _opened(s.was.time_index)),
    Row("SEG-3 SEG-4", "append_records", "ok invalid_offset invalid_argument", "the entries, or what is counted",
        _grew),
    Row("SEG-5", "append_records recover_segment", "ok", "key or position of the entry",
        lambda s: _entries(s.now.offset_index) > 0 and _changed(s, 1)),
    Row("SEG-6", "append_records", "ok", "the maximum is part of the state",
        lambda s: _grew(s) and s.was.maximum is not None),
    Row("SEG-7", "append_records", "ok", "the count of bytes is part of the state",
        lambda s: _grew(s) and s.before.calls == 0 and s.was.size > 0),
    Row("SEG-9", "recover_segment", ANY, "the indexes would be unchanged since the leader wrote them"),
    Row("SEG-10a SEG-10b", "append_records", "ok", "the rolling timestamp is part of the state",
        lambda s: s.was.size == 0 and _grew(s)),
    Row("SEG-10b", "should_roll first_batch_timestamp", "ok", "the rolling timestamp is part of the state",
        lambda s: s.was.rolling_based_timestamp is None and s.now.rolling_based_timestamp is not None),
    Row("SEG-12", "append_records", "invalid_offset", "nothing would be written", _grew),
    Row("SEG-13", "append_from_file", "ok", "more or fewer batches would be copied", _grew),
    Row("SEG-20", "should_roll", "ok", "the answer"),
    Row("SEG-22", "become_inactive", "ok", "the files would keep their preallocated tails, or lack the last entry"),
    Row("SEG-24a", "close_segment", "ok", "the indexes would not be finished, or not exist",
        lambda s: not s.before.closed),
    Row("SEG-24b", "close_segment", "ok", "an index would be created, or not be finished",
        lambda s: not s.before.closed),
    Row("SEG-24f", "close_segment", "ok", "an index would be created",
        lambda s: not s.before.closed and (s.was.offset_index is None or s.was.time_index is None)),
    Row("SEG-24c", "close_segment", "ok", "an index would be trimmed, or get an entry", lambda s: not s.before.closed),
    Row("SEG-24d", "close_segment", "ok", "closing a closed log, or one that is lost, would fail",
        lambda s: s.before.closed or s.before.lost),
    Row("SEG-24e", "close_segment", "io", "the error would be swallowed",
        rare="the newest release trims nothing when it closes, which could fail"),
    Row("SEG-24e", "close_segment", "ok", "the error would be raised", lambda s: s.before.lost),
    Row("SEG-25", "append_records resize_indexes truncate_segment", "ok", "the length of an index file",
        lambda s: _changed(s, 1) or _changed(s, 2)),
    Row("SEG-28a", "rename_segment close_handlers", "ok", "an index would be missing",
        lambda s: s.was.offset_index is None or s.was.time_index is None),
    Row("SEG-28a", "delete_segment rename_segment", "invalid_argument", "the operation would succeed"),
    Row("SEG-28b", "rename_segment delete_segment close_handlers", "ok", "an index would be created",
        lambda s: s.was.offset_index is None or s.was.time_index is None),
    Row("SEG-29", "close_handlers", "ok", "a file would change"),
    Row("SEG-32a", "recover_segment", ANY, "there would be no record", lambda s: _changed(s, 3)),
    Row("SEG-32b", "recover_segment", "ok", "there would be a record", lambda s: s.now.size > 0),
    Row("SEG-39", "recover_segment", "producer_fenced coordinator_fenced", "the recovery would continue"),
    Row("SEG-41", "recover_segment", "invalid_txn_state", "the recovery would continue, or the log be cut"),
    Row("SEG-42", "recover_segment", "ok", "the batch would be cut as well, or the recovery fail", _ends_unreadably,
        "few markers cannot be read"),
    Row("SEG-43", "recover_segment", "buffer_underflow", "the recovery would continue",
        rare="few markers are truncated"),
    Row("SEG-44", "largest_timestamp truncate_segment should_roll", "ok", "the maximum is part of the state",
        lambda s: s.now.maximum is None and s.now.time_index is not None),
    Row("SEG-45", "truncate_segment", "corrupt_record invalid_record io", "the maximum is part of the state"),
    Row("SEG-30", "recover_segment", "ok", "the bytes cut, or what is in the files"),
    Row("SEG-33", "recover_segment", "invalid_offset", "the recovery would continue",
        rare="few corrupt files contain batches out of order"),
    Row("SEG-34", "recover_segment", "ok", "an index would not be full",
        lambda s: s.now.offset_index is not None and s.now.offset_index.entries == s.now.offset_index.max_entries),
    Row("SEG-36", "largest_timestamp", "ok", "the answer would not be the file's time",
        lambda s: s.outcome.value == s.args[0] and s.was.size > 0,
        "few logs have no timestamps, and few segments no time index"),
    Row("SEG-37", "open_segment", "ok", "entries and last entry of the index are part of the state",
        lambda s: s.before.crashed),
    Row("SEG-37", _READS, "ok", "the answer", lambda s: s.before.crashed),
    Row("SEG-38", "truncate_segment", "ok", "the files and what the segment remembers"),
    Row("SEG-38", "truncate_segment", _ANY_REFUSAL, "the files that were truncated before the error"),
    Row("SEG-40", "read_next_offset", "ok", "the answer"),
    Row("SEG-50", "translate_offset read_segment", "ok", "the offset of the answer",
        lambda s: s.outcome.value is not None),
    Row("SEG-51", "translate_offset read_segment truncate_segment", "ok corrupt_record", "another batch, or the error",
        lambda s: s.was.size > 0),
    Row("SEG-52", "find_offset", "ok", "the answer", lambda s: s.was.size > 0),
    Row("SEG-53", "largest_timestamp", "ok", "the answer"),

    # Clauses of other chapters that apply to the parts of a segment.
    Row("TX-15", "update_txn_index", "ok", "a record, or none", lambda s: _changed(s, 3) == bool(s.args[3])),
    Row("TX-15", "recover_segment", "ok", "the records", lambda s: _changed(s, 3)),
    Row("TX-12b", "check_segment", "corrupt", "the text"),
    Row("TX-12c", "check_segment", "corrupt", "the text", rare="few corruptions are of a transaction index"),
    Row("LZ-1", "append_records", "ok", "an index would be missing, or open before", lambda s: _created(s, 1)),
    Row("LZ-1", "open_segment", "ok", "an index would be open", lambda s: s.now.offset_index is None),
    Row("LZ-3a", "close_segment rename_segment close_handlers", "ok", "an index would be missing",
        lambda s: s.was.offset_index is None),
    Row("LZ-3b", "close_segment rename_segment delete_segment close_handlers", "ok", "an index would be created",
        lambda s: s.was.offset_index is None),
    Row("FR-1", "find_offset", "ok", "the answer", lambda s: s.was.size > 0),
    Row("SEG-46", "find_offset recover_segment", "closed", "a different error"),
    Row("SEG-47", "find_offset recover_segment", "out_of_bounds", "a different error"),
    Row("SEG-48", "find_offset", "invalid_argument", "a different error",
        lambda s: not str(s.outcome.text).startswith("Unknown compression")),
    Row("SEG-49", "find_offset", "invalid_record", "a different error", _has(Codec.GZIP)),
    Row("SEG-54", "find_offset", "io", "a different error", _has(Codec.ZSTD)),
    Row("FR-1b", "find_offset", "invalid_record", "there would be an answer", lambda s: s.args[2] < _NO_LIMIT),
    Row("FR-3", "truncate_segment", "ok", "the maximum is part of the state", lambda s: s.now.maximum is not None),
    Row("RB-1", "recover_segment", "ok", "the batch would be cut", lambda s: s.now.size > 0),
    Row("RB-2", "recover_segment read_next_offset translate_offset", "ok", "sizes and last offsets of batches",
        lambda s: s.now.size > 0),
    Row("RB-3", "find_offset", "ok", "the timestamp of the answer", lambda s: s.outcome.value is not None),
    Row("RB-4", "recover_segment", "ok", "what is cut", lambda s: s.now.size < s.was.size),
    Row("RB-4", _READS, "corrupt_record", "there would be an answer"),
)
# fmt: on


@cache
def _rules_of(release: str) -> Rules:
    return Rules(ROWS, release)


def segment_clauses_of(
    operation: Operation,
    before: TrackedSegment,
    observation: SegmentObservation,
    files_before: tuple[bytes | None, ...],
    files: tuple[bytes | None, ...],
) -> tuple[str, ...]:
    """Return the clauses that a step exercises, in the order of :meth:`.Rules.exercised`.

    Args:
        before: The tracked state before the step.
        observation: The reference's observation.
        files_before: The four files before the step.
        files: The four files after the step.
    """
    name, args = operation
    outcome, now = observation
    if now is None:
        return ()
    step = SegmentStep(args, before, before.state or now, outcome, now, files_before, files)
    return _rules_of(before.release).exercised(name, outcome.error, step)
