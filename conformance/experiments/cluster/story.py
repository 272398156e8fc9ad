"""What happens to a cluster of three, and what its brokers answer meanwhile.

Two topics: ``replicated`` on all three brokers, led by 1, and ``diverging`` on 1 and 2. In turn:

1. *replicated*: both are appended to, and followers fetch.
2. *unclean restart*: broker 3 is killed; it comes back after more was appended, recovers its log and catches up.
3. *leader change*: broker 2 is stopped cleanly, then 1, the leader, appends to ``diverging`` alone and is killed: now 3
   leads ``replicated``, and 2, back again, ``diverging``, without the records that only 1 has.
4. *truncation*: more is appended to both; 1 comes back, cuts off what no other broker has and follows.

After each, every broker that runs is asked: the leader by time, whose answers a scan of what was produced must
confirm; each follower, whose refusal must be the one of its release; and each follower again as a debugger, which it
must answer out of its own index files, as the leader does.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.mismatch import Mismatch
from conformance.kafka.broker.workload import COMPRESSION, grid, plan
from conformance.kafka.client import CONSUMER, DEBUGGER, Answer, Client, PartitionState
from conformance.kafka.polling import Deadline
from kidx.records import Codec, SimpleRecord, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.kafka.broker.cluster import LocalCluster, Member
    from conformance.kafka.broker.workload import Batch

REPLICATED: Final = "replicated"
DIVERGING: Final = "diverging"
REPLICAS: Final = {REPLICATED: (1, 2, 3), DIVERGING: (1, 2)}
RECORDS: Final = 80
"""In each portion."""
QUESTIONS: Final = 120
"""Timestamps that each broker is asked for, at most, about each topic after each step."""
LIMIT: Final = 45.0

CONFIG: Final = {
    # Segments roll by the records' time. Were it by a full index, as a broker of 3.9.1, or of 4.0.1 and
    # later, appends what a fetch brought, entries would not find room, and the replica would be given up (SEG-4).
    "segment.ms": "700",
    "segment.index.bytes": "4096",
    "index.interval.bytes": "200",
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "compression.type": "producer",
}

NOT_LEADER: Final = "NOT_LEADER_FOR_PARTITION"
FENCED: Final = "FENCED_LEADER_EPOCH"
UNKNOWN_EPOCH: Final = "UNKNOWN_LEADER_EPOCH"
_CODECS: Final = {None: Codec.NONE, "gzip": Codec.GZIP}
_END: Final = -1


@dataclass(slots=True)
class Topic:
    """What is known of a topic's log: the timestamps of its records in order, and where its replicas were interrupted.

    Attributes:
        timestamps: of every record that stays, by offset.
        interrupted: by broker, offsets at which it was restarted or its log was cut off.
        led: by broker, ranges of offsets that it appended as the leader.
    """

    name: str
    timestamps: list[int] = field(default_factory=list)
    interrupted: dict[int, list[int]] = field(default_factory=dict)
    led: dict[int, list[range]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.timestamps)

    def expected(self, target: int) -> tuple[int, int] | None:
        """The first record at or after a time (LO-6), as offset and timestamp."""
        return next(((offset, time) for offset, time in enumerate(self.timestamps) if time >= target), None)


@dataclass(slots=True)
class Told:
    """The result of the story: how much was asked and compared, and what was not as it must be."""

    topics: dict[str, Topic]
    answers: int = 0
    followers_answers: int = 0
    refusals: int = 0
    truncated_to: int = -1
    mismatches: list[Mismatch] = field(default_factory=list)


def tell_story(cluster: LocalCluster, *, seed: int = 0, say: Callable[[str], None] = lambda _: None) -> Told:
    """Let it all happen to a started cluster, which runs in the end.

    Raises:
        BrokerError: a broker died, or did not do what it was asked in time.
    """
    return _Story(cluster, seed, say).run()


class _Story:
    def __init__(self, cluster: LocalCluster, seed: int, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._clients: dict[int, Client] = {}
        self._portions = self._planned(seed)
        self._told = Told({name: Topic(name) for name in REPLICAS})

    @staticmethod
    def _planned(seed: int) -> Iterator[list[Batch]]:
        portion = 0
        while True:
            yield plan(seed * 1000 + portion, RECORDS)
            portion += 1

    def run(self) -> Told:
        told, members = self._told, self._cluster.members
        with ExitStack() as stack:
            stack.callback(self._hang_up)
            controller = self._client(self._client(1).metadata().controller)
            for name, replicas in REPLICAS.items():
                controller.create_topic(name, CONFIG, replicas=replicas)
            self._append(REPLICATED)
            self._append(DIVERGING)
            self._question("replicated")

            self._kill(3)
            self._append(REPLICATED)
            self._start(3)
            self._question("unclean restart")

            self._stop(2)
            self._await_state(DIVERGING, lambda state: state.in_sync == {1}, "2 to leave the in-sync replicas")
            self._append(REPLICATED)
            kept = told.topics[DIVERGING].end
            self._append(DIVERGING, acks=1)
            del told.topics[DIVERGING].timestamps[kept:]
            told.truncated_to = kept
            self._kill(1)
            self._start(2)
            self._await_state(REPLICATED, lambda state: state.leader == 3, "3 to lead")
            self._client(self._client(3).metadata().controller).elect_unclean(DIVERGING)
            self._await_state(DIVERGING, lambda state: state.leader == 2, "2 to lead")
            self._append(REPLICATED)
            self._append(DIVERGING)
            self._question("leader change")

            self._start(1)
            told.topics[DIVERGING].interrupted[1] = [kept]
            self._question("truncation")
            assert all(member.running for member in members.values())
        return told

    # -- brokers ---------------------------------------------------------------------------------------------------

    def _client(self, node_id: int) -> Client:
        if node_id not in self._clients:
            self._clients[node_id] = self._cluster.members[node_id].connect()
        return self._clients[node_id]

    def _hang_up(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self._clients):
            if client := self._clients.pop(node_id, None):
                client.close()

    def _kill(self, node_id: int) -> None:
        self._say(f"broker {node_id} is killed")
        self._interrupt(node_id)
        self._cluster.members[node_id].kill()

    def _stop(self, node_id: int) -> None:
        self._say(f"broker {node_id} is stopped")
        self._interrupt(node_id)
        self._cluster.members[node_id].stop()

    def _interrupt(self, node_id: int) -> None:
        self._hang_up(node_id)
        for name, topic in self._told.topics.items():
            if node_id in REPLICAS[name]:
                topic.interrupted.setdefault(node_id, []).append(topic.end)

    def _start(self, node_id: int) -> None:
        member = self._cluster.members[node_id]
        member.start()
        self._say(f"broker {node_id} is back after {member.ready_seconds:.1f} s")

    # -- topics ----------------------------------------------------------------------------------------------------

    def _await_state(self, topic: str, holds: Callable[[PartitionState], bool], what: str) -> PartitionState:
        """Wait until a broker that runs says that a partition is so."""
        deadline = Deadline(LIMIT)
        while True:
            for member in self._cluster.running:
                state = self._client(member.node_id).state(topic)
                if holds(state):
                    return state
            if not deadline.pause():
                raise self._late(topic, what)

    def _leader(self, topic: str) -> tuple[int, int]:
        """The leader and its epoch, when it says so itself."""
        deadline = Deadline(LIMIT)
        while True:
            state = self._await_state(topic, lambda state: self._runs(state.leader), "a leader")
            if self._client(state.leader).list_offset(topic, _END).leader_epoch == state.epoch:
                return state.leader, state.epoch
            if not deadline.pause():
                raise self._late(topic, "its leader to lead")

    def _runs(self, node_id: int) -> bool:
        return node_id in self._cluster.members and self._cluster.members[node_id].running

    def _append(self, name: str, acks: int = -1) -> None:
        topic = self._told.topics[name]
        leader, _ = self._leader(name)
        first = topic.end
        for batch in next(self._portions):
            records = [SimpleRecord(message.timestamp, None, message.value) for message in batch.messages]
            data = build_batch(records, codec=_CODECS[COMPRESSION[batch.partition]])
            self._client(leader).produce(name, data, acks=acks)
            topic.timestamps += [message.timestamp for message in batch.messages]
        topic.led.setdefault(leader, []).append(range(first, topic.end))
        self._say(f"{name}: offsets {first} to {topic.end - 1} through broker {leader}")

    def _await_replicas(self, topic: Topic, members: list[Member], leader: int) -> None:
        """Wait until all logs end where they must, and the leader knows it: until then its last records are unknown."""
        awaited = [(member.node_id, DEBUGGER) for member in members] + [(leader, CONSUMER)]
        deadline = Deadline(LIMIT)
        for node_id, replica_id in awaited:
            client = self._client(node_id)
            while (found := client.list_offset(topic.name, _END, replica_id=replica_id)).offset != topic.end:
                if not deadline.pause():
                    raise self._late(topic.name, f"broker {node_id} to reach {topic.end}, it says {found}")

    def _late(self, topic: str, what: str) -> BrokerError:
        log = self._cluster.running[0].log
        return BrokerError(f"{topic}: waited {LIMIT:g} s for {what} with Kafka {self._cluster.release}", log)

    # -- questions -------------------------------------------------------------------------------------------------

    def _question(self, when: str) -> None:
        for name, topic in self._told.topics.items():
            members = [member for member in self._cluster.running if member.node_id in REPLICAS[name]]
            leader, epoch = self._leader(name)
            self._await_replicas(topic, members, leader)
            targets = grid(set(topic.timestamps))
            targets = targets[:: max(1, len(targets) // QUESTIONS)]
            answers = self._ask_leader(topic, leader, targets, when)
            for member in members:
                if member.node_id != leader:
                    self._ask_follower(topic, member.node_id, epoch, answers, when)
        told = self._told
        self._say(f"{when}: {told.answers} answers and {told.followers_answers} of followers in all")

    def _ask_leader(self, topic: Topic, leader: int, targets: list[int], when: str) -> list[Answer]:
        answers = self._client(leader).answers(topic.name, targets)
        for answer in answers:
            found = None if answer.offset is None else (answer.offset, answer.timestamp)
            expected = topic.expected(answer.target)
            if answer.error or found != expected:
                self._differs("LO-6", topic, leader, f"{when}, at {answer.target}", str(expected), str(answer))
        self._told.answers += len(answers)
        return answers

    def _ask_follower(self, topic: Topic, node_id: int, epoch: int, of_leader: list[Answer], when: str) -> None:
        client = self._client(node_id)
        found = client.answers(topic.name, [theirs.target for theirs in of_leader], replica_id=DEBUGGER)
        for theirs, own in zip(of_leader, found, strict=True):
            if own != theirs:
                what = f"{when}, at {theirs.target}"
                self._differs("LO-22", topic, node_id, what, f"{theirs}, as its leader", str(own))
        self._told.followers_answers += len(of_leader)
        refusals = {-1: NOT_LEADER, epoch: NOT_LEADER, epoch + 1: UNKNOWN_EPOCH} | (
            {epoch - 1: FENCED} if epoch else {}
        )
        for asked_epoch, error in refusals.items():
            for target in (_END, -2, topic.timestamps[0]):
                answer = client.list_offset(topic.name, target, leader_epoch=asked_epoch)
                if answer != Answer(target, error=error):
                    what = f"{when}, as a client with epoch {asked_epoch}, at {target}"
                    self._differs("LO-21", topic, node_id, what, error, str(answer))
                self._told.refusals += 1

    def _differs(self, clause: str, topic: Topic, node_id: int, what: str, expected: str, actual: str) -> None:
        self._told.mismatches.append(Mismatch(clause, f"{topic.name} on broker {node_id}, {what}", expected, actual))
