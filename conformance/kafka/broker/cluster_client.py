"""What is asked of the single brokers of a cluster, followers included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.experiments.golden.client import LIMIT, Client
from conformance.experiments.golden.corpus import Answer
from conformance.kafka.broker.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONSUMER: Final = -1
DEBUGGER: Final = -2
"""The replica id whose questions a follower answers too, out of its own files (``ListOffsetsRequest.java``)."""
UNCLEAN: Final = 1

_LIMIT_MS: Final = int(LIMIT * 1000)
# Of every request, a version that all releases from 2.4 to 4.4 understand.
_METADATA: Final = 8
_CREATE_TOPICS: Final = 4
_PRODUCE: Final = 7
_ELECT_LEADERS: Final = 1
_LIST_OFFSETS: Final = 5
_NOT_NEEDED: Final = 84


class State(NamedTuple):
    """What a broker knows of a partition; a leader of -1 is none."""

    leader: int
    epoch: int
    in_sync: frozenset[int]


class MemberClient(Client):
    """One connection to one broker of a cluster; partition 0 of any topic."""

    def create_replicated(self, topic: str, replicas: Sequence[int], config: Mapping[str, str]) -> None:
        """Create a topic with one partition on these brokers, the first of which will lead; asked of the controller."""
        request = self._protocol.CreateTopicsRequest
        entry = request.CreatableTopic
        settings = [entry.CreatableTopicConfig(name=name, value=value) for name, value in config.items()]
        wanted = entry(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[entry.CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))],
            configs=settings,
        )
        self._until_done(
            f"create {topic}",
            lambda: self._ask(
                request(version=_CREATE_TOPICS, topics=[wanted], timeout_ms=_LIMIT_MS, validate_only=False)
            ),
            lambda response: int(response.topics[0].error_code),
        )

    def controller(self) -> int:
        """The broker that ZooKeeper's controller is, or that passes on what is for KRaft's."""
        return int(self._metadata(None).controller_id)

    def state(self, topic: str) -> State:
        """What this broker knows of a partition; without a leader if it does not know it."""
        found = self._metadata(topic).topics[0]
        if found.error_code or not found.partitions:
            return State(-1, -1, frozenset())
        (partition,) = found.partitions
        return State(int(partition.leader_id), int(partition.leader_epoch), frozenset(partition.isr_nodes))

    def _metadata(self, topic: str | None) -> Any:
        request = self._protocol.MetadataRequest
        return self._ask(
            request(
                version=_METADATA,
                topics=[] if topic is None else [request.MetadataRequestTopic(name=topic)],
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=False,
                include_topic_authorized_operations=False,
            )
        )

    def append(self, topic: str, data: bytes, *, acks: int) -> None:
        """Append one batch: -1 waits for all in-sync replicas, 1 for the leader alone."""
        request = self._protocol.ProduceRequest
        entry = request.TopicProduceData
        parts = [entry(name=topic, partition_data=[entry.PartitionProduceData(index=0, records=data)])]
        asked = request(version=_PRODUCE, acks=acks, timeout_ms=_LIMIT_MS, topic_data=parts)
        self._until_done(
            f"append to {topic}",
            lambda: self._ask(asked),
            lambda response: int(response.responses[0].partition_responses[0].error_code),
        )

    def elect_unclean(self, topic: str) -> None:
        """Make a replica the leader although it may lack records; asked of the controller."""
        request = self._protocol.ElectLeadersRequest
        entry = request.TopicPartitions
        asked = request(
            version=_ELECT_LEADERS,
            election_type=UNCLEAN,
            topic_partitions=[entry(topic=topic, partitions=[0])],
            timeout_ms=_LIMIT_MS,
        )
        deadline = Deadline(LIMIT)
        while True:
            response = self._ask(asked)
            results = response.replica_election_results
            code = int(response.error_code or (results[0].partition_result[0].error_code if results else 0))
            if code in (0, _NOT_NEEDED):
                return
            if not deadline.pause():
                raise self._failure(f"refuses to elect a leader for {topic}: {self._name_of(code)}")

    def answer(self, topic: str, target: int, *, replica_id: int = CONSUMER, epoch: int = -1) -> Answer:
        """Ask for a timestamp, or a special one, as whoever ``replica_id`` says; an error is an answer too."""
        request = self._protocol.ListOffsetsRequest
        entry = request.ListOffsetsTopic
        part = entry.ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=target)
        asked = request(
            version=_LIST_OFFSETS,
            replica_id=replica_id,
            isolation_level=0,
            topics=[entry(name=topic, partitions=[part])],
        )
        found = self._ask(asked).topics[0].partitions[0]
        if found.error_code:
            return Answer(target, error=self._name_of(found.error_code))
        if found.offset < 0:
            return Answer(target)
        return Answer(target, int(found.offset), int(found.timestamp), int(found.leader_epoch))
