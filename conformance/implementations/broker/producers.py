"""Producers of one topic, which send plain, corrupt and transactional batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.operations.broker import records_of
from kidx.records import Codec, build_batch

if TYPE_CHECKING:
    from conformance.kafka.client import Client, Producer, ProduceResult
    from kidx.records import SimpleRecord

_TOO_LARGE: Final = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")


class Sent(NamedTuple):
    """Batch that was sent.

    Attributes:
        records: The records in it.
        appended: The broker's response.
    """

    data: bytes
    records: list[SimpleRecord]
    appended: ProduceResult

    @property
    def error(self) -> str | None:
        """Error of the response, or None; both errors of batches that are too large have the same name."""
        return "too large" if self.appended.error in _TOO_LARGE else self.appended.error


@dataclass(slots=True)
class _Transactional:
    """Transactional producer: its identity, which the coordinator has assigned, and its next sequence number."""

    producer: Producer
    sequence: int = 0
    is_open: bool = False


@dataclass(slots=True)
class TopicProducers:
    """Producers of one topic with one partition. Each method takes the client, which changes after a restart.

    Args:
        topic: The name of the topic, with which transactional ids begin.
    """

    topic: str
    _known: dict[str, _Transactional] = field(default_factory=dict)

    def append(self, client: Client, rows: list[list[Any]], codec: str, producer: str | None = None) -> Sent:
        """Send a batch, with a producer as part of the producer's transaction, which is begun if necessary."""
        records, fields, transactional_id = records_of(rows), {}, None
        if producer is not None:
            transactional_id = self.id_of(producer)
            known = self._begun(client, producer)
            fields = {**known.producer._asdict(), "base_sequence": known.sequence, "is_transactional": True}
        data = build_batch(records, codec=Codec[codec.upper()], **fields)
        appended = client.append(self.topic, data, transactional_id=transactional_id)
        if producer is not None and appended.error is None:
            known.sequence += len(records)
        return Sent(data, records, appended)

    def append_corrupt(self, client: Client, rows: list[list[Any]]) -> Sent:
        """Send a batch in which one bit of the last byte is flipped."""
        records = records_of(rows)
        data = bytearray(build_batch(records))
        data[-1] ^= 1
        return Sent(bytes(data), records, client.append(self.topic, bytes(data)))

    def id_of(self, producer: str) -> str:
        """Return the transactional id of a producer."""
        return f"{self.topic}-{producer}"

    @property
    def begun(self) -> dict[str, Producer]:
        """Producers with an open transaction."""
        return {name: known.producer for name, known in self._known.items() if known.is_open}

    def renew(self, client: Client, producer: str) -> None:
        """Request the next epoch after a transaction; the response shows that the coordinator recorded its end.

        Then the coordinator writes no second marker after a crash.
        """
        self._known[producer] = _Transactional(client.init_producer(self.id_of(producer)))

    def _begun(self, client: Client, name: str) -> _Transactional:
        if name not in self._known:
            self.renew(client, name)
        known = self._known[name]
        if not known.is_open:
            client.join_transaction(self.topic, self.id_of(name), known.producer)
            known.is_open = True
        return known
