"""The operations on a whole log and their outcomes: plain data, as in :mod:`conformance.operations`.

One log is open at a time, in a directory of its own that the harness gives each implementation. Time stands still
between ``set_clock`` operations; what a broker does in the background once (deleting files, flushing a closed segment)
is done before an operation ends, what it does periodically is not done at all.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from conformance.operations.effects import Effect
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
    Files,
    Op,
    Shape,
    by_name,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from conformance.operations.outcomes import Json, Outcome

PLACES: Final = ("chunk", "deletion")
"""Where a cleaner may be killed; the numbers of LogCleaning.java."""

_CLEANING: Final = {"checkpoint": LONG, "io_buffer_size": INT, "slots": INT, "age": LONG}
_op = partial(Op, files=Files.REPLACES)
_look = partial(Op, files=Files.MAKES)
_apart = partial(Op, files=Files.LEAVES)

LOG_OPS: Final = by_name(
    (
        # Opens the log of the directory, or makes one. `settings` are topic configurations by their names;
        # `recovery_point` is the checkpoint below which everything is known to be on disk; `clean` says that the last
        # shutdown was.
        _op(
            "open_log",
            {"settings": SETTINGS, "log_start_offset": LONG, "recovery_point": LONG, "clean": BOOLEAN, "now": LONG},
            effect=Effect.OPENS,
        ),
        _op("append_as_leader", {"batches": BATCHES, "leader_epoch": INT}),
        # Begins to verify a producer's next transaction; whether the log gives a guard out. `raises_epochs` says that
        # the producer raises its epoch with each transaction.
        _apart(
            "verify_transaction",
            {"producer": LONG, "sequence": INT, "producer_epoch": INT, "raises_epochs": BOOLEAN},
            gives=Shape.FLAG,
        ),
        # As a leader, with the guard that was given out last for the producer of the first batch, and of a version of
        # transactions.
        _op("append_verified", {"batches": BATCHES, "leader_epoch": INT, "transaction_version": INT}),
        _op("append_as_follower", {"batches": BATCHES, "leader_epoch": INT}),
        _op("roll_log", {}, line="roll", does="Starts a new segment at the end."),
        _op(
            "truncate_log",
            {"offset": LONG},
            gives=Shape.FLAG,
            line="truncate",
            does="Removes everything from an offset on, and the whole batch that it lies in; true if it is before the"
            " end.\n\n    The end is that offset then, or where that batch began.",
        ),
        _op(
            "truncate_fully",
            {"offset": LONG},
            line="truncate_fully",
            does="Removes everything; the log begins anew at an offset.",
        ),
        _op(
            "delete_records",
            {"offset": LONG},
            line="delete_records",
            does="Moves the log start up to an offset; out_of_range if that is beyond the high watermark.",
        ),
        _op(
            "apply_retention",
            {},
            gives=Shape.NUMBER,
            line="retention",
            does="Deletes the segments that start offset, retention.bytes and retention.ms allow; how many.",
        ),
        # Has the first unstable offset looked up.
        _look(
            "update_high_watermark",
            {"offset": LONG},
            gives=Shape.NUMBER,
            line="high_watermark",
            does="Moves the high watermark to an offset, but neither below the start nor beyond the end;"
            " where it is then.",
        ),
        _op(
            "assign_epoch",
            {"epoch": INT, "start_offset": LONG},
            line="assign_epoch",
            does="Notes that a leader's epoch begins at an offset.",
        ),
        _apart("set_clock", {"now": LONG}, line="set_clock", does="Sets the clock, milliseconds."),
        _apart(
            "expire_producers",
            {},
            line="expire_producers",
            does="Forgets producers that have been silent for too long.",
        ),
        _look(
            "list_offsets",
            {"targets": LONGS},
            gives=Shape.ANSWERS,
            fields=FOUND,
            line="list_offsets",
            does="For each target, timestamp, offset and leader epoch (-1: none); null, or -1 three times,"
            " if there is none.",
        ),
        # The first batch of a fetch from an offset; nothing at the log's end.
        _look(
            "read_log",
            {"offset": LONG},
            gives=Shape.NUMBERS,
            fields=("base_offset", "size", "crc32c_of_all", "leader_epoch", "last_offset", "records", "max_timestamp"),
        ),
        # As a fetch is answered with them.
        _look(
            "offset_snapshot",
            {},
            gives=Shape.NUMBERS,
            fields=("log_start_offset", "end_offset", "high_watermark", "last_stable_offset"),
        ),
        # One round of the cleaner, as a broker's that has chosen this log: `checkpoint` is where the last one ended, -1
        # for none; bytes that are read at once; keys that fit into its table; and by how many milliseconds the file of
        # each segment was written later than that of the one before.
        _op(
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
        # The same round, and the process is killed when it is at a place for the `number`-th time, or behind the round:
        # "chunk" is before it reads bytes, "deletion" when it has renamed the files of a segment that was replaced.
        _op("crash_cleaning", {**_CLEANING, "place": one_of(*PLACES), "number": LONG}, effect=Effect.RELEASES),
        # A clean shutdown is prepared (4.4 trims there) and then closed; `prepared` false is the log's own close alone.
        _op(
            "close_log",
            {"prepared": BOOLEAN},
            effect=Effect.RELEASES,
            line="close",
            does="Closes the log; prepared as a clean shutdown does it.",
        ),
        _op("crash_log", {}, effect=Effect.RELEASES),
        # Damage while closed, done by the harness: one of the file operations of an index, on a file of the log.
        _op("damage_log_file", {"path": TEXT, "how": TEXT, "arguments": LIST}, effect=Effect.DAMAGES),
    )
)
"""Every operation on a log."""

LOG_ERRORS: Final = {
    "invalid_offset": "an entry of an index would not be above the last one",
    "offset_overflow": "an offset does not fit into an index",
    "segment_overflow": "an offset does not fit into the segment",
    "corrupt": "an index is damaged",
    "invalid_argument": "an argument, or a field of a batch, makes no sense",
    "illegal_state": "the operation contradicts what was done before",
    "unsupported_operation": "a batch has to be built anew and cannot be",
    "out_of_range": "an offset is before the log start, behind the end, or above the high watermark",
    "out_of_order": "the offsets of a follower's batches do not grow",
    "unexpected_offset": "a follower's batch begins before the end of the log",
    "too_large": "a batch exceeds max.message.bytes, or an append segment.bytes",
    "corrupt_record": "the size, magic or checksum of a batch is wrong",
    "invalid_record": "a record in a batch makes no sense",
    "refused_records": "records are not what the topic takes",
    "invalid_timestamp": "a timestamp is too far from the clock",
    "out_of_order_sequence": "a sequence number does not follow the last one of its producer",
    "unknown_producer": "a producer that nothing is known of does not begin with sequence number 0",
    "producer_fenced": "a producer's epoch is older than its last one",
    "coordinator_fenced": "a marker is of an older coordinator",
    "invalid_txn_state": "a batch is not in the transaction that it has to be in",
    "producer": "one of the five before, where a log does not say which",
    "unsupported_format": "a batch of this magic cannot be taken",
    "unsupported_version": "a version that the release does not know",
    "read_only": "a file cannot be written to",
    "closed": "the log, or an index of it, is closed",
    "buffer_overflow": "what is written ends behind the end of a file",
    "out_of_bounds": "what is read is outside a file or a batch",
    "kafka": "two segments contradict each other, or what Kafka calls a KafkaException",
    "io": "the operating system refuses, or bytes cannot be decompressed",
    "buffer_underflow": "a marker or a compressed frame ends too early",
}
"""When an operation on a log is refused with each kind."""
LOG_ERROR_KINDS: Final = tuple(LOG_ERRORS)
"""What a log refuses with; the words of an index mean the same here."""

UNTOLD_PRODUCER_ERROR: Final = "producer"
"""The kind of a log that does not say which of :data:`PRODUCER_ERRORS` it is."""
PRODUCER_ERRORS: Final = (
    "out_of_order_sequence",
    "unknown_producer",
    "producer_fenced",
    "coordinator_fenced",
    "invalid_txn_state",
)
"""The kinds of errors about producers; each is an error code of its own in the protocol."""

TOPIC_DIRECTORY: Final = "t-0"
"""The log's directory below an implementation's own: Kafka wants a topic and a partition in its name."""


UNLIMITED: Final[dict[str, Any]] = {
    "message.timestamp.difference.max.ms": (1 << 63) - 1,
    "message.timestamp.after.max.ms": (1 << 63) - 1,
}
"""What a log has where ``open_log`` says nothing of it: the timestamps of batches follow no clock."""

EXPIRATION: Final = "producer.id.expiration.ms"
"""A setting of the broker, which ``open_log`` takes among those of the topic."""


VERIFICATION: Final = "transaction.partition.verification.enable"
"""Another one: 1 where transactions have to be verified before they begin."""


FIRST_MODIFIED: Final = 2_000_000_000_000
"""When the file of the first segment was written, milliseconds, as the cleaner is told."""


class LogState(NamedTuple):
    """What a log says of itself after an operation.

    Attributes:
        start_offset: the log start offset, and end_offset: the offset of the next record.
        high_watermark: of the partition, and last_stable_offset: below it all transactions are decided.
        recovery_point: everything below it is on disk.
        segments: base offset and bytes of each, in order.
        producers_end: the offset after the last batch that the producer state covers.
        ongoing: where the open transactions began, and unreplicated: the completed ones that are not replicated yet.
        producers: of each, in the order of their ids: id, epoch, coordinator's epoch, timestamp, where its open
            transaction began (-1 for none), and its last batches: last sequence, last offset, offset delta, timestamp.
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
    producers: tuple[tuple[Any, ...], ...] = ()

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Self:
        """From a row of numbers in this order, each tuple after the number of its elements."""
        left = iter(numbers)

        def take(count: int) -> tuple[int, ...]:
            return tuple(islice(left, count))

        offsets = take(5)
        segments = tuple((next(left), next(left)) for _ in range(next(left)))
        end, ongoing, unreplicated = next(left), take(next(left)), take(next(left))
        producers = []
        for _ in range(next(left)):
            entry = take(5)
            producers.append((*entry, tuple(take(4) for _ in range(next(left)))))
        return cls._make((*offsets, segments, end, ongoing, unreplicated, tuple(producers)))

    def to_numbers(self) -> list[int]:
        """The row of numbers that :meth:`of_numbers` makes it of."""
        numbers = [*self[:5], len(self.segments)]
        for segment in self.segments:
            numbers += segment
        numbers += (self.producers_end, len(self.ongoing), *self.ongoing, len(self.unreplicated), *self.unreplicated)
        numbers.append(len(self.producers))
        for *entry, batches in self.producers:
            numbers += (*entry, len(batches))
            for batch in batches:
                numbers += batch
        return numbers

    def without(self, names: Container[str]) -> Self:
        """This state with None in some fields, as a foreign log has it that does not tell them."""
        pairs = zip(self._fields, self, strict=True)
        return type(self)._make([None if name in names else value for name, value in pairs])

    def to_json(self) -> Json:
        """As a trace or a report carries it."""
        return dict(self._asdict())


class LogObservation(NamedTuple):
    """An outcome and the state after it; no state while no log is open."""

    outcome: Outcome
    state: LogState | None
