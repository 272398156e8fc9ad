"""What the scenarios ask of a broker, through kafka-python."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from conformance.errors import ToolError
from conformance.kafka.broker.workload import COMPRESSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from conformance.kafka.broker.workload import Batch

LIMIT_MS = 20_000
# A batch leaves when it is flushed, never because time has passed.
_LINGER_MS = 600_000


class Answer(NamedTuple):
    """What a broker says to a timestamp or a special one; the timestamp is -1 where it has none to tell."""

    offset: int
    timestamp: int
    leader_epoch: int | None


class Client:
    """A producer, a consumer and an admin client for one broker; a context manager.

    Raises:
        ToolError: kafka-python is not installed.
        KafkaError: the broker does not answer.
    """

    def __init__(self, bootstrap: str) -> None:
        self._kafka = kafka = kafka_python()
        self._common = {
            "bootstrap_servers": bootstrap,
            "request_timeout_ms": LIMIT_MS,
            "bootstrap_timeout_ms": LIMIT_MS,
        }
        self._stack = ExitStack()
        self._admin = self._closing(kafka.KafkaAdminClient(**self._common))
        # A group of None: no coordinator, no offsets topic.
        self._consumer = self._closing(kafka.KafkaConsumer(**self._common, group_id=None, enable_auto_commit=False))

    def _closing(self, part: Any) -> Any:
        self._stack.callback(part.close)
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic of one replica and wait until its partitions have leaders."""
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config)}
        self._admin.create_topics({topic: options}, timeout_ms=LIMIT_MS, wait_for_metadata=True)

    def produce(self, topic: str, batches: Iterable[Batch]) -> None:
        """Produce each batch in a request of its own, acknowledged by all replicas before the next one."""
        producers: dict[str | None, Any] = {}
        for batch in batches:
            codec = COMPRESSION[batch.partition]
            producer = producers.get(codec) or producers.setdefault(codec, self._producer(codec))
            sent = [
                producer.send(topic, message.value, partition=batch.partition, timestamp_ms=message.timestamp)
                for message in batch.messages
            ]
            producer.flush(timeout=LIMIT_MS / 1000)
            for future in sent:
                future.get(timeout=LIMIT_MS / 1000)

    def _producer(self, codec: str | None) -> Any:
        producer = self._kafka.KafkaProducer(
            **self._common,
            acks="all",
            compression_type=codec,
            linger_ms=_LINGER_MS,
            delivery_timeout_ms=_LINGER_MS + 2 * LIMIT_MS,  # it insists on more than linger and request together
        )
        return self._closing(producer)

    def offsets_for_times(self, topic: str, targets: Sequence[Sequence[int]]) -> list[list[Answer | None]]:
        """Look up, for every partition, its targets; None is the answer where no record is late enough.

        A request asks every partition for one timestamp, so that the longest list of targets counts.
        """
        answers: list[list[Answer | None]] = [[] for _ in targets]
        for turn in range(max(map(len, targets))):
            asked = {self._partition(topic, n): each[turn] for n, each in enumerate(targets) if turn < len(each)}
            for partition, answer in self._consumer.offsets_for_times(asked, timeout_ms=LIMIT_MS).items():
                answers[partition.partition].append(None if answer is None else Answer(*answer))
        return answers

    def list_offsets(self, topic: str, partitions: int, special: int) -> list[Answer]:
        """Ask every partition for one of the special timestamps (-1, -2, …).

        Raises:
            KafkaError: the broker's release does not know it.
        """
        asked = {self._partition(topic, n): special for n in range(partitions)}
        found = self._admin.list_partition_offsets(asked, timeout_ms=LIMIT_MS)
        return [Answer(*found[partition]) for partition in asked]

    def _partition(self, topic: str, partition: int) -> Any:
        return self._kafka.TopicPartition(topic, partition)


def kafka_python() -> Any:
    """kafka-python itself.

    Raises:
        ToolError: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            # It reads its schemas while it is imported, in a way that Python 3.11 and 3.12 deprecate.
            warnings.simplefilter("ignore", DeprecationWarning)
            import kafka  # noqa: PLC0415  (an optional dependency)
    except ImportError as error:
        raise ToolError("asking a broker needs kafka-python: pip install 'kidx[broker]'") from error
    return kafka
