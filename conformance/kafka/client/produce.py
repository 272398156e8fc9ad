"""Appending batches as they are: bytes that no client library would send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.client.answers import Appended
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import Requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALL_REPLICAS: Final = -1
_MAGIC: Final = 16
"""Where a batch or message says its format."""
_OLD_FORMATS: Final = 2
"""The last request version that takes messages of format 0 and 1."""


class ProduceRequests(Requests):
    """What appends."""

    def append(
        self,
        topic: str,
        data: bytes,
        *,
        partition: int = 0,
        acks: int = ALL_REPLICAS,
        transactional_id: str | None = None,
        version: int | None = None,
    ) -> Appended:
        """Send one batch, and wait until it is in the log or refused.

        Args:
            topic: where to.
            data: the batch.
            partition: where to.
            acks: -1 waits for all in-sync replicas, 1 for the leader alone.
            transactional_id: of the transaction that the batch is part of.
            version: of the request; by default one that takes the batch's format.
        """
        request = self._produce_request(topic, data, partition, acks, transactional_id, version)
        return self._appended(self._ask(request))

    def produce(
        self, topic: str, data: bytes, *, acks: int = ALL_REPLICAS, transactional_id: str | None = None
    ) -> Appended:
        """Send one batch, and wait until it is in the log.

        Raises:
            RefusedError: it is refused.
        """
        request = self._produce_request(topic, data, 0, acks, transactional_id, None)
        return self._until_done(
            f"append to {topic}", lambda: self._appended(self._ask(request)), lambda appended: appended.error
        )

    def append_in_flight(self, topic: str, batches: Sequence[bytes]) -> Iterator[Appended]:
        """Send all batches before the first answer is read, and give the answers as they come.

        Raises:
            ClientError: the broker is gone; how many batches it has appended is not known.
        """
        requests = (self._produce_request(topic, data, 0, ALL_REPLICAS, None, None) for data in batches)
        return map(self._appended, self._ask_all(requests, at_once=max(len(batches), 1)))

    def _produce_request(
        self, topic: str, data: bytes, partition: int, acks: int, transactional_id: str | None, version: int | None
    ) -> Any:
        entry = request_class("Produce").TopicProduceData
        part = entry.PartitionProduceData(index=partition, records=data)
        return self._request(
            "Produce",
            version=version,
            near=None if data[_MAGIC:][:1] > b"\1" else _OLD_FORMATS,
            acks=acks,
            timeout_ms=self._limit_ms,
            topic_data=[entry(name=topic, partition_data=[part])],
            transactional_id=transactional_id,
        )

    def _appended(self, response: Any) -> Appended:
        part = self._only(self._only(response.responses, "topics").partition_responses, "partitions")
        return Appended(part.base_offset, part.log_append_time_ms, error_name(part.error_code))
