"""One topic of a running broker, as an implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.broker.producers import TopicProducers
from conformance.implementations.protocol import OptionalMembers
from conformance.operations.broker import BROKER_OPS, records_of

if TYPE_CHECKING:
    from conformance.implementations.broker.producers import Sent
    from conformance.implementations.broker.reference import Files
    from conformance.implementations.broker.topic import RunningBroker
    from conformance.kafka.client import Producer, ProduceResult
    from conformance.operations import Operation
    from kidx.records import RecordBatch, SimpleRecord

Observed = dict[str, Any]
"""Result of a step: ``content``, the new bytes of the log, and ``answer``, the broker's response."""
ANSWER: Final = "answer"
CONTENT: Final = "content"


@dataclass(slots=True)
class BrokerDecision:
    """Decisions of the broker in the last step, which the reference repeats.

    Attributes:
        epoch: The leader's epoch.
        data: The batch that was sent; empty if the broker rejected it, or a producer built the batches.
        appended: The broker's response to the batch.
        records: The records that were sent.
        batches: The batches in the log, if the leader or a producer built them.
        rebuilt: True if the leader recompressed the batches.
        ending: The producer whose transaction has ended.
    """

    epoch: int = 0
    data: bytes = b""
    appended: ProduceResult | None = None
    records: Sequence[SimpleRecord] = ()
    batches: Sequence[RecordBatch] = ()
    rebuilt: bool = False
    ending: Producer | None = None


@dataclass(slots=True, eq=False)
class BrokerTopic(OptionalMembers):
    """Topic with one partition; the broker executes each operation before the reference.

    Args:
        topic: The topic's name, which no other topic of the broker has.
    """

    broker: RunningBroker
    topic: str
    settings: dict[str, Any] = field(default_factory=dict)
    timestamps: list[int] = field(default_factory=list)
    """Timestamps of the records in the log, in the order of their appends."""
    decided: BrokerDecision = field(default_factory=BrokerDecision)
    speaks_kafka: bool = True
    _producers: TopicProducers = field(init=False)
    _observed: Observed = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._producers = TopicProducers(self.topic)

    @property
    def name(self) -> str:
        """Name of the broker."""
        return self.broker.name

    @property
    def release(self) -> str:
        """Release of the broker."""
        return self.broker.release

    def begin(self, directory: Path) -> None:
        """Do nothing, because the broker has its own directory."""

    def end(self) -> None:
        """Do nothing, because the topic remains until the broker ends."""

    def supports(self, operation: str) -> bool:
        """Return True if there is an operation of that name."""
        return operation in BROKER_OPS

    def files(self) -> Files:
        """Return name and content of every file that is compared."""
        return self.broker.files(self.topic)

    def observation(self, operation: Operation) -> Observed:
        """Return the result of the last operation."""
        del operation
        return self._observed

    def perform(self, operation: Operation) -> Observed:
        """Execute one operation, and set :attr:`decided` for the reference.

        Raises:
            BrokerError: The broker died or failed.
        """
        self.decided = BrokerDecision(self.decided.epoch)
        self._observed = getattr(self, f"_{operation.name}")(*operation.args)
        return self._observed

    @property
    def stamped(self) -> bool:
        """True if the topic has LogAppendTime."""
        return self.settings.get("message.timestamp.type") == "LogAppendTime"

    def rebuilds(self, codec: str | None) -> bool:
        """Return True if the leader recompresses batches of this codec; with None, if it recompresses any batches."""
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
        self.decided = BrokerDecision(self.decided.epoch, data, appended, records)
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
        self.decided = BrokerDecision(
            self.decided.epoch, records=records, batches=batches, rebuilt=self.rebuilds(codec)
        )
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
        self.decided = BrokerDecision(self.decided.epoch, batches=batches, ending=producer)
        return {CONTENT: [(batch.is_control, batch.producer_id, batch.count) for batch in batches]}

    def _delete_before(self, offset: int) -> Observed:
        return {ANSWER: self.broker.client.delete_records(self.topic, offset)}
