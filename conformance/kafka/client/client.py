"""Client with all requests that the harness sends to a broker, over one connection."""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.kafka.client.connection import Address
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import RETRIABLE_ERRORS, Requests
from conformance.kafka.client.responses import (
    ISOLATION_LEVELS,
    AbortedTransaction,
    EpochEndOffset,
    FetchedBatches,
    Isolation,
    Metadata,
    OffsetResult,
    PartitionOffsetResponse,
    PartitionQuery,
    PartitionState,
    Producer,
    ProduceResult,
    TopicState,
)
from conformance.kafka.polling import Deadline
from kidx.errors import KidxError
from kidx.records import iter_memory_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_MAX_WAIT_MS: Final = 100
"""Maximum wait. Since the minimum is 0 bytes, brokers respond earlier; but with no time, a broker might not read."""
ONE_BATCH: Final = 1
"""Maximum size in bytes with which a broker sends only the first batch: it sends the first one whatever its size."""
ALL_REPLICAS: Final = -1
_MAGIC: Final = 16
"""Position in bytes of the format (Kafka's magic byte: 0, 1 or 2) in a batch or message."""
_OLD_FORMATS: Final = 2
"""Last request version that accepts messages of format 0 and 1."""
TRANSACTION_TIMEOUT_MS: Final = 900_000
"""Timeout of a transaction: the maximum that a broker allows by default."""
_TRANSACTION_KEY: Final = 1
_BY_CONTROLLER: Final = -1
"""Number of partitions or replicas of a topic that names its replicas."""
_UNCLEAN: Final = 1
"""Type of an election."""
_NOT_NEEDED: Final = "ELECTION_NOT_NEEDED"
"""Error if the partition has a leader."""
# Kafka 2.4 may elect a leader and never respond. Then the response to the next request shows that a leader exists.
_ELECTION_LIMIT_MS: Final = 2000
_TOPIC: Final = 2
"""Type of a resource with settings."""
CONSUMER_REPLICA_ID: Final = -1
DEBUG_REPLICA_ID: Final = -2
"""Replica id whose queries a follower answers, too, from its own files (``ListOffsetsRequest.java``)."""
LATEST: Final = -1
EARLIEST: Final = -2


class Fetched(NamedTuple):
    """Offset of the first record in a fetch, at or after the requested offset; or None and the name of an error.

    The error is ``"unreadable"`` for a corrupt batch, and ``"nothing"`` for a response without such a record.
    """

    offset: int | None
    error: str | None = None


class OffsetsRequest(NamedTuple):
    """Arguments of one :meth:`Client.request_offsets`."""

    queries: tuple[PartitionQuery, ...]
    version: int
    isolation: Isolation = "read_uncommitted"
    replica_id: int = CONSUMER_REPLICA_ID


class Client(Requests):
    """Connection to a broker, which may be Kafka or a compatible implementation; a context manager.

    Lookups, fetches and appends return the broker's responses unchanged, including errors. The client relies only on
    guarantees of the protocol.
    """

    # -- topics and the cluster --------------------------------------------------------------------------------------

    def metadata(self, topics: Sequence[str] | None = ()) -> Metadata:
        """Return the broker's metadata of the cluster and of these topics, or of all topics for None.

        A missing topic is not created.
        """
        kind = request_class("Metadata")
        wanted = None if topics is None else [kind.MetadataRequestTopic(name=topic) for topic in topics]
        response = self._exchange(self._request("Metadata", topics=wanted, allow_auto_topic_creation=False))
        return Metadata(
            response.cluster_id,
            {node.node_id: Address(node.host or "", node.port) for node in response.brokers or ()},
            response.controller_id,
            {topic.name: _topic_state(topic) for topic in response.topics or ()},
        )

    def trigger_auto_create(self, topic: str) -> None:
        """Request metadata of a missing topic, so that the broker may create it with its own settings."""
        wanted = [request_class("Metadata").MetadataRequestTopic(name=topic)]
        self._exchange(self._request("Metadata", topics=wanted, allow_auto_topic_creation=True))

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        """Return the state of a partition in the broker's metadata, with an error if the partition is unknown."""
        found = self.metadata([topic]).topics.get(topic, TopicState({}))
        unknown = PartitionState(error=found.error or "UNKNOWN_TOPIC_OR_PARTITION")
        return unknown if found.error else found.partitions.get(partition, unknown)

    def leader_epoch(self, topic: str, partition: int = 0) -> int:
        """Wait for a leader of the partition, and return its epoch; -1 if the broker does not return epochs."""
        found = self._until_done(f"describe {topic}", lambda: self.state(topic, partition), lambda state: state.error)
        return found.epoch

    def create_topic(
        self,
        topic: str,
        config: Mapping[str, str],
        *,
        partitions: int = 1,
        replicas: Sequence[int] | None = None,
        replication_factor: int = 1,
    ) -> None:
        """Create a topic. On return, its partitions may have no leader yet.

        Args:
            config: settings of the topic.
            partitions: number of partitions; ignored if ``replicas`` is given.
            replicas: node ids of the replicas of a single partition, the leader first; None to let Kafka assign them.
            replication_factor: number of replicas; ignored if ``replicas`` is given.

        Raises:
            ErrorResponseError: the broker returns an error: ``TOPIC_ALREADY_EXISTS``, or an invalid setting.
        """
        entry = request_class("CreateTopics").CreatableTopic
        assigned = []
        if replicas is not None:
            partitions = replication_factor = _BY_CONTROLLER
            assigned = [entry.CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))]
        wanted = entry(
            name=topic,
            num_partitions=partitions,
            replication_factor=replication_factor,
            assignments=assigned,
            configs=[entry.CreatableTopicConfig(name=name, value=value) for name, value in config.items()],
        )
        request = self._request("CreateTopics", topics=[wanted], timeout_ms=self._limit_ms, validate_only=False)
        self._until_done(f"create {topic}", lambda: self._only(self._exchange(request).topics, "topics"), _error)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic. The broker may delete its files later.

        Raises:
            ErrorResponseError: the broker returns an error.
        """

        def error_of(errors: dict[str, str | None]) -> str | None:
            return self._only(tuple(errors.values()), "topics")  # type: ignore[no-any-return]

        self._until_done(f"delete {topic}", lambda: self.delete_topics([topic]), error_of)

    def delete_topics(self, topics: Sequence[str]) -> dict[str, str | None]:
        """Delete topics with one request; return the error of each, or None."""
        request = self._request("DeleteTopics", topic_names=list(topics), timeout_ms=self._limit_ms)
        return {each.name: _error(each) for each in self._exchange(request).responses or ()}

    def delete_records(self, topic: str, offset: int, partition: int = 0) -> str | None:
        """Delete the records before an offset, or before the high watermark for -1; return an error's name, or None."""
        kind = request_class("DeleteRecords")
        part = kind.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=partition, offset=offset)
        wanted = kind.DeleteRecordsTopic(name=topic, partitions=[part])
        response = self._exchange(self._request("DeleteRecords", topics=[wanted], timeout_ms=self._limit_ms))
        return _error(self._only(self._only(response.topics, "topics").partitions, "partitions"))

    def topic_config(self, topic: str) -> dict[str, str | None]:
        """Return all settings of a topic, with None for values that the broker hides.

        Raises:
            ErrorResponseError: the broker returns an error.
        """
        kind = request_class("DescribeConfigs")
        wanted = kind.DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=None)
        request = self._request("DescribeConfigs", resources=[wanted])
        found = self._until_done(
            f"describe the settings of {topic}", lambda: self._only(self._exchange(request).results, "topics"), _error
        )
        return {each.name: each.value for each in found.configs or ()}

    def elect_unclean(self, topic: str) -> None:
        """Elect a leader of partition 0, even one that lacks records; this broker must be the controller.

        Raises:
            ErrorResponseError: there is no leader within the time limit.
        """
        kind = request_class("ElectLeaders")
        wanted = kind.TopicPartitions(topic=topic, partitions=[0])
        request = self._request(
            "ElectLeaders", election_type=_UNCLEAN, topic_partitions=[wanted], timeout_ms=_ELECTION_LIMIT_MS
        )
        deadline = Deadline(self.limit)
        while (error := _election_error(self._exchange(request))) not in (None, _NOT_NEEDED):
            if not deadline.pause():
                raise self._refused(f"elect a leader for {topic}", str(error))

    # -- offsets by timestamp or leader epoch ------------------------------------------------------------------------

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

    # -- transactional and idempotent producers (KIP-98) -------------------------------------------------------------

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

    # -- appends -----------------------------------------------------------------------------------------------------

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

    # -- reads -------------------------------------------------------------------------------------------------------

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        isolation: Isolation = "read_uncommitted",
        max_bytes: int = ONE_BATCH,
        leader_epoch: int = -1,
        replica_id: int = CONSUMER_REPLICA_ID,
        version: int | None = None,
    ) -> FetchedBatches:
        """Fetch the available batches from an offset on, without waiting for more.

        Args:
            offset: offset of the first requested record.
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
            self._fetch_request(topic, offset, partition, "read_uncommitted", ONE_BATCH, -1, CONSUMER_REPLICA_ID, None)
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


def _joining_error(response: Any) -> str | None:
    parts = [
        part for topic in response.results_by_topic_v3_and_below or () for part in topic.results_by_partition or ()
    ]
    return next(filter(None, (error_name(part.partition_error_code) for part in parts)), None)


def _error(part: Any) -> str | None:
    return error_name(part.error_code)


def _election_error(response: Any) -> str | None:
    parts = [part for topic in response.replica_election_results or () for part in topic.partition_result or ()]
    return _error(response) or next(filter(None, map(_error, parts)), None)


def _topic_state(topic: Any) -> TopicState:
    states = {
        part.partition_index: PartitionState(
            part.leader_id,
            part.leader_epoch,
            frozenset(part.isr_nodes or ()),
            tuple(part.replica_nodes or ()),
            _error(part),
        )
        for part in topic.partitions or ()
    }
    return TopicState(states, _error(topic))
