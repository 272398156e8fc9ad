"""The operations on one segment and their outcomes: plain data, as in :mod:`conformance.operations`.

One segment is open at a time, in the directory that the harness gives each implementation. Batches are hexadecimal, so
that a trace holds the very bytes; clocks stand still and are set by the operations that look at them (``now``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from conformance.operations.effects import Effect
from conformance.operations.outcomes import ERROR_KINDS, Json, Outcome

SEGMENT_SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    # `index_interval` and `index_size` are the topic's; a file that does not exist may be preallocated.
    "open_segment": (
        "base_offset",
        "index_interval",
        "index_size",
        "roll_jitter_ms",
        "file_already_exists",
        "init_file_size",
        "preallocate",
        "suffix",
        "now",
    ),
    # The three numbers are what the log says of the records (SEG-8); from 3.9.1 on only the first is passed.
    "append_records": ("records", "largest_offset", "largest_timestamp", "shallow_offset"),
    "append_from_file": ("records", "start"),
    "update_txn_index": ("producer_id", "first_offset", "last_offset", "is_aborted", "last_stable_offset"),
    "should_roll": ("max_segment_ms", "max_segment_bytes", "max_timestamp", "max_offset", "messages_size", "now"),
    "become_inactive": (),
    "close_segment": (),
    # What a broker does when a disk has failed: closes the files as they are.
    "close_handlers": (),
    # What a killed process leaves behind.
    "crash_segment": (),
    "recover_segment": (),
    "truncate_segment": ("offset", "now"),
    "translate_offset": ("offset", "starting_position"),
    "read_segment": ("start_offset", "max_size", "max_position", "min_one_message"),
    "read_next_offset": (),
    "find_offset": ("timestamp", "starting_offset", "max_record_body_size"),
    # Without a timestamp the answer is the log file's own time, which is set first.
    "largest_timestamp": ("last_modified",),
    "first_batch_timestamp": (),
    "has_overflow": (),
    "upper_bound_in_segment": ("offset", "position", "fetch_size"),
    "collect_from_segment": ("fetch_offset", "upper_bound"),
    "check_segment": ("time_index_newly_created",),
    "resize_indexes": ("size",),
    "flush_segment": (),
    "rename_segment": ("old_suffix", "new_suffix"),
    "delete_segment": (),
    # Says that the files' directory is elsewhere, where there is none, as after a disk has gone: what is open stays so.
    "lose_directory": (),
    # Damage while closed, done by the harness: one of the file operations of an index, on a file of the segment.
    "damage_segment_file": ("suffix", "how", "arguments"),
}
"""Every operation on a segment and the names of its arguments, in order."""

SEGMENT_EFFECTS: Final[dict[str, Effect]] = {
    "open_segment": Effect.OPENS,
    **dict.fromkeys(("close_segment", "close_handlers", "crash_segment", "delete_segment"), Effect.RELEASES),
    "damage_segment_file": Effect.DAMAGES,
}
"""As :data:`conformance.operations.EFFECTS`."""

SEGMENT_ERROR_KINDS: Final = (
    *ERROR_KINDS,
    "corrupt_record",
    "invalid_record",
    "invalid_txn_state",
    "producer_fenced",
    "coordinator_fenced",
    "buffer_underflow",
)
"""What a segment refuses with; the words of an index mean the same here, ``offset_overflow`` the segment's too."""

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
"""The files of a segment, compared after every step."""


class IndexState(NamedTuple):
    """What an open index remembers; ``last`` is ``(offset,)`` or ``(timestamp, offset)``."""

    entries: int
    max_entries: int
    length: int
    last: tuple[int, ...]


class SegmentState(NamedTuple):
    """What a segment remembers after an operation.

    Attributes:
        size: bytes of the log.
        bytes_since_last_index_entry: bytes appended since the last entry was due.
        created: when it was opened or emptied, milliseconds.
        rolling_based_timestamp: what its age is counted from; None if unknown.
        maximum: largest timestamp and its offset; None if unknown.
        offset_index: None as long as it has not been opened.
        time_index: likewise.
        txn_last_offset: what the transaction index remembers; None for nothing.
    """

    size: int
    bytes_since_last_index_entry: int
    created: int
    rolling_based_timestamp: int | None
    maximum: tuple[int, int] | None
    offset_index: IndexState | None
    time_index: IndexState | None
    txn_last_offset: int | None

    def to_json(self) -> Json:
        """As a trace or a report carries it."""
        document: dict[str, Any] = dict(self._asdict())
        for name in ("offset_index", "time_index"):
            index = document[name]
            document[name] = None if index is None else dict(index._asdict())
        return document


class SegmentObservation(NamedTuple):
    """An outcome and the state after it; no state while no segment is open."""

    outcome: Outcome
    state: SegmentState | None
