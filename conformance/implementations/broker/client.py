"""What the broker machine asks of a broker beyond a recorder: refusals are answers, and questions come in rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.golden.client import LIMIT, Client
from conformance.kafka.broker.polling import Deadline
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from conformance.experiments.golden.corpus import Answer, Isolation

_LIMIT_MS: Final = int(LIMIT * 1000)
_DELETE_RECORDS: Final = 1
_FETCH: Final = 4
_PASSING: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION"})
_AT_ONCE: Final = 64
"""Questions on their way at a time: the answers to these fit into the buffers of a connection."""


class Appended(NamedTuple):
    """What a broker says of an append: the first offset, and its own time where the topic wants that (else -1).

    ``error`` is the name of a refusal, and then nothing is appended.
    """

    offset: int
    log_append_time: int
    error: str | None = None


class Fetched(NamedTuple):
    """The first record at or behind an offset that a fetch from there gives; None and the error's name if none is.

    A batch that cannot be read is the error ``"unreadable"``, an answer without a record ``"nothing"``.
    """

    offset: int | None
    error: str | None = None


class PartitionClient(Client):
    """Partition 0 of any topic."""

    def append(self, topic: str, data: bytes, *, transactional_id: str | None = None) -> Appended:
        """Sends one batch of the current format, and waits until it is in the log or refused."""
        self._send(self._produce_request(topic, data, transactional_id=transactional_id))
        return self._appended(self._take())

    def append_in_flight(self, topic: str, batches: Sequence[bytes]) -> Iterator[Appended]:
        """Sends all batches before the first answer is looked at; gives the answers as they come.

        Raises:
            OSError: the broker is gone; how many batches it has appended, nobody knows.
        """
        for data in batches:
            self._send(self._produce_request(topic, data))
        for _ in batches:
            yield self._appended(self._take())

    def delete_records(self, topic: str, offset: int) -> str | None:
        """Moves the log's start to an offset, -1 for the high watermark; the name of the refusal, if any."""
        request = self._protocol.DeleteRecordsRequest
        entry = request.DeleteRecordsTopic
        part = entry(name=topic, partitions=[entry.DeleteRecordsPartition(partition_index=0, offset=offset)])
        response = self._ask(request(version=_DELETE_RECORDS, topics=[part], timeout_ms=_LIMIT_MS))
        code = int(response.topics[0].partitions[0].error_code)
        return self._name_of(code) if code else None

    def answers(self, topic: str, targets: Sequence[int], isolation: Isolation, *, version: int) -> list[Answer]:
        """The answer to each target of ListOffsets, in order; an error is an answer too."""
        found: list[Answer] = []
        for start in range(0, len(targets), _AT_ONCE):
            some = targets[start : start + _AT_ONCE]
            for target in some:
                self._send(self._list_request(topic, target, isolation, version))
            found += [self._answer(target, self._take()) for target in some]
        return found

    def fetched(self, topic: str, offsets: Sequence[int]) -> list[Fetched]:
        """What a consumer that goes to each offset gets first, in order."""
        found: list[Fetched] = []
        for start in range(0, len(offsets), _AT_ONCE):
            some = offsets[start : start + _AT_ONCE]
            for offset in some:
                self._send(self._fetch_request(topic, offset))
            found += [self._fetched(offset, self._take()) for offset in some]
        return found

    def await_leader(self, topic: str) -> int:
        """The epoch of the leader, once it also answers; after a start these are two moments."""
        deadline = Deadline(LIMIT)
        while True:
            epoch = self.leader_epoch(topic)
            answer = self.list_offset(topic, -1, "read_uncommitted", version=5)
            if answer.leader_epoch == epoch:
                return epoch
            if answer.error not in _PASSING and answer.leader_epoch is None:
                raise self._failure(f"does not lead {topic}: {answer}")
            if not deadline.pause():
                raise self._failure(f"did not lead {topic} within {LIMIT:g} s")

    # -- requests and replies --------------------------------------------------------------------------------------

    def _appended(self, response: Any) -> Appended:
        part = response.responses[0].partition_responses[0]
        error = self._name_of(part.error_code) if part.error_code else None
        return Appended(int(part.base_offset), int(part.log_append_time_ms), error)

    def _fetch_request(self, topic: str, offset: int) -> Any:
        request = self._protocol.FetchRequest
        entry = request.FetchTopic
        part = entry.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
        # One byte at most: a broker sends the first batch all the same, and no other.
        return request(
            version=_FETCH,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            isolation_level=0,
            topics=[entry(topic=topic, partitions=[part])],
        )

    def _fetched(self, offset: int, response: Any) -> Fetched:
        part = response.responses[0].partitions[0]
        if part.error_code:
            return Fetched(None, self._name_of(part.error_code))
        return first_record(bytes(part.records or b""), offset)


def first_record(data: bytes, offset: int) -> Fetched:
    """What a consumer that wants an offset makes of the bytes of a fetch."""
    try:
        for batch in iter_memory_batches(data):
            batch.ensure_valid()
            for record in batch:
                if record.offset >= offset:
                    return Fetched(record.offset)
    except KidxError:
        return Fetched(None, "unreadable")
    return Fetched(None, "nothing")
