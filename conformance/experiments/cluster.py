"""Run of a cluster of one release, from its start to the verdict on its files.

A scenario runs on three brokers, with lookups on each after every step. After clean stops the logs of all replicas must
be the same, batch for batch. The index files may differ. Each index file is:

* *exact*: byte-identical with the file that a recovery of the segment writes;
* *sound*: different, but every lookup has the right result (:mod:`conformance.experiments.golden.soundness`) and a rule
  of the release allows the difference:

  - SEG-3: a follower appends the batches of one fetch together, and up to 3.9.0 (and in 4.0.0) an append has at most
    one entry. The entries of such a file must fit some grouping of the batches into appends.
  - SEG-7: the first batch after a restart or a truncation has no entry.
  - SEG-9: up to 3.6, a leader indexes the offset of the record with the largest timestamp, other replicas the last
    offset of its batch.

* *broken*: anything else.

The scenario has two topics: ``replicated`` on all three brokers, led by 1, and ``diverging`` on 1 and 2. The steps are:

1. *replicated*: both topics are appended to, and followers fetch.
2. *unclean restart*: broker 3 is killed. It restarts after more was appended, recovers its log and catches up.
3. *leader change*: broker 2 is stopped cleanly. Then broker 1, the leader, appends to ``diverging`` alone and is
  killed. Now 3 leads ``replicated``, and 2, after a restart, leads ``diverging`` without the records that only 1 has.
4. *truncation*: more is appended to both topics. Broker 1 restarts, truncates the records that no other broker has, and
  follows.

After each step every running broker receives ListOffsets requests. The leader's results by time must match a scan of
the produced records. A follower must reject the requests of consumers. But to the replica id of the debug consumer it
must return the leader's results, from its own index files.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from conformance.experiments.golden.soundness import offset_index_findings, time_index_findings, txn_index_findings
from conformance.kafka.broker.broker import BrokerError
from conformance.kafka.broker.cluster import LocalCluster
from conformance.kafka.broker.external import Mismatch
from conformance.kafka.broker.workload import COMPRESSION, grid, plan
from conformance.kafka.client import CONSUMER_REPLICA_ID, DEBUG_REPLICA_ID, Client, OffsetResult, PartitionState
from conformance.kafka.polling import Deadline
from kidx.dialect import dialect_of
from kidx.layout import OFFSET_INDEX
from kidx.rebuild import rebuild
from kidx.records import Codec, SimpleRecord, build_batch, file_batches
from kidx.segment import ProducerState
from kidx.verify import verify_paths

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from conformance.kafka.broker.cluster import Member
    from conformance.kafka.broker.config import Mode
    from conformance.kafka.broker.workload import Batch
    from conformance.kafka.jar_fetch import Step
    from kidx.dialect import Dialect
    from kidx.records import RecordBatch

REPLICATED: Final = "replicated"
DIVERGING: Final = "diverging"
REPLICAS: Final = {REPLICATED: (1, 2, 3), DIVERGING: (1, 2)}
RECORDS: Final = 80
"""Number of records that are appended at a time."""
MAX_TARGETS: Final = 120
"""Maximum number of timestamps that are looked up on each broker, for each topic after each step."""
TIMEOUT_S: Final = 45.0

CONFIG: Final = {
    # Segments roll by the records' timestamps, before an index is full. With a full index, 3.9.1, 3.9.2, and 4.0.1 and
    # later would fail to append all batches of a fetch, and the broker would mark the replica as failed (LG-28).
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
"""Timestamp that ListOffsets uses for the end of the log."""


@dataclass(slots=True)
class Topic:
    """Expected state of a topic's log.

    Attributes:
        timestamps: timestamp of every record that is not truncated, by offset.
        interrupted: offsets at which a broker was restarted or its log truncated, by broker.
        led: ranges of offsets that a broker appended as the leader, by broker.
    """

    name: str
    timestamps: list[int] = field(default_factory=list)
    interrupted: dict[int, list[int]] = field(default_factory=dict)
    led: dict[int, list[range]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Log end offset."""
        return len(self.timestamps)

    def expected(self, target: int) -> tuple[int, int] | None:
        """Return offset and timestamp of the first record at or after a time (LO-6), or None."""
        return next(((offset, time) for offset, time in enumerate(self.timestamps) if time >= target), None)


Verdict = Literal["exact", "sound", "broken"]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Index file of a replica.

    Attributes:
        replica: id of the broker.
        name: name of the file, with its partition's directory.
        verdict: result of the comparison.
        why: the rule that allows the file not to be exact, with details; otherwise empty.
        as_leader: True if the leader's file has the same bytes.
    """

    replica: int
    name: str
    verdict: Verdict
    why: str
    as_leader: bool


@dataclass(slots=True)
class ClusterResult:
    """Result for a cluster.

    Attributes:
        mode: ``"kraft"`` or ``"zookeeper"``.
        seed: seed of the produced records.
        records: number of produced records.
        answers: number of results of lookups.
        followers_answers: number of results of lookups on followers.
        refusals: number of lookups that followers rejected, as they must.
        files: verdict on each index file.
        ready_seconds: time until all brokers were ready.
        seconds: duration of the run.
        mismatches: results, files and findings that are wrong.
    """

    release: str
    mode: Mode
    seed: int
    records: int = 0
    answers: int = 0
    followers_answers: int = 0
    refusals: int = 0
    files: list[IndexFile] = field(default_factory=list)
    ready_seconds: float = 0.0
    seconds: float = 0.0
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if there are no mismatches."""
        return not self.mismatches

    def count(self, verdict: str) -> int:
        """Return the number of index files with a verdict."""
        return sum(file.verdict == verdict for file in self.files)

    @property
    def differing(self) -> int:
        """Number of index files of followers that differ from the leader's file."""
        return sum(not file.as_leader for file in self.files)

    @property
    def reasons(self) -> Counter[str]:
        """Number of files that are not exact, by the clause that allows the difference."""
        return Counter(file.why.partition(":")[0] for file in self.files if file.why)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self) | {"verdict": "conforms" if self.ok else "diverges", "reasons": dict(self.reasons)}


class _ClusterScenario:
    """Execution of the scenario on a started cluster, which still runs at the end.

    Attributes:
        topics: expected state of each topic, by name.
    """

    def __init__(self, cluster: LocalCluster, result: ClusterResult, show: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._show = show
        self._clients: dict[int, Client] = {}
        self._portions = self._planned(result.seed)  # the batches of one append after another
        self._result = result
        self.topics = {name: Topic(name) for name in REPLICAS}

    @staticmethod
    def _planned(seed: int) -> Iterator[list[Batch]]:
        portion = 0
        while True:
            yield plan(seed * 1000 + portion, RECORDS)
            portion += 1

    def run(self) -> None:
        """Run the scenario.

        Raises:
            BrokerError: a broker died, or did not execute a request in time.
        """
        members = self._cluster.members
        with ExitStack() as stack:
            stack.callback(self._close_clients)
            controller = self._controller()
            for name, replicas in REPLICAS.items():
                controller.create_topic(name, CONFIG, replicas=replicas)
            self._append(REPLICATED)
            self._append(DIVERGING)
            self._check_lookups("replicated")

            self._kill(3)
            self._append(REPLICATED)
            self._start(3)
            self._check_lookups("unclean restart")

            self._stop(2)
            self._await_state(DIVERGING, lambda state: state.in_sync == {1}, "2 to leave the in-sync replicas")
            self._append(REPLICATED)
            kept = self.topics[DIVERGING].end
            self._append(DIVERGING, acks=1)
            del self.topics[DIVERGING].timestamps[kept:]
            # Under load, broker 3 may be out of the in-sync replicas, from which the next leader is elected.
            self._await_state(REPLICATED, lambda state: state.in_sync == {1, 3}, "3 to be in sync")
            self._kill(1)
            self._start(2)
            self._await_state(REPLICATED, lambda state: state.leader == 3, "3 to lead")
            self._controller().elect_unclean(DIVERGING)
            self._await_state(DIVERGING, lambda state: state.leader == 2, "2 to lead")
            self._append(REPLICATED)
            self._append(DIVERGING)
            self._check_lookups("leader change")

            self._start(1)
            self.topics[DIVERGING].interrupted[1] = [kept]
            self._check_lookups("truncation")
            assert all(member.running for member in members.values())

    # -- brokers ---------------------------------------------------------------------------------------------------

    def _client(self, node_id: int) -> Client:
        if node_id not in self._clients:
            self._clients[node_id] = self._cluster.members[node_id].connect()
        return self._clients[node_id]

    def _close_clients(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self._clients):
            if client := self._clients.pop(node_id, None):
                client.close()

    def _controller(self) -> Client:
        """Return a client of the controller, as soon as a running broker names one that runs."""
        deadline = Deadline(TIMEOUT_S)
        while True:
            for member in self._cluster.running:
                if self._runs(controller := self._client(member.node_id).metadata().controller):
                    return self._client(controller)
            if not deadline.pause():
                raise self._late("cluster", "a controller")

    def _kill(self, node_id: int) -> None:
        self._show(f"broker {node_id} is killed")
        self._interrupt(node_id)
        self._cluster.members[node_id].kill()

    def _stop(self, node_id: int) -> None:
        self._show(f"broker {node_id} is stopped")
        self._interrupt(node_id)
        self._cluster.members[node_id].stop()

    def _interrupt(self, node_id: int) -> None:
        self._close_clients(node_id)
        for name, topic in self.topics.items():
            if node_id in REPLICAS[name]:
                topic.interrupted.setdefault(node_id, []).append(topic.end)

    def _start(self, node_id: int) -> None:
        member = self._cluster.members[node_id]
        member.start()
        self._show(f"broker {node_id} is back after {member.ready_seconds:.1f} s")

    # -- topics ----------------------------------------------------------------------------------------------------

    def _await_state(self, topic: str, holds: Callable[[PartitionState], bool], what: str) -> PartitionState:
        """Wait until a running broker returns a state for which ``holds`` is true, and return the state."""
        deadline = Deadline(TIMEOUT_S)
        while True:
            for member in self._cluster.running:
                state = self._client(member.node_id).state(topic)
                if holds(state):
                    return state
            if not deadline.pause():
                raise self._late(topic, what)

    def _leader(self, topic: str) -> tuple[int, int]:
        """Return the leader and its epoch, as soon as the leader itself returns them."""
        deadline = Deadline(TIMEOUT_S)
        while True:
            state = self._await_state(topic, lambda state: self._runs(state.leader), "a leader")
            if self._client(state.leader).list_offset(topic, _END).leader_epoch == state.epoch:
                return state.leader, state.epoch
            if not deadline.pause():
                raise self._late(topic, "its leader to lead")

    def _runs(self, node_id: int) -> bool:
        return node_id in self._cluster.members and self._cluster.members[node_id].running

    def _append(self, name: str, acks: int = -1) -> None:
        topic = self.topics[name]
        leader, _ = self._leader(name)
        first = topic.end
        for batch in next(self._portions):
            records = [SimpleRecord(message.timestamp, None, message.value) for message in batch.messages]
            data = build_batch(records, codec=_CODECS[COMPRESSION[batch.partition]])
            self._client(leader).produce(name, data, acks=acks)
            topic.timestamps += [message.timestamp for message in batch.messages]
        topic.led.setdefault(leader, []).append(range(first, topic.end))
        self._show(f"{name}: offsets {first} to {topic.end - 1} through broker {leader}")

    def _await_replicas(self, topic: Topic, members: list[Member]) -> tuple[int, int]:
        """Wait until all logs have the right end in one leader epoch, and return the leader and the epoch.

        The leader must also return this end, because its last records are invisible before. A controller that notices
        late that a broker was away raises the epoch; then the wait begins again.
        """
        deadline = Deadline(TIMEOUT_S)
        while True:
            leader, epoch = self._leader(topic.name)
            found = {
                (node_id, replica_id): self._client(node_id).list_offset(
                    topic.name, _END, replica_id=replica_id, leader_epoch=epoch
                )
                for node_id, replica_id in [
                    *((member.node_id, DEBUG_REPLICA_ID) for member in members),
                    (leader, CONSUMER_REPLICA_ID),
                ]
            }
            if all(result.offset == topic.end for result in found.values()):
                return leader, epoch
            if not deadline.pause():
                raise self._late(topic.name, f"all to reach {topic.end} in epoch {epoch}, their results are {found}")

    def _late(self, topic: str, what: str) -> BrokerError:
        """Return the error for a state that was not reached in time."""
        log = self._cluster.running[0].log
        return BrokerError(f"{topic}: waited {TIMEOUT_S:g} s for {what} with Kafka {self._cluster.release}", log)

    # -- lookups ---------------------------------------------------------------------------------------------------

    def _check_lookups(self, when: str) -> None:
        """Look up the timestamps of all topics on all brokers; repeat a topic if its leader epoch changed."""
        result = self._result
        for topic in self.topics.values():
            known = len(result.mismatches)
            while not self._check_topic(topic, when):
                del result.mismatches[known:]
        self._show(f"{when}: {result.answers} results and {result.followers_answers} of followers in all")

    def _check_topic(self, topic: Topic, when: str) -> bool:
        """Look up the timestamps of a topic; return False if mismatches may be due to a new leader epoch."""
        mismatches = self._result.mismatches
        known = len(mismatches)
        members = [member for member in self._cluster.running if member.node_id in REPLICAS[topic.name]]
        leader, epoch = self._await_replicas(topic, members)
        targets = grid(set(topic.timestamps))
        targets = targets[:: max(1, len(targets) // MAX_TARGETS)]
        answers = self._check_leader(topic, leader, targets, when)
        for member in members:
            if member.node_id != leader:
                self._check_follower(topic, member.node_id, epoch, answers, when)
        return len(mismatches) == known or self._leader(topic.name) == (leader, epoch)

    def _check_leader(self, topic: Topic, leader: int, targets: list[int], when: str) -> list[OffsetResult]:
        answers = self._client(leader).answers(topic.name, targets)
        for answer in answers:
            found = None if answer.offset is None else (answer.offset, answer.timestamp)
            expected = topic.expected(answer.target)
            if answer.error or found != expected:
                self._differs("LO-6", topic, leader, f"{when}, at {answer.target}", str(expected), str(answer))
        self._result.answers += len(answers)
        return answers

    def _check_follower(self, topic: Topic, node_id: int, epoch: int, of_leader: list[OffsetResult], when: str) -> None:
        client = self._client(node_id)
        found = client.answers(topic.name, [theirs.target for theirs in of_leader], replica_id=DEBUG_REPLICA_ID)
        for theirs, own in zip(of_leader, found, strict=True):
            if own != theirs:
                what = f"{when}, at {theirs.target}"
                self._differs("LO-22", topic, node_id, what, f"{theirs}, as its leader", str(own))
        self._result.followers_answers += len(of_leader)
        refusals = {-1: NOT_LEADER, epoch: NOT_LEADER, epoch + 1: UNKNOWN_EPOCH} | (
            {epoch - 1: FENCED} if epoch else {}
        )
        for asked_epoch, error in refusals.items():
            for target in (_END, -2, topic.timestamps[0]):
                answer = client.list_offset(topic.name, target, leader_epoch=asked_epoch)
                if answer != OffsetResult(target, error=error):
                    what = f"{when}, as a client with epoch {asked_epoch}, at {target}"
                    self._differs("LO-21", topic, node_id, what, error, str(answer))
                self._result.refusals += 1

    def _differs(self, clause: str, topic: Topic, node_id: int, what: str, expected: str, actual: str) -> None:
        self._result.mismatches.append(Mismatch(clause, f"{topic.name} on broker {node_id}, {what}", expected, actual))


_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment of a replica."""

    log: Path
    batches: list[RecordBatch]

    @property
    def base_offset(self) -> int:
        """Base offset, which the names of the segment's files contain."""
        return int(self.log.stem)

    def surrounds(self, offset: int) -> bool:
        """Return True if the segment has records both before and after an offset."""
        return bool(self.batches) and self.base_offset < offset < self.batches[-1].next_offset

    def bytes_of(self, suffix: str) -> bytes:
        """Return the content of one of the segment's files; empty if it does not exist."""
        path = self.log.with_suffix(suffix)
        return path.read_bytes() if path.exists() else b""


def compare_replicas(
    topic: Topic, leader: int, directories: Mapping[int, Path], dialect: Dialect, interval: int
) -> tuple[list[IndexFile], list[Mismatch]]:
    """Compare the files of all replicas of a topic.

    Args:
        topic: expected state of the topic.
        leader: the broker that led the partition last.
        directories: directory of the partition, by broker.
        dialect: rules of the release.
        interval: ``index.interval.bytes`` of the topic.

    Returns:
        The verdict on each index file, and the violations.

    Raises:
        OSError, KidxError: a log cannot be read.
    """
    files: list[IndexFile] = []
    mismatches: list[Mismatch] = []
    of_leader = _segments(directories[leader])
    expected = _stored(of_leader)
    if [record.timestamp for segment in of_leader for batch in segment.batches for record in batch] != topic.timestamps:
        mismatches.append(Mismatch("RB-1", f"{topic.name} on broker {leader}", "the produced records", "other records"))
    for replica, directory in directories.items():
        segments = _segments(directory)
        found = _stored(segments)
        if found != expected:
            n = next(
                (n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
                min(map(len, (expected, found))),
            )
            mismatches.append(
                Mismatch(
                    "RB-1",
                    str(directory),
                    f"the {len(expected)} batches of its leader",
                    f"{len(found)}, other ones from {n} on",
                )
            )
        producers = ProducerState(directory.name, dialect)
        for segment in segments:
            rebuilt = _rebuilt(segment, dialect, interval, producers)
            for suffix in _SUFFIXES:
                if suffix not in rebuilt and not segment.log.with_suffix(suffix).exists():
                    continue
                verdict, why, wrong = _verdict(
                    topic, replica, segment, suffix, rebuilt.get(suffix, b""), dialect, interval
                )
                mismatches += wrong
                path = segment.log.with_suffix(suffix)
                same = directories[leader] / path.name
                as_leader = same.exists() and same.read_bytes() == path.read_bytes()
                files.append(IndexFile(replica, f"{directory.name}/{path.name}", verdict, why, as_leader))
    return files, mismatches


def _segments(directory: Path) -> list[Segment]:
    return [Segment(log, list(file_batches(log))) for log in sorted(directory.glob("*.log"))]


def _stored(segments: Iterable[Segment]) -> list[tuple[int, int, int, int]]:
    """Return offsets, leader epoch and checksum of each batch, which must be equal in every replica."""
    return [
        (batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.crc)
        for segment in segments
        for batch in segment.batches
    ]


def _rebuilt(segment: Segment, dialect: Dialect, interval: int, producers: ProducerState) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="kidx-rebuild-") as scratch:
        rebuild(segment.log, scratch, dialect=dialect, index_interval_bytes=interval, producer_state=producers)
        return {path.suffix: path.read_bytes() for path in Path(scratch).iterdir()}


def _verdict(
    topic: Topic, replica: int, segment: Segment, suffix: str, rebuilt: bytes, dialect: Dialect, interval: int
) -> tuple[Verdict, str, list[Mismatch]]:
    data, name = segment.bytes_of(suffix), str(segment.log.with_suffix(suffix))
    if data == rebuilt:
        return "exact", "", []
    if suffix == ".index":
        findings = offset_index_findings(data, segment.base_offset, segment.batches, name)
    elif suffix == ".timeindex":
        findings = time_index_findings(data, segment.base_offset, segment.batches, name)
    else:
        findings = txn_index_findings(data, [], name)
    wrong = [Mismatch(finding.clause, finding.subject, "a sound index", finding.message) for finding in findings]
    why = _why(topic, replica, segment, suffix, dialect, interval)
    if not why:
        wrong.append(Mismatch("SEG-30", name, "what recovery writes, or a rule that allows the difference", "neither"))
    return ("broken" if wrong else "sound"), why, wrong


def _why(topic: Topic, replica: int, segment: Segment, suffix: str, dialect: Dialect, interval: int) -> str:
    """Return the rule that allows an index to differ from the file that recovery writes; empty if none does."""
    for offset in topic.interrupted.get(replica, ()):
        if segment.surrounds(offset):
            return f"SEG-7: broker {replica} was interrupted at offset {offset}"
    if not dialect.append_per_batch and (groups := grouped(segment, interval)):
        return f"SEG-3: {groups}"
    led = any(
        offsets and segment.base_offset <= offsets[-1] and segment.batches[-1].last_offset >= offsets[0]
        for offsets in topic.led.get(replica, ())
    )
    if suffix == ".timeindex" and dialect.leader_timestamp == "record" and led:
        return f"SEG-9: broker {replica} was the leader and named the records themselves"
    return ""


def grouped(segment: Segment, interval: int) -> str:
    """Return how the batches must have been grouped into appends, if ``.index`` has one entry per append (SEG-3).

    An entry (offset, position) belongs to an append from that position up to the batch that ends with the offset. The
    entry was written because more than ``interval`` bytes had been appended since the previous entry. If the next
    append has no entry, at most that many bytes had been appended since this one. Batches between two entries may have
    been grouped in any way.

    Returns:
        A description; empty if no grouping explains the entries, or if each entry belongs to a single batch.
    """
    ends = {batch.last_offset: batch.position + batch.size_in_bytes for batch in segment.batches}
    starts = {batch.position: number for number, batch in enumerate(segment.batches)}
    data = segment.bytes_of(".index")
    data = data[: len(data) - len(data) % OFFSET_INDEX.size]
    several, start, end = 0, 0, 0
    for relative, position in OFFSET_INDEX.struct.iter_unpack(
        data[: len(data) // OFFSET_INDEX.size * OFFSET_INDEX.size]
    ):
        last = segment.base_offset + relative
        if position not in starts or last not in ends or not end <= position < ends[last]:
            return ""
        if position - start <= interval or (position > end and end - start > interval):
            return ""
        several += segment.batches[starts[position]].last_offset != last
        start, end = position, ends[last]
    size = segment.batches[-1].position + segment.batches[-1].size_in_bytes if segment.batches else 0
    if size > end and end - start > interval:
        return ""
    return f"{several} entries are appends of several batches" if several else "batches without an entry came together"


def run_cluster(
    release: str,
    *,
    seed: int = 0,
    mode: Mode | None = None,
    base: str | os.PathLike[str] | None = None,
    progress: Callable[[Step], None] | None = None,
    show: Callable[[str], None] = lambda _: None,
) -> ClusterResult:
    """Start a cluster of three brokers, run the scenario, stop the cluster, and compare the files of its brokers.

    Args:
        release: a locked release.
        seed: seed of the produced records.
        mode: ``"kraft"`` or ``"zookeeper"``; by default the usual mode of the release.
        base: parent of the cluster's directory.
        progress: callback that receives the progress of fetching jars.
        show: callback that receives a line of text for each activity.

    Raises:
        BrokerError: a broker did not start, died, or did not execute a request in time; the message contains its log.
    """
    started = time.monotonic()
    with LocalCluster(release, mode=mode, base=base, progress=progress) as cluster:
        show(f"{cluster.release}: three {cluster.mode} brokers ready after {cluster.ready_seconds:.1f} s")
        result = ClusterResult(cluster.release, cluster.mode, seed, ready_seconds=cluster.ready_seconds)
        scenario = _ClusterScenario(cluster, result, show)
        scenario.run()
        leaders = {}
        for name, replicas in REPLICAS.items():
            with cluster.members[replicas[0]].connect() as client:
                leaders[name] = client.state(name).leader
        cluster.stop()
        dialect, interval = dialect_of(cluster.release), int(CONFIG["index.interval.bytes"])
        for name, replicas in REPLICAS.items():
            directories = {replica: cluster.members[replica].log_dir / f"{name}-0" for replica in replicas}
            judged, wrong = compare_replicas(scenario.topics[name], leaders[name], directories, dialect, interval)
            result.files += judged
            result.mismatches += wrong
            for finding in verify_paths(list(directories.values()), release=cluster.release).findings:
                if finding.verdict == "broken":
                    result.mismatches.append(
                        Mismatch(finding.clause, finding.path, "no finding of kidx verify", finding.message)
                    )
    result.records = sum(topic.end for topic in scenario.topics.values())
    result.seconds = time.monotonic() - started
    return result
