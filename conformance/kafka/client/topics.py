"""Requests about topics and the cluster: metadata, creation and deletion of topics, deletion of records, elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.client.connection import Address
from conformance.kafka.client.library import error_name, request_class
from conformance.kafka.client.requests import Requests
from conformance.kafka.client.responses import Metadata, PartitionState, TopicState
from conformance.kafka.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


class TopicRequests(Requests):
    """Client methods about topics and the cluster."""

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
            topic: name of the topic.
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
