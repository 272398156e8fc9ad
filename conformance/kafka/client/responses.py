"""Responses of a broker as plain data, without kafka-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

if TYPE_CHECKING:
    from conformance.kafka.client.connection import Address

Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS: Final[dict[Isolation, int]] = {"read_uncommitted": 0, "read_committed": 1}

SPECIAL_TARGETS: Final = (-1, -2, -3, -4, -5, -6, -7)
"""Special targets of ListOffsets: all that some release of Kafka knows, and -7, which none knows (LO-15)."""
LARGEST_TARGET: Final = (1 << 63) - 1
"""The largest timestamp that can be requested."""


class OffsetResult(NamedTuple):
    """Result of ListOffsets for one target: a record, only None without one, or the name of an error."""

    target: int
    offset: int | None = None
    timestamp: int | None = None
    leader_epoch: int | None = None
    error: str | None = None

    def to_json(self) -> list[int | str | None]:
        """Return a row: target, offset, timestamp and leader epoch, or target and error."""
        return [*self[:4]] if self.error is None else [self.target, self.error]

    @classmethod
    def from_json(cls, row: list[Any]) -> Self:
        """Return the result in a row of :meth:`to_json`."""
        return cls(row[0], error=row[1]) if len(row) == 2 else cls(*row)


class PartitionQuery(NamedTuple):
    """ListOffsets query for one partition: a timestamp or a special target, and the expected leader epoch or -1."""

    topic: str
    target: int
    partition: int = 0
    leader_epoch: int = -1


class PartitionOffsetResponse(NamedTuple):
    """ListOffsets response for one partition, unchanged: a number is -1 if missing, ``error`` is None on success.

    ``old_offsets`` is the response to request version 0, which has neither timestamp nor epoch.
    """

    topic: str
    partition: int
    error: str | None
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    old_offsets: tuple[int, ...] = ()

    def to_result(self, target: int) -> OffsetResult:
        """Return the response as the result for a target."""
        if self.error is not None:
            return OffsetResult(target, error=self.error)
        if self.old_offsets:
            return OffsetResult(target, self.old_offsets[0])
        if self.offset < 0:
            return OffsetResult(target)
        return OffsetResult(target, self.offset, self.timestamp, self.leader_epoch if self.leader_epoch >= 0 else None)


class EpochEndOffset(NamedTuple):
    """End offset of the largest epoch in the log that does not exceed the requested one; -1 for unknown."""

    leader_epoch: int
    end_offset: int
    error: str | None = None


class ProduceResult(NamedTuple):
    """Result of an append: the first offset, and the LogAppendTime, or -1 if the topic does not use it.

    ``error`` is the name of the error, or None on success. After an error, nothing is appended.
    """

    offset: int
    log_append_time: int
    error: str | None = None


class AbortedTransaction(NamedTuple):
    """Transaction whose records a read_committed consumer skips, from its first offset to its marker."""

    producer_id: int
    first_offset: int


class FetchedBatches(NamedTuple):
    """Result of a fetch for one partition.

    Attributes:
        records: bytes of record batches; the first may begin before the offset, the last may be truncated.
        aborted: aborted transactions in the order of the response; None if the broker sends null.
        high_watermark, last_stable_offset, log_start_offset: offsets of the partition; -1 if unknown.
        error: name of an error, or None.
    """

    records: bytes
    aborted: tuple[AbortedTransaction, ...] | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    error: str | None = None


class Producer(NamedTuple):
    """Producer id and epoch that the coordinator has assigned."""

    producer_id: int
    producer_epoch: int


class PartitionState(NamedTuple):
    """State of a partition in a broker's metadata; ``leader`` is -1 without a leader, ``epoch`` is -1 if unknown."""

    leader: int = -1
    epoch: int = -1
    in_sync: frozenset[int] = frozenset()
    replicas: tuple[int, ...] = ()
    error: str | None = None


class TopicState(NamedTuple):
    """State of a topic in a broker's metadata."""

    partitions: Mapping[int, PartitionState]
    error: str | None = None


class Metadata(NamedTuple):
    """Metadata of a cluster, as a broker returns them.

    Attributes:
        cluster_id: id of the cluster, or None if the broker does not return it.
        brokers: address of each broker, by node id.
        controller: node id of the controller; -1 if unknown. With KRaft, any broker, which forwards requests.
        topics: the requested topics, by name.
    """

    cluster_id: str | None
    brokers: Mapping[int, Address]
    controller: int
    topics: Mapping[str, TopicState]
