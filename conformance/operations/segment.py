"""The operations on one segment and their outcomes: plain data, as in :mod:`conformance.operations`.

One segment is open at a time, in the directory that the harness gives each implementation. Batches are hexadecimal, so
that a trace holds the very bytes; clocks stand still and are set by the operations that look at them (``now``).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from conformance.operations.effects import Effect
from conformance.operations.op import (
    BOOLEAN,
    FOUND,
    HEXADECIMAL,
    INT,
    LIST,
    LONG,
    TEXT,
    Files,
    Op,
    Shape,
    by_name,
)
from conformance.operations.outcomes import ERROR_KINDS, Json, Outcome

_op = partial(Op, files=Files.REPLACES)
_look = partial(Op, files=Files.MAKES)

SEGMENT_OPS: Final = by_name(
    (
        # `index_interval` and `index_size` are the topic's; a file that does not exist may be preallocated.
        _op(
            "open_segment",
            {
                "base_offset": LONG,
                "index_interval": INT,
                "index_size": INT,
                "roll_jitter_ms": LONG,
                "file_already_exists": BOOLEAN,
                "init_file_size": INT,
                "preallocate": BOOLEAN,
                "suffix": TEXT,
                "now": LONG,
            },
            effect=Effect.OPENS,
        ),
        # The three numbers are what the log says of the records (SEG-8); from 3.9.1 on only the first is passed.
        _op(
            "append_records",
            {"records": HEXADECIMAL, "largest_offset": LONG, "largest_timestamp": LONG, "shallow_offset": LONG},
        ),
        _op("append_from_file", {"records": HEXADECIMAL, "start": INT}, gives=Shape.NUMBER),
        _op(
            "update_txn_index",
            {
                "producer_id": LONG,
                "first_offset": LONG,
                "last_offset": LONG,
                "is_aborted": BOOLEAN,
                "last_stable_offset": LONG,
            },
        ),
        _op(
            "should_roll",
            {
                "max_segment_ms": LONG,
                "max_segment_bytes": INT,
                "max_timestamp": LONG,
                "max_offset": LONG,
                "messages_size": INT,
                "now": LONG,
            },
            gives=Shape.FLAG,
        ),
        _op("become_inactive", {}),
        _op("close_segment", {}, effect=Effect.RELEASES),
        # What a broker does when a disk has failed: closes the files as they are.
        _op("close_handlers", {}, effect=Effect.RELEASES),
        # What a killed process leaves behind.
        _op("crash_segment", {}, effect=Effect.RELEASES),
        _op("recover_segment", {}, gives=Shape.NUMBER),
        _op("truncate_segment", {"offset": LONG, "now": LONG}, gives=Shape.NUMBER),
        _look(
            "translate_offset",
            {"offset": LONG, "starting_position": INT},
            gives=Shape.NUMBERS,
            fields=("offset", "position", "size"),
        ),
        _look(
            "read_segment",
            {"start_offset": LONG, "max_size": INT, "max_position": LONG, "min_one_message": BOOLEAN},
            gives=Shape.NUMBERS,
            fields=("offset", "position", "size", "first_entry_incomplete"),
        ),
        _look("read_next_offset", {}, gives=Shape.NUMBER),
        _look(
            "find_offset",
            {"timestamp": LONG, "starting_offset": LONG, "max_record_body_size": INT},
            gives=Shape.NUMBERS,
            fields=FOUND,
        ),
        # Without a timestamp the answer is the log file's own time, which is set first.
        _op("largest_timestamp", {"last_modified": LONG}, gives=Shape.NUMBER),
        _look("first_batch_timestamp", {}, gives=Shape.NUMBER),
        _look("has_overflow", {}, gives=Shape.FLAG),
        _look(
            "upper_bound_in_segment",
            {"offset": LONG, "position": INT, "fetch_size": INT},
            gives=Shape.NUMBER,
        ),
        _look("collect_from_segment", {"fetch_offset": LONG, "upper_bound": LONG}, gives=Shape.COLLECTED),
        _op("check_segment", {"time_index_newly_created": BOOLEAN}),
        _op("resize_indexes", {"size": INT}),
        _op("flush_segment", {}),
        _op("rename_segment", {"old_suffix": TEXT, "new_suffix": TEXT}),
        _op("delete_segment", {}, effect=Effect.RELEASES),
        # Says that the files' directory is elsewhere, where there is none, as after a disk has gone: what is open stays
        # so.
        _op("lose_directory", {}),
        # Damage while closed, done by the harness: one of the file operations of an index, on a file of the segment.
        _op("damage_segment_file", {"suffix": TEXT, "how": TEXT, "arguments": LIST}, effect=Effect.DAMAGES),
    )
)
"""Every operation on a segment."""

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
