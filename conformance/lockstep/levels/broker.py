"""All topics of a running broker, each in a lockstep with its reference; a stop and a start concern them all.

One broker serves many examples, each in a topic of its own, because a start costs seconds. Every topic is part of every
restart from the moment it is made, and its own operations are what a trace of it holds.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from conformance.attribution.broker import BEYOND_RECOVERY, RECORDS_STAY
from conformance.implementations.broker.reference import ReferencePartition
from conformance.implementations.broker.subject import BrokerTopic
from conformance.kafka.broker.errors import BrokerError
from conformance.lockstep.levels.topic import BrokerStatistics, TopicLockstep
from conformance.operations import Operation
from conformance.operations.broker import BROKER_OPS, records_of
from kidx.errors import KidxError
from kidx.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.implementations.broker.topic import RunningBroker
    from conformance.kafka.client import ProduceResult
    from conformance.lockstep.divergence import Divergence, DivergenceError
    from kidx.records import SimpleRecord


class PredictedDeathError(Exception):
    """The broker does not come up again, and neither does kidx's log: its life is over, and nothing differs."""


class BrokerLockstep:
    """The topics of one broker, each beside its reference.

    Args:
        broker: started.
        scratch: an empty directory for the references.
        reference: the class of the reference; a mutant's in a test.
        excuse: decides about a difference: True leaves the topic out from then on, False raises.
        prefix: of its topics' names, of which no other lockstep of the broker has the same.
    """

    def __init__(
        self,
        broker: RunningBroker,
        scratch: Path,
        *,
        reference: type[ReferencePartition] = ReferencePartition,
        excuse: Callable[[Divergence], int] = lambda _: False,
        prefix: str = "example",
    ) -> None:
        self.broker = broker
        self.release = broker.release
        self.scratch = scratch
        self.reference = reference
        self.excuse = excuse
        self.statistics = BrokerStatistics()
        self.topics: list[TopicLockstep] = []
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))

    @property
    def topic(self) -> TopicLockstep:
        """The one that the operations are about: the newest."""
        return self.topics[-1]

    @property
    def failure(self) -> DivergenceError | None:
        """The difference that has ended it, if one has."""
        return next((topic.failure for topic in self.topics if topic.failure is not None), None)

    def supports(self, operation: str) -> bool:
        """Whether it has an operation of that name."""
        return operation in BROKER_OPS

    def perform(self, operation: Operation) -> None:
        """One step of both, and everything that can be compared after it.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: the broker died or failed.
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
        """The same for one topic, which need not be the newest.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: the broker died or failed.
        """
        self.statistics.steps += 1
        topic.perform(operation)

    def add_topic(self) -> TopicLockstep:
        """A lockstep for one more topic, which its first operation creates."""
        name = next(self._names)
        topic = TopicLockstep(
            BrokerTopic(self.broker, name),
            self.scratch / name,
            partition_type=self.reference,
            excuse=self.excuse,
            statistics=self.statistics,
        )
        self.topics.append(topic)
        self.statistics.topics += 1
        return topic

    def kill_while_appending(self, topic: TopicLockstep, rows: Sequence[list[list[Any]]], *, acknowledged: int) -> None:
        """Sends batches without waiting, kills the broker after so many acknowledgements, and starts it again.

        Raises:
            DivergenceError: the log does not hold the beginning of them, or less than was acknowledged; or as `start`.
            BrokerError: it does not come up.
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
        """The reference takes over the batches that the broker had appended when it was killed."""
        end = topic.reference.log.end_offset
        found = self.broker.batches_from(topic.name, end)
        stamped = topic.subject.stamped
        content = [[(None if stamped else r.timestamp, r.key, r.value) for r in batch] for batch in found]
        wanted = [[(None if stamped else r.timestamp, r.key, r.value) for r in each] for each in sent]
        topic.hold("outcome", wanted[: len(found)], content, (RECORDS_STAY,))
        first = end
        offsets = [first := first + len(each) for each in [[], *sent]]
        topic.hold("outcome", offsets[: len(seen)], [reply.offset for reply in seen], ("LG-1",))
        topic.hold("outcome", True, len(found) >= len(seen), (RECORDS_STAY,))
        topic.take_over(found)
        end = topic.reference.log.end_offset
        if len(found) < len(sent) and self.broker.last_segment(topic.name) == end:
            topic.reference.roll(end)  # the kill came when the next batch had a segment, and was not in it yet

    # -- stopping and starting -------------------------------------------------------------------------------------

    def stop(self, *, clean: bool) -> None:
        """Stops the broker; then the files of all topics are compared, of a killed one with the room in its indexes.

        Raises:
            DivergenceError: they differ, and it counts.
            BrokerError: it had died, or does not shut down cleanly.
        """
        self.broker.stop(clean=clean)
        if clean:
            self.statistics.restarts += 1
        else:
            self.statistics.kills += 1
        for topic in self._active():
            topic.let_retention_run()
            topic.reference.stop(clean=clean)
            topic.compare_files("clean stop" if clean else "kill")
            self.statistics.segments += sum(name.endswith(".log") for name in topic.reference.files())

    def start(self) -> None:
        """Starts the broker on what lies there, and the references too; then everything is compared.

        Raises:
            DivergenceError: they differ, and it counts.
            PredictedDeathError: it does not come up, and neither does a reference.
            BrokerError: it does not come up, and kidx cannot tell why.
        """
        refused = self._start_references()
        try:
            self.broker.start()
        except BrokerError as error:
            if not refused:
                raise
            self.statistics.refused_starts += 1
            self.statistics.clauses.update((BEYOND_RECOVERY,))
            raise PredictedDeathError(refused[0][1]) from error
        for topic, why in refused:
            topic.hold("outcome", f"does not come up: {why}", "comes up", (BEYOND_RECOVERY,))
        for topic in self._active():
            topic.reference.lead(self.broker.client.await_leader(topic.name))
            topic.compare(every=True, moment="start")

    def _start_references(self) -> list[tuple[TopicLockstep, str]]:
        """The topics whose log cannot be loaded, and why."""
        refused: list[tuple[TopicLockstep, str]] = []
        for topic in self._active():
            try:
                topic.reference.start(self.broker.checkpoints(topic.name))
            except (KidxError, OSError) as error:
                refused.append((topic, f"{topic.name}: {error}"))
        return refused

    def _active(self) -> list[TopicLockstep]:
        return [topic for topic in self.topics if topic.active]
