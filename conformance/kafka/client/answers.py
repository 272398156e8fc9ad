"""What a broker says, as plain data; nothing here needs kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from conformance.kafka.client.connection import Address

Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS: Final[dict[Isolation, int]] = {"read_uncommitted": 0, "read_committed": 1}

SPECIAL_TARGETS: Final = (-1, -2, -3, -4, -5, -6, -7)
"""All special targets that a release of Kafka knows, and one that none does (LO-15)."""
LARGEST_TARGET: Final = (1 << 63) - 1


class Answer(NamedTuple):
    """What the broker said to a target of ListOffsets: a record, nothing (all None), or an error by its name."""

    target: int
    offset: int | None = None
    timestamp: int | None = None
    leader_epoch: int | None = None
    error: str | None = None

    def to_json(self) -> list[int | str | None]:
        """A row: target, offset, timestamp and leader epoch, or target and error."""
        return [*self[:4]] if self.error is None else [self.target, self.error]

    @classmethod
    def from_json(cls, row: list[Any]) -> Self:
        """From such a row."""
        return cls(row[0], error=row[1]) if len(row) == 2 else cls(*row)


class Question(NamedTuple):
    """What ListOffsets asks of one partition: a timestamp or a special one, and the leader epoch, -1 for none."""

    topic: str
    target: int
    partition: int = 0
    leader_epoch: int = -1


class OffsetAnswer(NamedTuple):
    """What ListOffsets says of one partition, as it stands in the answer: -1 for nothing, error None if there is none.

    ``old_offsets`` are the answer of request version 0, which has neither timestamp nor epoch.
    """

    topic: str
    partition: int
    error: str | None
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    old_offsets: tuple[int, ...] = ()

    def to_answer(self, target: int) -> Answer:
        """As the answer to a target."""
        if self.error is not None:
            return Answer(target, error=self.error)
        if self.old_offsets:
            return Answer(target, self.old_offsets[0])
        if self.offset < 0:
            return Answer(target)
        return Answer(target, self.offset, self.timestamp, self.leader_epoch if self.leader_epoch >= 0 else None)


class EpochEnd(NamedTuple):
    """Where a leader epoch ends: the largest epoch of the log that is not above the one asked for; -1 for unknown."""

    leader_epoch: int
    end_offset: int
    error: str | None = None


class Appended(NamedTuple):
    """What a broker says of an append: the first offset, and its own time where the topic wants that (else -1).

    ``error`` is the name of a refusal, and then nothing is appended.
    """

    offset: int
    log_append_time: int
    error: str | None = None


class AbortedTransaction(NamedTuple):
    """A transaction whose records a consumer of committed ones leaves out, from its first offset to its marker."""

    producer_id: int
    first_offset: int


class FetchedBatches(NamedTuple):
    """What a fetch gives of one partition.

    Attributes:
        records: bytes of record batches; the first may begin before the offset, the last may be cut off.
        aborted: in the order of the answer; None where the broker sends null.
        high_watermark: -1 for unknown, like the next two.
        error: a name, or None.
    """

    records: bytes
    aborted: tuple[AbortedTransaction, ...] | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    error: str | None = None


class Producer(NamedTuple):
    """Id and epoch that the coordinator gives to a producer."""

    producer_id: int
    producer_epoch: int


class PartitionState(NamedTuple):
    """What a broker knows of a partition; a leader of -1 is none, an epoch of -1 unknown."""

    leader: int = -1
    epoch: int = -1
    in_sync: frozenset[int] = frozenset()
    replicas: tuple[int, ...] = ()
    error: str | None = None


class TopicState(NamedTuple):
    """What a broker knows of a topic."""

    partitions: Mapping[int, PartitionState]
    error: str | None = None


class Metadata(NamedTuple):
    """What a broker knows of its cluster.

    Attributes:
        cluster_id: None if it has none.
        brokers: where each listens, by node id.
        controller: a node id; -1 for unknown. A KRaft broker names any broker, which passes requests on.
        topics: those asked for, by name.
    """

    cluster_id: str | None
    brokers: Mapping[int, Address]
    controller: int
    topics: Mapping[str, TopicState]
