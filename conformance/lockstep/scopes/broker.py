"""Lockstep of a running broker: all its topics, each with its own reference.

One broker serves many examples, each in its own topic, because a start takes seconds. A restart affects all topics. A
trace contains the operations of one topic.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from conformance.attribution.broker import BEYOND_RECOVERY, RECORDS_STAY
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.broker.subject import BrokerTopic
from conformance.kafka.broker.broker import BrokerError
from conformance.lockstep.scopes.topic import BrokerStatistics, TopicLockstep
from conformance.operations import Operation
from conformance.operations.broker import records_of
from kidx.errors import KidxError
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.implementations.broker.topic import RunningBroker
    from conformance.kafka.client import ProduceResult
    from conformance.lockstep.divergence import Decision, Divergence, DivergenceError
    from kidx.records import SimpleRecord


class ExpectedStartFailureError(Exception):
    """Failed start of the broker that kidx has predicted; the run ends without a divergence."""


class BrokerLockstep:
    """Topics of one broker, each with its reference.

    Args:
        broker: The broker, which is running.
        scratch: An empty directory for the references.
        reference: The class of the reference; tests pass a mutant.
        on_divergence: A callback that receives each divergence. It returns True to exclude the topic from now on, and
            False to raise DivergenceError.
        prefix: The prefix of the topics' names, unique among the locksteps of the broker.
    """

    def __init__(
        self,
        broker: RunningBroker,
        scratch: Path,
        *,
        reference: type[ReferencePartition] = ReferencePartition,
        on_divergence: Callable[[Divergence], Decision | bool] = lambda _: False,
        prefix: str = "example",
    ) -> None:
        self.broker = broker
        self.release = broker.release
        self.name = broker.name
        self.scratch = scratch
        self.reference = reference
        self.on_divergence = on_divergence
        self.statistics = BrokerStatistics()
        self.topics: list[TopicLockstep] = []
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))

    @property
    def topic(self) -> TopicLockstep:
        """The topic of the current operations: the newest."""
        return self.topics[-1]

    @property
    def failure(self) -> DivergenceError | None:
        """The divergence that has ended the run, or None."""
        return next((topic.failure for topic in self.topics if topic.failure is not None), None)

    def anew(self, prefix: str) -> BrokerLockstep:
        """Return a new lockstep on the same broker, without topics and with another prefix for their names."""
        scratch, known = self.scratch / prefix, self.on_divergence
        return BrokerLockstep(self.broker, scratch, reference=self.reference, on_divergence=known, prefix=prefix)

    def perform(self, operation: Operation) -> None:
        """Execute one step with both sides, and compare everything afterwards.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
            BrokerError: The broker died or failed.
        """
        if operation.name == "create_topic":
            self.add_topic()
        if operation.name in ("restart_broker", "kill_broker"):
            self.statistics.steps += 1
            for topic in self.topics:
                topic.operations.append(operation)
            self.stop(clean=operation.name == "restart_broker")
            self.start()
        else:
            self.perform_on(self.topic, operation)

    def perform_on(self, topic: TopicLockstep, operation: Operation) -> None:
        """Execute one step on any topic.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
            BrokerError: The broker died or failed.
        """
        self.statistics.steps += 1
        topic.perform(operation)

    def add_topic(self) -> TopicLockstep:
        """Return the lockstep of a new topic; its first operation must create the topic."""
        name = next(self._names)
        topic = TopicLockstep(
            BrokerTopic(self.broker, name),
            self.scratch / name,
            partition_type=self.reference,
            on_divergence=self.on_divergence,
            statistics=self.statistics,
        )
        self.topics.append(topic)
        self.statistics.topics += 1
        return topic

    def kill_while_appending(self, topic: TopicLockstep, rows: Sequence[list[list[Any]]], *, acknowledged: int) -> None:
        """Send all batches without waiting, kill the broker after a number of acknowledgements, and start it again.

        Raises:
            DivergenceError: The log does not contain a prefix of the batches, or lacks acknowledged batches; or the
                sides diverge after the start.
            BrokerError: The broker does not start.
        """
        self.statistics.steps += 1
        topic.operations.append(Operation("append_batch", (rows[0], "none", None)))
        records = [records_of(each) for each in rows]
        batches = [build_batch(each) for each in records]
        replies = self.broker.client.append_in_flight(topic.name, batches)
        seen = [reply for _, reply in zip(range(acknowledged), replies, strict=False)]
        self.broker.stop(clean=False)
        self.statistics.kills += 1
        self.statistics.acknowledged += len(seen)
        self._take_over_beginning(topic, records, seen)
        for each in self._active():
            each.reference.stop(clean=False)
            each.compare_logs()
        self.start()

    def _take_over_beginning(
        self, topic: TopicLockstep, sent: list[list[SimpleRecord]], seen: Sequence[ProduceResult]
    ) -> None:
        """Append to the reference those batches that the broker had appended when it was killed."""
        end = topic.reference.log.end_offset
        found = self.broker.batches_from(topic.name, end)
        stamped = topic.subject.stamped  # the topic has LogAppendTime
        content = [[(None if stamped else r.timestamp, r.key, r.value) for r in batch] for batch in found]
        wanted = [[(None if stamped else r.timestamp, r.key, r.value) for r in each] for each in sent]
        topic.compare_values("outcome", wanted[: len(found)], content, (RECORDS_STAY,))
        first = end
        offsets = [first := first + len(each) for each in [[], *sent]]
        topic.compare_values("outcome", offsets[: len(seen)], [reply.offset for reply in seen], ("LG-1",))
        topic.compare_values("outcome", True, len(found) >= len(seen), (RECORDS_STAY,))
        topic.adopt_batches(found)
        end = topic.reference.log.end_offset
        if len(found) < len(sent) and self.broker.last_segment(topic.name) == end:
            topic.reference.roll(end)  # the broker was killed between a roll and the append that caused it

    def finish(self) -> None:
        """Stop the broker cleanly after the last step, and compare its files.

        Raises:
            DivergenceError: The files differ, and the divergence counts.
            BrokerError: The broker had died, or does not shut down cleanly.
        """
        self.stop(clean=True)

    # -- stopping and starting -------------------------------------------------------------------------------------

    def stop(self, *, clean: bool) -> None:
        """Stop the broker, cleanly or by SIGKILL, and compare the files of all topics.

        Raises:
            DivergenceError: The files differ, and the divergence counts.
            BrokerError: The broker had died, or does not shut down cleanly.
        """
        self.broker.stop(clean=clean)
        if clean:
            self.statistics.restarts += 1
        else:
            self.statistics.kills += 1
        for topic in self._active():
            topic.sync_retention()
            topic.reference.stop(clean=clean)
            topic.compare_files("clean stop" if clean else "kill")
            self.statistics.segments += sum(name.endswith(".log") for name in topic.reference.files())

    def start(self) -> None:
        """Start the broker and the references on the existing files, and compare all results and files.

        Raises:
            DivergenceError: The sides diverge, and the divergence counts.
            ExpectedStartFailureError: The broker does not start, and neither does a reference.
            BrokerError: The broker does not start, but all references do.
        """
        refused = self._start_references()
        try:
            self.broker.start()
        except BrokerError as error:
            if not refused:
                raise
            self.statistics.refused_starts += 1
            self.statistics.clauses.update((BEYOND_RECOVERY,))
            raise ExpectedStartFailureError(refused[0][1]) from error
        for topic, why in refused:
            topic.compare_values("outcome", f"does not start: {why}", "starts", (BEYOND_RECOVERY,))
        for topic in self._active():
            topic.reference.become_leader(self.broker.client.await_leader(topic.name))
            topic.compare(every=True, moment="start")

    def _start_references(self) -> list[tuple[TopicLockstep, str]]:
        """Start all references; return the topics whose reference cannot load the log, each with the reason."""
        refused: list[tuple[TopicLockstep, str]] = []
        for topic in self._active():
            try:
                topic.reference.start(self.broker.checkpoints(topic.name))
            except (KidxError, OSError) as error:
                refused.append((topic, f"{topic.name}: {error}"))
        return refused

    def _active(self) -> list[TopicLockstep]:
        return [topic for topic in self.topics if topic.active]
