"""Transactional and idempotent producers, as of KIP-98: the partition is added before it is appended to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.client.answers import Producer
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.offsets import OffsetRequests
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME_LIMIT_MS: Final = 900_000
"""What a transaction may take: the most that a broker allows unless it is told otherwise."""
_TRANSACTION_KEY: Final = 1


class TransactionRequests(OffsetRequests):
    """What concerns transactions; the broker is taken for the coordinator."""

    def init_producer(self, transactional_id: str | None, *, timeout_ms: int = TIME_LIMIT_MS) -> Producer:
        """Introduce a transactional producer, or with None an idempotent one.

        Raises:
            RefusedError: the coordinator refuses.
            NotOfferedError: the broker has no transactions.
        """
        what = f"introduce {transactional_id or 'a producer'}"
        if transactional_id is not None:
            # The first time, this creates the topic of the transactions.
            find = self._request("FindCoordinator", key=transactional_id, key_type=_TRANSACTION_KEY)
            self._until_done(what, lambda: self._ask(find), _error)
        asked = self._request(
            "InitProducerId",
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=-1,
            producer_epoch=-1,
        )
        found = self._until_done(what, lambda: self._ask(asked), _error)
        return Producer(found.producer_id, found.producer_epoch)

    def join_transaction(
        self, topic: str, transactional_id: str, producer: Producer, partitions: Sequence[int] = (0,)
    ) -> None:
        """Make partitions part of the producer's transaction, which begins with the first of them.

        Raises:
            RefusedError: the coordinator refuses.
        """
        kind = request_class("AddPartitionsToTxn")
        asked = self._request(
            "AddPartitionsToTxn",
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        self._until_done(f"take {transactional_id} into a transaction", lambda: self._ask(asked), _joining_error)

    def end_transaction(self, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort; the markers may come later.

        Raises:
            RefusedError: the coordinator refuses.
        """
        asked = self._request(
            "EndTxn",
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=commit,
        )
        self._until_done(f"end the transaction of {transactional_id}", lambda: self._ask(asked), _error)

    def end_and_await_marker(self, topic: str, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort, and wait until something, the marker, is at the end of the topic's log.

        Raises:
            RefusedError: the coordinator refuses.
            NoAnswerError: there is no marker within the time limit.
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
