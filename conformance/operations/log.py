"""Operations on a whole log and their outcomes as plain data (:mod:`conformance.operations`).

One log is open at a time, in a directory that the harness assigns to each implementation. The clock advances only with
``set_clock``. An operation includes the work that a broker then does once in the background (deleting files, flushing a
closed segment). Periodic work of a broker is not done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from conformance.operations.op import (
    BATCHES,
    BOOLEAN,
    FOUND,
    INT,
    LIST,
    LONG,
    LONGS,
    SETTINGS,
    TEXT,
    Effect,
    Files,
    Op,
    Shape,
    by_name,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from conformance.operations.outcomes import Json, Outcome

TOPIC_DIRECTORY: Final = "t-0"
"""The directory of the log, in the directory of an implementation; Kafka requires topic and partition in its name."""

DIRECTORIES: Final = {
    "topic": TOPIC_DIRECTORY,
    "future": f"{TOPIC_DIRECTORY}.0123456789abcdef0123456789abcdef-future",
    "deleted": f"{TOPIC_DIRECTORY}.0123456789abcdef0123456789abcdef-delete",
}
"""The names of a log's directory; only files in the first one are compared. LogDriver.java has them in this order."""

PLACES: Final = ("chunk", "deletion")
"""The places at which a cleaner may be killed; their positions here are their numbers in LogCleaning.java."""

ISOLATIONS: Final = ("log_end", "high_watermark", "txn_committed")
"""The limits of a fetch; their positions here are their numbers in LogFetch.java."""

_CLEANING: Final = {"checkpoint": LONG, "io_buffer_size": INT, "slots": INT, "age": LONG}
# Operations by their possible effects on files.
_op = partial(Op, files=Files.REPLACES)
_look = partial(Op, files=Files.MAKES)
_apart = partial(Op, files=Files.LEAVES)
_cleaning = partial(_op, of=frozenset({"cleaned"}))

RESULT: Final = (
    "first_offset",
    "last_offset",
    "leader_epoch",
    "max_timestamp",
    "log_append_time",
    "log_start_offset",
    "size_in_bytes",
)
"""The numbers of the result of an append."""

# An append returns what Kafka's log returns to its caller; a field that a release does not have is -1.
_append = partial(_op, gives=Shape.NUMBERS, fields=RESULT)

LOG_OPS: Final = by_name(
    (
        # A declaration has the name and the arguments with their types; `Op` explains the rest: `gives` is the type of
        # the result, `fields` are the names of its numbers, `line` and `does` are the name and the description in the
        # line protocol, `needs` are the capabilities that a log needs.
        #
        # Opens or creates the log of the directory. `settings` are topic configurations by their names. All records
        # below `recovery_point` are known to be on disk. `clean` is true if the last shutdown was a clean one.
        _op(
            "open_log",
            {"settings": SETTINGS, "log_start_offset": LONG, "recovery_point": LONG, "clean": BOOLEAN, "now": LONG},
            effect=Effect.OPENS,
        ),
        _append("append_as_leader", {"batches": BATCHES, "leader_epoch": INT}),
        # Begins to verify the next transaction of a producer. The result is true if the log returns a verification
        # guard. `raises_epochs` is true if the producer raises its epoch with each transaction.
        _apart(
            "verify_transaction",
            {"producer": LONG, "sequence": INT, "producer_epoch": INT, "raises_epochs": BOOLEAN},
            gives=Shape.FLAG,
        ),
        # Appends as a leader, with the last verification guard of the first batch's producer, and with a transaction
        # version.
        _append("append_verified", {"batches": BATCHES, "leader_epoch": INT, "transaction_version": INT}),
        _append("append_as_follower", {"batches": BATCHES, "leader_epoch": INT}),
        _op("roll_log", {}, line="roll", method="roll", needs=("segments",), does="Starts a new segment at the end."),
        _op(
            "truncate_log",
            {"offset": LONG},
            gives=Shape.FLAG,
            line="truncate",
            method="truncate_to",
            does="Removes the records from an offset on, and the whole batch that contains it; true if it is before the"
            " end.\n\n    The log then ends at that offset, or at the first offset of that batch.",
        ),
        _op(
            "truncate_fully",
            {"offset": LONG},
            line="truncate_fully",
            method="truncate_fully_and_start_at",
            does="Removes all records; the log restarts at an offset.",
        ),
        _op(
            "delete_records",
            {"offset": LONG},
            line="delete_records",
            does="Raises the log start offset to an offset; out_of_range if it exceeds the high watermark.",
        ),
        _op(
            "apply_retention",
            {},
            gives=Shape.NUMBER,
            line="retention",
            method="delete_old_segments",
            needs=("segments",),
            does="Deletes the segments that start offset, retention.bytes and retention.ms allow; returns how many.",
        ),
        # Moves the high watermark. The log also updates its first unstable offset, which may read the log.
        _look(
            "update_high_watermark",
            {"offset": LONG},
            gives=Shape.NUMBER,
            line="high_watermark",
            does="Moves the high watermark to an offset, but neither below the start nor beyond the end;"
            " returns its new value.",
        ),
        _op(
            "assign_epoch",
            {"epoch": INT, "start_offset": LONG},
            line="assign_epoch",
            method="assign_epoch_start_offset",
            needs=("epochs",),
            does="Records that a leader's epoch begins at an offset.",
        ),
        _apart("set_clock", {"now": LONG}, line="set_clock", needs=("clock",), does="Sets the clock, milliseconds."),
        _apart(
            "expire_producers",
            {},
            line="expire_producers",
            needs=("clock", "producers"),
            does="Removes producers that have been inactive for too long.",
        ),
        # Returns at how many of these times a broker would report that the oldest transaction has been open for too
        # long. The longest allowed transaction takes as long as the expiration of producers. Before 3.2 the result is
        # 0.
        _apart("late_transactions", {"times": LONGS}, gives=Shape.NUMBER),
        _look(
            "list_offsets",
            {"targets": LONGS},
            gives=Shape.ANSWERS,
            fields=FOUND,
            line="list_offsets",
            does="For each target, timestamp, offset and leader epoch (-1: none); null, or -1 three times,"
            " if no record is found.",
        ),
        # Returns the first batch of a fetch from an offset, or null at the log end offset.
        _look(
            "read_log",
            {"offset": LONG},
            gives=Shape.NUMBERS,
            fields=("base_offset", "size", "crc32c_of_all", "leader_epoch", "last_offset", "records", "max_timestamp"),
        ),
        # Returns the offsets that a fetch response contains.
        _look(
            "offset_snapshot",
            {},
            gives=Shape.NUMBERS,
            fields=("log_start_offset", "end_offset", "high_watermark", "last_stable_offset"),
        ),
        # Returns what a fetch gets: its place in the files, its size, whether its first batch exceeds `max_bytes`, and
        # the number of aborted transactions, or -1 if the log does not return them. The id of the producer and the
        # first offset of each follow. `whole_batch` is true if the first batch is returned whole.
        _look(
            "fetch",
            {"offset": LONG, "max_bytes": INT, "isolation": one_of(*ISOLATIONS), "whole_batch": BOOLEAN},
            gives=Shape.NUMBERS,
            fields=("offset", "segment", "position", "size", "incomplete", "aborted"),
        ),
        # Returns what a broker asks while a fetch from an offset waits for more bytes: the limit of the fetch and its
        # place, whether the limit is on an older segment than the offset, or on a newer one, and the bytes between them
        # if they are on the same segment.
        _look(
            "bytes_after",
            {"offset": LONG, "isolation": one_of(*ISOLATIONS)},
            gives=Shape.NUMBERS,
            fields=("limit", "segment", "position", "limit_is_older", "offset_is_older", "bytes"),
        ),
        # Raises the high watermark to an offset, as a leader does whose followers have fetched up to it. The offset has
        # the place that the last fetch from it returned, or the present one. The result is the previous high watermark
        # with its place, or null if it remains.
        _look(
            "raise_high_watermark",
            {"offset": LONG},
            gives=Shape.NUMBERS,
            fields=("offset", "segment", "position"),
        ),
        _apart(
            "end_offset_for_epoch",
            {"epoch": INT},
            gives=Shape.NUMBERS,
            fields=("leader_epoch", "end_offset"),
            line="end_offset_for_epoch",
            needs=("epoch_ends",),
            does="The largest leader epoch of the log up to an epoch, and the offset at which the next one begins; null"
            " if the log does not have them.",
        ),
        # Assigns the topic id whose halves are 1 and `topic_id`, as a broker does that learns it. Before 2.8 nothing
        # happens.
        _op("assign_topic_id", {"topic_id": LONG}),
        # Returns the topic id of the log, or null.
        _apart("topic_id", {}, gives=Shape.NUMBERS, fields=("most_significant_bits", "least_significant_bits")),
        # Renames the directory of the log: to the name of a log that moves here from another disk, to the name of one
        # that will be deleted, or to the name of topic and partition again.
        _op("rename_log", {"role": one_of(*DIRECTORIES)}),
        # Deletes the log with its directory.
        _op("delete_log", {}, effect=Effect.RELEASES),
        # Closes the files of the log without changing them, as a broker does when a disk fails. Most operations then
        # have the error io.
        _look("fail_log", {}, method="fail"),
        # One round of a broker's cleaner on this log. `checkpoint` is the offset at which the previous round ended, or
        # -1 before the first round. `io_buffer_size` is the number of bytes of one read, `slots` the number of keys in
        # the offset map. `age` is the number of milliseconds by which each segment's file is newer than the preceding
        # segment's file.
        _cleaning(
            "clean_log",
            _CLEANING,
            gives=Shape.NUMBERS,
            fields=(
                "next_dirty_offset",
                "map_records_read",
                "map_bytes_read",
                "records_read",
                "bytes_read",
                "records_written",
                "bytes_written",
                "keyless",
            ),
        ),
        # The same round, but the process is killed when the cleaner reaches a place for the `number`-th time, or else
        # after the round. "chunk" is before the cleaner reads bytes, "deletion" is after it has renamed the files of a
        # replaced segment.
        _cleaning(
            "crash_cleaning",
            {**_CLEANING, "place": one_of(*PLACES), "number": LONG},
            effect=Effect.RELEASES,
        ),
        # Closes the log. With `prepared`, the log is first prepared as in a clean shutdown, in which 4.4 trims the
        # index files.
        _op(
            "close_log",
            {"prepared": BOOLEAN},
            effect=Effect.RELEASES,
            line="close",
            does="Closes the log; if prepared is true, as in a clean shutdown.",
        ),
        _op("crash_log", {}, effect=Effect.RELEASES),
        # Corruption of the closed log by the harness: one of the file operations of an index, on a file of the log.
        _op(
            "damage_log_file",
            {"path": TEXT, "how": TEXT, "arguments": LIST},
            effect=Effect.DAMAGES,
            needs=("segments",),
        ),
    )
)
"""All operations on a log."""

LOG_ERRORS: Final = {
    "invalid_offset": "the offset of a new index entry is not above the last one",
    "offset_overflow": "an offset does not fit into an index",
    "segment_overflow": "an offset does not fit into the segment",
    "corrupt": "an index is corrupt",
    "invalid_argument": "an argument, or a field of a batch, is invalid",
    "illegal_state": "the operation contradicts an earlier one",
    "unsupported_operation": "a batch must be rebuilt, and its format does not allow it",
    "out_of_range": "an offset is before the log start, past the end, or above the high watermark",
    "out_of_order": "the offsets of a follower's batches do not grow",
    "unexpected_offset": "a follower's batch begins before the end of the log",
    "too_large": "a batch exceeds max.message.bytes, or the batches of an append exceed segment.bytes",
    "corrupt_record": "the size, magic or checksum of a batch is wrong",
    "invalid_record": "a record in a batch is invalid",
    "refused_records": "records do not match the topic's settings",
    "invalid_timestamp": "a timestamp is too far from the clock",
    "out_of_order_sequence": "a sequence number does not follow the last one of its producer",
    "unknown_producer": "an unknown producer does not begin with sequence number 0",
    "producer_fenced": "a producer's epoch is older than its last one",
    "coordinator_fenced": "a marker is of an older coordinator",
    "invalid_txn_state": "a batch does not belong to the transaction to which it must belong",
    "producer": "one of the five preceding errors, if a log does not say which",
    "unsupported_format": "a batch of this magic cannot be appended",
    "unsupported_version": "a version that the release does not know",
    "read_only": "a file cannot be written to",
    "closed": "the log, or an index of it, is closed",
    "buffer_overflow": "a write ends past the end of a file",
    "out_of_bounds": "a read is outside a file or a batch",
    "kafka": "two segments contradict each other, or Kafka raises a KafkaException",
    "io": "the operating system reports an error, or bytes cannot be decompressed",
    "cleaning_aborted": "a round of compaction ends before the segments are replaced",
    "buffer_underflow": "a marker or a compressed frame ends too early",
}
"""The meaning of each error kind of an operation on a log."""
LOG_ERROR_KINDS: Final = tuple(LOG_ERRORS)
"""The error kinds of a log; a kind that an index has, too, has the same meaning here."""

UNSPECIFIED_PRODUCER_ERROR: Final = "producer"
"""The error kind of a log that reports any of :data:`PRODUCER_ERRORS` without saying which."""
PRODUCER_ERRORS: Final = (
    "out_of_order_sequence",
    "unknown_producer",
    "producer_fenced",
    "coordinator_fenced",
    "invalid_txn_state",
)
"""The kinds of errors about producers, each with its own error code in the protocol."""

UNLIMITED: Final[dict[str, Any]] = {
    "message.timestamp.difference.max.ms": (1 << 63) - 1,
    "message.timestamp.after.max.ms": (1 << 63) - 1,
}
"""The default settings of ``open_log``, which do not limit the timestamps of batches."""

EXPIRATION: Final = "producer.id.expiration.ms"
"""A broker configuration, which ``open_log`` accepts among the topic's settings."""


VERIFICATION: Final = "transaction.partition.verification.enable"
"""A broker configuration, which ``open_log`` accepts, too: 1 if transactions must be verified before they begin."""

PREALLOCATE: Final = "preallocate"
FLUSH: Final = "flush.messages"
OF_KAFKA: Final = frozenset({VERIFICATION, PREALLOCATE, FLUSH})
"""Settings that only Kafka's own logs have."""


FIRST_MODIFIED: Final = 2_000_000_000_000
"""The modification time in milliseconds that the harness gives to the first segment's file before cleaning."""


_LastBatches = tuple[tuple[int, int, int, int], ...]
_Producer = tuple[int, int, int, int, int, _LastBatches]


class LogState(NamedTuple):
    """State of a log after an operation, as the log reports it.

    Attributes:
        start_offset: The log start offset.
        end_offset: The log end offset.
        high_watermark: The high watermark.
        last_stable_offset: The last stable offset.
        recovery_point: The offset below which all records are on disk.
        segments: The base offset and the size in bytes of each segment, in order.
        producers_end: The offset after the last batch that the producer state covers.
        ongoing: The first offsets of the open transactions.
        unreplicated: The first offsets of the completed transactions that are not yet below the high watermark.
        producers: The producers in the order of their ids. A producer is its id, epoch, coordinator epoch, timestamp,
            first offset of its open transaction (-1 for none) and last batches. A batch is its last sequence number,
            last offset, offset delta and timestamp.
    """

    start_offset: int
    end_offset: int
    high_watermark: int
    last_stable_offset: int
    recovery_point: int
    segments: tuple[tuple[int, int], ...]
    producers_end: int = 0
    ongoing: tuple[int, ...] = ()
    unreplicated: tuple[int, ...] = ()
    producers: tuple[_Producer, ...] = ()

    def without(self, names: Container[str]) -> Self:
        """Return this state with None in some fields, which a third-party log does not report."""
        pairs = zip(self._fields, self, strict=True)
        return type(self)._make([None if name in names else value for name, value in pairs])

    def to_json(self) -> Json:
        """Return the state as in a trace or a report."""
        return dict(self._asdict())


class LogObservation(NamedTuple):
    """Outcome of an operation, and the state after it or None if no log is open."""

    outcome: Outcome
    state: LogState | None
