"""Requests of transactional and idempotent producers (KIP-98)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.offsets import OffsetRequests
from conformance.kafka.client.responses import Producer
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Sequence

TRANSACTION_TIMEOUT_MS: Final = 900_000
"""Timeout of a transaction: the maximum that a broker allows by default."""
_TRANSACTION_KEY: Final = 1


class TransactionRequests(OffsetRequests):
    """Client methods about transactions; the broker must be the transaction coordinator."""

    def init_producer(self, transactional_id: str | None, *, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> Producer:
        """Initialize a transactional producer, or an idempotent producer if ``transactional_id`` is None.

        Raises:
            ErrorResponseError: the coordinator returns an error.
            UnsupportedApiError: the broker has no transactions.
        """
        what = f"initialize {transactional_id or 'a producer'}"
        if transactional_id is not None:
            # The first such request creates the topic of the transactions.
            find = self._request("FindCoordinator", key=transactional_id, key_type=_TRANSACTION_KEY)
            self._until_done(what, lambda: self._exchange(find), _error)
        request = self._request(
            "InitProducerId",
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        found = self._until_done(what, lambda: self._exchange(request), _error)
        return Producer(found.producer_id, found.producer_epoch)

    def join_transaction(
        self, topic: str, transactional_id: str, producer: Producer, partitions: Sequence[int] = (0,)
    ) -> None:
        """Add partitions to the producer's transaction, as required before the first append to each.

        Raises:
            ErrorResponseError: the coordinator returns an error.
        """
        kind = request_class("AddPartitionsToTxn")
        request = self._request(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        self._until_done(
            f"add partitions to the transaction of {transactional_id}", lambda: self._exchange(request), _joining_error
        )

    def end_transaction(self, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort a transaction. The markers may be written later.

        Raises:
            ErrorResponseError: the coordinator returns an error.
        """
        request = self._request(
            "EndTxn",
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=commit,
        )
        self._until_done(f"end the transaction of {transactional_id}", lambda: self._exchange(request), _error)

    def end_and_await_marker(self, topic: str, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort a transaction, and wait until its marker is appended to the topic's partition 0.

        Raises:
            ErrorResponseError: the coordinator returns an error.
            RequestTimedOutError: there is no marker within the time limit.
        """
        before = self.end_offset(topic)
        self.end_transaction(transactional_id, producer, commit=commit)
        deadline = Deadline(self.limit)
        while self.end_offset(topic) == before:
            if not deadline.pause():
                raise self._late(f"end the transaction of {transactional_id}")


def _error(response: Any) -> str | None:
    return error_name(response.error_code)


def _joining_error(response: Any) -> str | None:
    parts = [
        part for topic in response.results_by_topic_v3_and_below or () for part in topic.results_by_partition or ()
    ]
    return next(filter(None, (error_name(part.partition_error_code) for part in parts)), None)
