"""Running broker as a participant of the broker machine: connections, stops and starts, files on disk."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.broker.reference import Checkpoints, Files, files_of
from conformance.kafka.broker.broker import BrokerError
from conformance.kafka.client import TIMEOUT_S, Client, kafka_python
from conformance.kafka.polling import Deadline
from kidx.dialect import dialect_of
from kidx.records import RecordBatch, iter_batches

if TYPE_CHECKING:
    from conformance.kafka.broker import Broker
    from kidx.records import SimpleRecord

_CLEAN: Final = ".kafka_cleanshutdown"
_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_LOG_STARTS: Final = "log-start-offset-checkpoint"
_CLOSE_LIMIT: Final = 5  # seconds for the closing of a producer
_LINGER_MS: Final = 600_000
"""Linger time that is so long that a producer sends a batch only when it is flushed."""


class RunningBroker:
    """Broker that the machine starts, queries and stops.

    Args:
        broker: A started broker; the caller must also stop it.

    Attributes:
        name: The name in reports.
        version: The latest version of ListOffsets that the release supports.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.release = broker.release
        form = "broker" if broker.build is None else f"broker:{broker.build.text}"
        self.name = f"{form} {broker.release}"
        self.version = dialect_of(broker.release).list_offsets_versions[1]
        self._stack = ExitStack()
        self._client: Client | None = None
        self._producers: dict[str, Any] = {}

    # -- connections -----------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """Connection, which is made on first use after a start."""
        if self._client is None:
            self._client = self._stack.enter_context(self.broker.connect())
        return self._client

    def send(self, topic: str, records: list[SimpleRecord], codec: str) -> None:
        """Let kafka-python produce the records, and wait until all replicas have acknowledged them.

        Raises:
            BrokerError: A record was not acknowledged.
        """
        producer = self._producers.get(codec) or self._producers.setdefault(codec, self._producer(codec))
        sent = [
            producer.send(topic, r.value, key=r.key, partition=0, timestamp_ms=max(r.timestamp, 0)) for r in records
        ]
        try:
            producer.flush(timeout=TIMEOUT_S)
            for future in sent:
                future.get(timeout=TIMEOUT_S)
        except Exception as error:
            self.broker.check()
            what = f"the broker of Kafka {self.release} failed a producer of {topic}: {error!r}"
            raise BrokerError(what, self.broker.log) from error

    def _producer(self, codec: str) -> Any:
        producer = kafka_python().KafkaProducer(
            bootstrap_servers=self.broker.bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            linger_ms=_LINGER_MS,
            request_timeout_ms=int(TIMEOUT_S * 1000),
            delivery_timeout_ms=_LINGER_MS + 2 * int(TIMEOUT_S * 1000),
            bootstrap_timeout_ms=int(TIMEOUT_S * 1000),
        )
        self._stack.callback(_close, producer)
        return producer

    def disconnect(self) -> None:
        """Close all connections; the next request opens new ones."""
        self._stack.close()
        self._client = None
        self._producers.clear()

    # -- stop and start --------------------------------------------------------------------------------------------

    def stop(self, *, clean: bool) -> None:
        """Stop the broker cleanly or with SIGKILL.

        Raises:
            BrokerError: The broker has died, or does not shut down cleanly.
        """
        self.disconnect()
        if clean:
            self.broker.stop()
        else:
            self.broker.kill()

    def start_if_stopped(self) -> None:
        """Start the broker unless it runs.

        Raises:
            BrokerError: The broker does not start.
        """
        if not self.broker.running:
            self.disconnect()
            self.broker.start()

    def start(self) -> None:
        """Start the broker with its existing files.

        Raises:
            BrokerError: The broker does not start.
        """
        self.broker.start()

    # -- files on disk ---------------------------------------------------------------------------------------------

    def directory(self, topic: str) -> Path:
        """Return the directory of the topic's partition."""
        return self.broker.log_dir / f"{topic}-0"

    def files(self, topic: str) -> Files:
        """Return name and content of every file of the partition that is compared."""
        return files_of(self.directory(topic))

    def first_segment(self, topic: str) -> int:
        """Return the base offset of the oldest segment on disk."""
        return min(self._segments(topic))

    def last_segment(self, topic: str) -> int:
        """Return the base offset of the newest segment on disk."""
        return max(self._segments(topic))

    def end_offset(self, topic: str) -> int:
        """Return the offset after the last batch on disk."""
        last = self.last_segment(topic)
        batches = self.batches_from(topic, last)
        return batches[-1].next_offset if batches else last

    def _segments(self, topic: str) -> list[int]:
        return [int(path.stem) for path in self.directory(topic).glob("*.log")]

    def batches_from(self, topic: str, offset: int) -> list[RecordBatch]:
        """Return the batches in the log from an offset on, at which a batch begins."""
        logs = sorted(self.directory(topic).glob("*.log"), key=lambda path: int(path.stem))
        bases = [int(path.stem) for path in logs]
        first = max((number for number, base in enumerate(bases) if base <= offset), default=0)
        found = (b for log in logs[first:] for b in iter_batches(log.read_bytes(), source=str(log)))
        return [batch for batch in found if batch.base_offset >= offset]

    def await_batches(self, topic: str, offset: int) -> list[RecordBatch]:
        """Return the batches from an offset on, as soon as there is at least one.

        Raises:
            BrokerError: No batch arrives within the time limit.
        """
        deadline = Deadline(TIMEOUT_S)
        while not (found := self.batches_from(topic, offset)):
            if not deadline.pause():
                raise BrokerError(f"nothing follows offset {offset} in {topic} within {TIMEOUT_S:g} s", self.broker.log)
        return found

    def checkpoints(self, topic: str) -> Checkpoints:
        """Return the checkpoints that the stopped broker will find when it starts."""
        root = self.broker.log_dir
        return Checkpoints(
            clean=(root / _CLEAN).exists(),
            recovery_point=_checkpoint(root / _RECOVERY_POINTS).get(topic, 0),
            log_start_offset=_checkpoint(root / _LOG_STARTS).get(topic, 0),
        )


def _close(producer: Any) -> None:
    with contextlib.suppress(Exception):  # the flush before has already reported records that were not sent
        producer.close(timeout=_CLOSE_LIMIT)


def _checkpoint(path: Path) -> dict[str, int]:
    """Return the offset of partition 0 of every topic in a checkpoint file, by topic."""
    try:
        rows = [line.split() for line in path.read_text("utf-8").splitlines()[2:]]
    except FileNotFoundError:
        return {}
    return {topic: int(offset) for topic, partition, offset in rows if partition == "0"}
