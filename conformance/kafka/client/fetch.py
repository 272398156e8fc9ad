"""Fetching: batches as the broker sends them, and what a consumer makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client.answers import ISOLATION_LEVELS, AbortedTransaction, FetchedBatches, Isolation
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import Requests
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONSUMER: Final = -1
_PATIENCE_MS: Final = 100
"""With no bytes to be waited for nothing waits that long; a broker that is given no time may not even look."""
ONE_BATCH: Final = 1
"""Bytes. A broker sends the first batch all the same, and no other."""


class Fetched(NamedTuple):
    """The first record at or behind an offset that a fetch from there gives; None and the error's name if none is.

    A batch that cannot be read is the error ``"unreadable"``, an answer without a record ``"nothing"``.
    """

    offset: int | None
    error: str | None = None


class FetchRequests(Requests):
    """What reads batches."""

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
        """Fetch what there is from an offset on, without waiting for more.

        Args:
            topic: where from.
            offset: of the first record that is wanted.
            partition: where from.
            isolation: with ``read_committed``, batches end at the last stable offset, and aborted ones are named.
            max_bytes: after the first batch, no further one that exceeds this.
            leader_epoch: what the reader believes, -1 for nothing; goes with version 9 and later.
            replica_id: -1 for a consumer.
            version: of the request, by default 4.
        """
        request = self._fetch_request(topic, offset, partition, isolation, max_bytes, leader_epoch, replica_id, version)
        return self._fetched(self._ask(request))

    def fetch_each(self, topic: str, offsets: Sequence[int], partition: int = 0) -> list[Fetched]:
        """Return what a consumer that goes to each offset gets first, in order."""
        requests = (
            self._fetch_request(topic, offset, partition, "read_uncommitted", ONE_BATCH, -1, _CONSUMER, None)
            for offset in offsets
        )
        return [
            Fetched(None, found.error) if found.error else first_record(found.records, offset)
            for offset, found in zip(offsets, map(self._fetched, self._ask_all(requests)), strict=True)
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
            max_wait_ms=_PATIENCE_MS,
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
    """Return what a consumer that wants an offset makes of the bytes of a fetch."""
    try:
        for batch in iter_memory_batches(data):
            batch.ensure_valid()
            for record in batch:
                if record.offset >= offset:
                    return Fetched(record.offset)
    except KidxError:
        return Fetched(None, "unreadable")
    return Fetched(None, "nothing")
