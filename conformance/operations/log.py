"""The operations on a whole log and their outcomes: plain data, as in :mod:`conformance.operations`.

One log is open at a time, in a directory of its own that the harness gives each implementation. Time stands still
between ``set_clock`` operations; what a broker does in the background once (deleting files, flushing a closed segment)
is done before an operation ends, what it does periodically is not done at all.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from conformance.operations.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from conformance.operations.outcomes import Json, Outcome

LOG_SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    # Opens the log of the directory, or makes one. `settings` are topic configurations by their names; `recovery_point`
    # is the checkpoint below which everything is known to be on disk; `clean` says that the last shutdown was.
    "open_log": ("settings", "log_start_offset", "recovery_point", "clean", "now"),
    "append_as_leader": ("batches", "leader_epoch"),
    # Begins to verify a producer's next transaction; whether the log gives a guard out. `raises_epochs` says that the
    # producer raises its epoch with each transaction.
    "verify_transaction": ("producer", "sequence", "producer_epoch", "raises_epochs"),
    # As a leader, with the guard that was given out last for the producer of the first batch, and of a version of
    # transactions.
    "append_verified": ("batches", "leader_epoch", "transaction_version"),
    "append_as_follower": ("batches", "leader_epoch"),
    "roll_log": (),
    "truncate_log": ("offset",),
    "truncate_fully": ("offset",),
    "delete_records": ("offset",),
    "apply_retention": (),
    "update_high_watermark": ("offset",),
    "assign_epoch": ("epoch", "start_offset"),
    "list_offsets": ("targets",),
    # The first batch of a fetch from an offset: its base offset, bytes, and their CRC-32C; nothing at the log's end.
    "read_log": ("offset",),
    # Start, end, high watermark and last stable offset, as a fetch is answered with them.
    "offset_snapshot": (),
    "set_clock": ("now",),
    # One round of the cleaner, as a broker's that has chosen this log: `checkpoint` is where the last one ended, -1 for
    # none; bytes that are read at once; keys that fit into its table; and by how many milliseconds the file of each
    # segment was written later than that of the one before. Nothing, or the next dirty offset and seven counts.
    "clean_log": ("checkpoint", "io_buffer_size", "slots", "age"),
    # The same round, and the process is killed when it is at a place for the `number`-th time, or behind the round:
    # "chunk" is before it reads bytes, "deletion" when it has renamed the files of a segment that was replaced.
    "crash_cleaning": ("checkpoint", "io_buffer_size", "slots", "age", "place", "number"),
    # What a broker does now and then: producers that have been silent for too long are forgotten.
    "expire_producers": (),
    # A clean shutdown is prepared (4.4 trims there) and then closed; `prepared` false is the log's own close alone.
    "close_log": ("prepared",),
    "crash_log": (),
    # Damage while closed, done by the harness: one of the file operations of an index, on a file of the log.
    "damage_log_file": ("path", "how", "arguments"),
}
"""Every operation on a log and the names of its arguments, in order."""

LOG_EFFECTS: Final[dict[str, Effect]] = {
    "open_log": Effect.OPENS,
    **dict.fromkeys(("close_log", "crash_log", "crash_cleaning"), Effect.RELEASES),
    "damage_log_file": Effect.DAMAGES,
}
"""As :data:`conformance.operations.EFFECTS`."""

LOG_ERROR_KINDS: Final = (
    "invalid_offset",
    "offset_overflow",
    "segment_overflow",
    "corrupt",
    "invalid_argument",
    "illegal_state",
    "unsupported_operation",
    "out_of_range",
    "out_of_order",
    "unexpected_offset",
    "too_large",
    "corrupt_record",
    "invalid_record",
    "refused_records",
    "invalid_timestamp",
    "producer",
    "unsupported_format",
    "unsupported_version",
    "read_only",
    "closed",
    "buffer_overflow",
    "out_of_bounds",
    "kafka",
    "io",
    "buffer_underflow",
)
"""What a log refuses with; the words of an index mean the same here."""

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


PLACES: Final = ("chunk", "deletion")
"""Where a cleaner may be killed; the numbers of LogCleaning.java."""

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
