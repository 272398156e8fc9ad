"""One topic of a running broker, as the implementation that a lockstep drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.broker.producers import TopicProducers
from conformance.operations.broker import BROKER_OPS, records_of

if TYPE_CHECKING:
    from conformance.implementations.broker.producers import Sent
    from conformance.implementations.broker.reference import Files
    from conformance.implementations.broker.topic import RunningBroker
    from conformance.kafka.client import Producer, ProduceResult
    from conformance.operations import Operation
    from kidx.records import RecordBatch, SimpleRecord

Observed = dict[str, Any]
"""What a step shows: ``content``, what the log has got from it, and ``answer``, what the broker has said to it."""
ANSWER: Final = "answer"
CONTENT: Final = "content"


@dataclass(slots=True)
class Decided:
    """What the broker has decided in its last step, and the reference takes over.

    Attributes:
        epoch: the leader's.
        data: the batch that was sent; empty if the broker refused it, or a producer made the batches.
        appended: the broker's answer to it.
        records: what was sent.
        batches: as they lie in the log, where the leader or a producer has made them.
        rebuilt: the leader has compressed them anew.
        ending: the producer whose transaction has ended.
    """

    epoch: int = 0
    data: bytes = b""
    appended: ProduceResult | None = None
    records: Sequence[SimpleRecord] = ()
    batches: Sequence[RecordBatch] = ()
    rebuilt: bool = False
    ending: Producer | None = None


@dataclass(slots=True, eq=False)
class BrokerTopic:
    """A topic of one partition; the broker performs each operation before the reference does.

    Args:
        broker: a running one.
        topic: its name, which no other topic of the broker has.
    """

    broker: RunningBroker
    topic: str
    settings: dict[str, Any] = field(default_factory=dict)
    timestamps: list[int] = field(default_factory=list)
    """Of the records in the log, in the order of their appends."""
    decided: Decided = field(default_factory=Decided)
    speaks_kafka: bool = True
    _producers: TopicProducers = field(init=False)
    _observed: Observed = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._producers = TopicProducers(self.topic)

    @property
    def name(self) -> str:
        """As the broker's."""
        return self.broker.name

    @property
    def release(self) -> str:
        """As the broker's."""
        return self.broker.release

    def begin(self, directory: Path) -> None:
        """Its files are the broker's."""

    def end(self) -> None:
        """The topic stays until the broker ends."""

    def supports(self, operation: str) -> bool:
        """Whether it has an operation of that name."""
        return operation in BROKER_OPS

    def files(self) -> Files:
        """Name and content of every file that is compared."""
        return self.broker.files(self.topic)

    def observation(self, operation: Operation) -> Observed:
        """What the last operation has shown."""
        del operation
        return self._observed

    def perform(self, operation: Operation) -> Observed:
        """Performs one operation; :attr:`decided` tells what the reference has to know of it.

        Raises:
            BrokerError: the broker died or failed.
        """
        self.decided = Decided(self.decided.epoch)
        self._observed = getattr(self, f"_{operation.name}")(*operation.args)
        return self._observed

    @property
    def stamped(self) -> bool:
        """Whether the broker gives the records its own time."""
        return self.settings.get("message.timestamp.type") == "LogAppendTime"

    def rebuilds(self, codec: str | None) -> bool:
        """Whether the leader compresses anew what a producer has compressed with a codec; None: with any."""
        name = str(self.settings.get("compression.type", "producer"))
        return name != "producer" and codec != ("none" if name == "uncompressed" else name)

    # -- operations ------------------------------------------------------------------------------------------------

    def _create_topic(self, settings: dict[str, Any]) -> Observed:
        self.settings = settings
        self.broker.client.create_topic(self.topic, {key: str(value) for key, value in settings.items()})
        self.decided.epoch = self.broker.client.await_leader(self.topic)
        return {}

    def _append_batch(self, rows: list[list[Any]], codec: str, producer: str | None) -> Observed:
        return self._appended(self._producers.append(self.broker.client, rows, codec, producer), codec)

    def _append_corrupt(self, rows: list[list[Any]]) -> Observed:
        return self._appended(self._producers.append_corrupt(self.broker.client, rows), "none")

    def _appended(self, sent: Sent, codec: str) -> Observed:
        data, records, appended = sent
        self.decided = Decided(self.decided.epoch, data, appended, records)
        answer = (appended.offset, sent.error)
        if appended.error is not None:
            return {ANSWER: answer}
        stamp = appended.log_append_time
        self.timestamps += [record.timestamp if stamp < 0 else stamp for record in records]
        if not self.rebuilds(codec):
            return {ANSWER: answer}
        self.decided.rebuilt = True
        self.decided.batches = self.broker.await_batches(self.topic, appended.offset)
        return {CONTENT: [(r.timestamp, r.key, r.value) for b in self.decided.batches for r in b], ANSWER: answer}

    def _send_records(self, rows: list[list[Any]], codec: str) -> Observed:
        records, end = records_of(rows), self.broker.end_offset(self.topic)
        self.broker.send(self.topic, records, codec)
        batches = self.broker.await_batches(self.topic, end)
        self.decided = Decided(self.decided.epoch, records=records, batches=batches, rebuilt=self.rebuilds(codec))
        self.timestamps += [record.timestamp for batch in batches for record in batch]
        return {CONTENT: [(record.key, record.value) for batch in batches for record in batch]}

    def _end_transaction(self, name: str, commit: bool) -> Observed:
        producer = self._producers.begun.get(name)
        if producer is None:
            return {}
        end, client = self.broker.end_offset(self.topic), self.broker.client
        client.end_and_await_marker(self.topic, self._producers.id_of(name), producer, commit=commit)
        self._producers.renew(client, name)
        batches = self.broker.await_batches(self.topic, end)
        self.decided = Decided(self.decided.epoch, batches=batches, ending=producer)
        return {CONTENT: [(batch.is_control, batch.producer_id, batch.count) for batch in batches]}

    def _delete_before(self, offset: int) -> Observed:
        return {ANSWER: self.broker.client.delete_records(self.topic, offset)}
