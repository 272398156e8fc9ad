"""Operations on one segment and their outcomes as plain data (:mod:`conformance.operations`).

One segment is open at a time, in the directory that the harness assigns to each implementation. Batches are
hexadecimal, so a trace contains their exact bytes. The clock does not advance; an operation that reads the clock sets
it first (``now``).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from conformance.operations.op import (
    BOOLEAN,
    FOUND,
    HEXADECIMAL,
    INT,
    LIST,
    LONG,
    TEXT,
    Effect,
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
        # `index_interval` and `index_size` are topic configurations. A missing file may be preallocated.
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
        # The three numbers are what the log passes about the records (SEG-8). From 3.9.1 on, the log passes only the
        # first.
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
        # Closes the files without flushing or trimming them, as a broker does after the failure of a disk.
        _op("close_handlers", {}, effect=Effect.RELEASES),
        # Leaves the files as a killed process leaves them.
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
        # If no record has a timestamp, the result is the log file's modification time, which the harness sets
        # beforehand.
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
        # Changes the path of the files to a directory that does not exist, as after the loss of a disk. Open files
        # remain open.
        _op("lose_directory", {}),
        # Corruption of the closed segment by the harness: one of the file operations of an index, on one of its files.
        _op("damage_segment_file", {"suffix": TEXT, "how": TEXT, "arguments": LIST}, effect=Effect.DAMAGES),
    )
)
"""All operations on a segment."""

SEGMENT_ERROR_KINDS: Final = (
    *ERROR_KINDS,
    "corrupt_record",
    "invalid_record",
    "invalid_txn_state",
    "producer_fenced",
    "coordinator_fenced",
    "buffer_underflow",
)
"""The error kinds of a segment; a kind of an index has the same meaning here.

``offset_overflow`` is also used if an offset does not fit in the segment.
"""

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
"""The suffixes of the files of a segment, which are compared after every step."""


class IndexState(NamedTuple):
    """State of an open index in memory; ``last`` is ``(offset,)`` or ``(timestamp, offset)``."""

    entries: int
    max_entries: int
    length: int
    last: tuple[int, ...]


class SegmentState(NamedTuple):
    """State of a segment in memory after an operation.

    Attributes:
        size: The size of the log file in bytes.
        bytes_since_last_index_entry: The number of bytes appended since an index entry was last due.
        created: The time at which the segment was opened or emptied, in milliseconds.
        rolling_based_timestamp: The timestamp from which the segment's age is counted, or None if it is unknown.
        maximum: The largest timestamp and its offset, or None if they have not been read.
        offset_index: The offset index, or None until it is opened.
        time_index: The time index, or None until it is opened.
        txn_last_offset: The last offset that the transaction index has in memory, or None.
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
        """Return the state as in a trace or a report."""
        document: dict[str, Any] = dict(self._asdict())
        for name in ("offset_index", "time_index"):
            index = document[name]
            document[name] = None if index is None else dict(index._asdict())
        return document


class SegmentObservation(NamedTuple):
    """Outcome of an operation, and the state after it or None if no segment is open."""

    outcome: Outcome
    state: SegmentState | None
