"""Fetch requests: batches as the broker sends them, and the first record that a consumer reads from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import Requests
from conformance.kafka.client.responses import ISOLATION_LEVELS, AbortedTransaction, FetchedBatches, Isolation
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONSUMER: Final = -1
_MAX_WAIT_MS: Final = 100
"""Maximum wait. Since the minimum is 0 bytes, brokers respond earlier; but with no time, a broker might not read."""
ONE_BATCH: Final = 1
"""Maximum size in bytes with which a broker sends only the first batch: it sends the first one whatever its size."""


class Fetched(NamedTuple):
    """Offset of the first record in a fetch, at or after the requested offset; or None and the name of an error.

    The error is ``"unreadable"`` for a corrupt batch, and ``"nothing"`` for a response without such a record.
    """

    offset: int | None
    error: str | None = None


class FetchRequests(Requests):
    """Client methods that read batches."""

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        isolation: Isolation = "read_uncommitted",
        max_bytes: int = ONE_BATCH,
        leader_epoch: int = -1,
        replica_id: int = _CONSUMER,
        version: int | None = None,
    ) -> FetchedBatches:
        """Fetch the available batches from an offset on, without waiting for more.

        Args:
            topic: name of the topic.
            offset: offset of the first requested record.
            partition: number of the partition.
            isolation: The isolation level. With ``read_committed``, batches end at the last stable offset and
                aborted transactions are listed.
            max_bytes: limit that only the first batch may exceed.
            leader_epoch: current leader epoch that the reader assumes, or -1; needs version 9 or later.
            replica_id: -1 for a consumer.
            version: request version, by default 4.
        """
        request = self._fetch_request(topic, offset, partition, isolation, max_bytes, leader_epoch, replica_id, version)
        return self._fetched(self._exchange(request))

    def fetch_each(self, topic: str, offsets: Sequence[int], partition: int = 0) -> list[Fetched]:
        """Return the first record that a consumer gets at each offset, in order."""
        requests = (
            self._fetch_request(topic, offset, partition, "read_uncommitted", ONE_BATCH, -1, _CONSUMER, None)
            for offset in offsets
        )
        return [
            Fetched(None, found.error) if found.error else first_record(found.records, offset)
            for offset, found in zip(offsets, map(self._fetched, self._exchange_all(requests)), strict=True)
        ]

    def _fetch_request(
        self,
        topic: str,
        offset: int,
        partition: int,
        isolation: Isolation,
        max_bytes: int,
        leader_epoch: int,
        replica_id: int,
        version: int | None,
    ) -> Any:
        entry = request_class("Fetch").FetchTopic
        part = entry.FetchPartition(
            partition=partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=max_bytes,
        )
        return self._request(
            "Fetch",
            version=version,
            replica_id=replica_id,
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=ISOLATION_LEVELS[isolation],
            topics=[entry(topic=topic, partitions=[part])],
        )

    def _fetched(self, response: Any) -> FetchedBatches:
        if error := error_name(response.error_code):
            return FetchedBatches(b"", error=error)
        part = self._only(self._only(response.responses, "topics").partitions, "partitions")
        aborted = part.aborted_transactions
        return FetchedBatches(
            bytes(part.records or b""),
            None if aborted is None else tuple(AbortedTransaction(a.producer_id, a.first_offset) for a in aborted),
            part.high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            error_name(part.error_code),
        )


def first_record(data: bytes, offset: int) -> Fetched:
    """Return the first record at or after an offset in the bytes of a fetch."""
    try:
        for batch in iter_memory_batches(data):
            batch.ensure_valid()
            for record in batch:
                if record.offset >= offset:
                    return Fetched(record.offset)
    except KidxError:
        return Fetched(None, "unreadable")
    return Fetched(None, "nothing")
