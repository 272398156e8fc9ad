"""Offsets by timestamp or leader epoch: ListOffsets in any version, and OffsetForLeaderEpoch."""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import RETRIABLE_ERRORS
from conformance.kafka.client.responses import (
    ISOLATION_LEVELS,
    EpochEndOffset,
    Isolation,
    OffsetResult,
    PartitionOffsetResponse,
    PartitionQuery,
)
from conformance.kafka.client.topics import TopicRequests
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CONSUMER_REPLICA_ID: Final = -1
DEBUG_REPLICA_ID: Final = -2
"""Replica id whose queries a follower answers, too, from its own files (``ListOffsetsRequest.java``)."""
LATEST: Final = -1
EARLIEST: Final = -2


class OffsetsRequest(NamedTuple):
    """Arguments of one :meth:`OffsetRequests.request_offsets`."""

    queries: tuple[PartitionQuery, ...]
    version: int
    isolation: Isolation = "read_uncommitted"
    replica_id: int = CONSUMER_REPLICA_ID


class OffsetRequests(TopicRequests):
    """Client methods that look up offsets."""

    def request_offsets(
        self,
        queries: Sequence[PartitionQuery],
        *,
        version: int | None = None,
        isolation: Isolation = "read_uncommitted",
        replica_id: int = CONSUMER_REPLICA_ID,
    ) -> list[PartitionOffsetResponse]:
        """Send all queries in one request, and return the partitions in the order of the response.

        A partition may occur twice, and need not exist.

        Args:
            queries: the queries; adjacent queries of one topic share a topic entry of the request.
            version: request version, by default 5. Isolation levels need 2 or later, leader epochs 4 or later.
            isolation: isolation level of all queries.
            replica_id: -1 for a consumer, -2 for a debugging consumer, or the id of a follower.

        Raises:
            UnsupportedApiError: the broker does not offer that version.
        """
        return self._offset_answers(self._exchange(self._offsets_request(queries, version, isolation, replica_id)))

    def request_each(self, requests: Iterable[OffsetsRequest]) -> Iterator[list[PartitionOffsetResponse]]:
        """Send each request, many of them in flight, and yield the partitions of each response, in order."""
        prepared = (
            self._offsets_request(each.queries, each.version, each.isolation, each.replica_id) for each in requests
        )
        return map(self._offset_answers, self._exchange_all(prepared))

    def list_offset(
        self,
        topic: str,
        target: int,
        isolation: Isolation = "read_uncommitted",
        *,
        version: int | None = None,
        partition: int = 0,
        replica_id: int = CONSUMER_REPLICA_ID,
        leader_epoch: int = -1,
    ) -> OffsetResult:
        """Look up a timestamp or a special target; an error is returned as a result."""
        query = PartitionQuery(topic, target, partition, leader_epoch)
        found = self.request_offsets([query], version=version, isolation=isolation, replica_id=replica_id)
        answer: PartitionOffsetResponse = self._only(found, "partitions")
        return answer.to_result(target)

    def answers(
        self,
        topic: str,
        targets: Sequence[int],
        isolation: Isolation = "read_uncommitted",
        *,
        version: int | None = None,
        partition: int = 0,
        replica_id: int = CONSUMER_REPLICA_ID,
    ) -> list[OffsetResult]:
        """Look up each target in a separate request, many of them in flight, and return the results in order."""
        requests = (
            self._offsets_request([PartitionQuery(topic, target, partition)], version, isolation, replica_id)
            for target in targets
        )
        responses = self._exchange_all(requests)
        return [
            self._only(self._offset_answers(response), "partitions").to_result(target)
            for target, response in zip(targets, responses, strict=True)
        ]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return the offset of the next record that a consumer could get.

        Raises:
            ErrorResponseError: the broker does not lead the partition, or does not know it.
        """
        found = self.list_offset(topic, LATEST, partition=partition)
        if found.offset is None:
            raise self._refused(f"say where {topic} ends", found.error or "no offset")
        return found.offset

    def await_leader(self, topic: str, partition: int = 0) -> int:
        """Wait until the leader answers lookups, which may be later than its election; return its epoch.

        Raises:
            ErrorResponseError: the broker does not lead the partition.
            RequestTimedOutError: the broker does not lead the partition within the time limit.
        """
        deadline = Deadline(self.limit)
        while True:
            epoch = self.leader_epoch(topic, partition)
            answer = self.list_offset(topic, LATEST, partition=partition)
            if answer.leader_epoch == epoch:
                return epoch
            if answer.error not in RETRIABLE_ERRORS and answer.leader_epoch is None:
                raise self._refused(f"lead {topic}", answer.error or str(answer))
            if not deadline.pause():
                raise self._late(f"lead {topic}")

    def epoch_end(
        self,
        topic: str,
        leader_epoch: int,
        *,
        partition: int = 0,
        replica_id: int = CONSUMER_REPLICA_ID,
        current_epoch: int = -1,
    ) -> EpochEndOffset:
        """Request the end offset of a leader epoch; ``current_epoch`` is the reader's current epoch, or -1."""
        kind = request_class("OffsetForLeaderEpoch")
        part = kind.OffsetForLeaderTopic.OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current_epoch, leader_epoch=leader_epoch
        )
        wanted = kind.OffsetForLeaderTopic(topic=topic, partitions=[part])
        response = self._exchange(self._request("OffsetForLeaderEpoch", replica_id=replica_id, topics=[wanted]))
        found = self._only(self._only(response.topics, "topics").partitions, "partitions")
        return EpochEndOffset(found.leader_epoch, found.end_offset, error_name(found.error_code))

    def _offsets_request(
        self, queries: Sequence[PartitionQuery], version: int | None, isolation: Isolation, replica_id: int
    ) -> Any:
        entry = request_class("ListOffsets").ListOffsetsTopic
        topics = [
            entry(
                name=topic,
                partitions=[
                    entry.ListOffsetsPartition(
                        partition_index=each.partition, current_leader_epoch=each.leader_epoch, timestamp=each.target
                    )
                    for each in group
                ],
            )
            for topic, group in itertools.groupby(queries, attrgetter("topic"))
        ]
        return self._request(
            "ListOffsets",
            version=version,
            replica_id=replica_id,
            isolation_level=ISOLATION_LEVELS[isolation],
            topics=topics,
            timeout_ms=self._limit_ms,
        )

    @staticmethod
    def _offset_answers(response: Any) -> list[PartitionOffsetResponse]:
        return [
            PartitionOffsetResponse(
                topic.name,
                part.partition_index,
                error_name(part.error_code),
                part.offset,
                part.timestamp,
                part.leader_epoch,
                tuple(part.old_style_offsets or ()),
            )
            for topic in response.topics or ()
            for part in topic.partitions or ()
        ]
