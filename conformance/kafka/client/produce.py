"""Produce requests with batches whose bytes the caller chooses; client libraries build their own batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import Requests
from conformance.kafka.client.responses import ProduceResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALL_REPLICAS: Final = -1
_MAGIC: Final = 16
"""Position in bytes of the format (Kafka's magic byte: 0, 1 or 2) in a batch or message."""
_OLD_FORMATS: Final = 2
"""Last request version that accepts messages of format 0 and 1."""


class ProduceRequests(Requests):
    """Client methods that append batches."""

    def append(
        self,
        topic: str,
        data: bytes,
        *,
        partition: int = 0,
        acks: int = ALL_REPLICAS,
        transactional_id: str | None = None,
        version: int | None = None,
    ) -> ProduceResult:
        """Send one batch, and wait until the broker has appended or rejected it.

        Args:
            topic: name of the topic.
            data: the batch.
            partition: number of the partition.
            acks: -1 waits for all in-sync replicas, 1 for the leader alone.
            transactional_id: id of the transaction that the batch is part of.
            version: request version; by default one that accepts the batch's format.
        """
        request = self._produce_request(topic, data, partition, acks, transactional_id, version)
        return self._appended(self._exchange(request))

    def produce(
        self, topic: str, data: bytes, *, acks: int = ALL_REPLICAS, transactional_id: str | None = None
    ) -> ProduceResult:
        """Send one batch to partition 0, and wait until it is appended; retriable errors are retried.

        Raises:
            ErrorResponseError: the batch is rejected.
        """
        request = self._produce_request(topic, data, 0, acks, transactional_id, None)
        return self._until_done(
            f"append to {topic}", lambda: self._appended(self._exchange(request)), lambda appended: appended.error
        )

    def append_in_flight(self, topic: str, batches: Sequence[bytes]) -> Iterator[ProduceResult]:
        """Send all batches before reading the first response, and yield the results as they arrive.

        Raises:
            ClientError: the broker has ended; the number of appended batches is unknown.
        """
        requests = (self._produce_request(topic, data, 0, ALL_REPLICAS, None, None) for data in batches)
        return map(self._appended, self._exchange_all(requests, in_flight=max(len(batches), 1)))

    def _produce_request(
        self, topic: str, data: bytes, partition: int, acks: int, transactional_id: str | None, version: int | None
    ) -> Any:
        entry = request_class("Produce").TopicProduceData
        part = entry.PartitionProduceData(index=partition, records=data)
        return self._request(
            "Produce",
            version=version,
            preferred=None if data[_MAGIC:][:1] > b"\1" else _OLD_FORMATS,
            acks=acks,
            timeout_ms=self._limit_ms,
            topic_data=[entry(name=topic, partition_data=[part])],
            transactional_id=transactional_id,
        )

    def _appended(self, response: Any) -> ProduceResult:
        part = self._only(self._only(response.responses, "topics").partition_responses, "partitions")
        return ProduceResult(part.base_offset, part.log_append_time_ms, error_name(part.error_code))
