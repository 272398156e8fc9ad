"""One client of Kafka's wire protocol, on the messages of kafka-python.

::

    with Client(Address("127.0.0.1", 9092)) as client:
        client.create_topic("t", {"retention.ms": "-1"})
        client.await_leader("t")
        client.produce("t", build_batch(records))
        client.versions("ListOffsets")  # range(1, 11)
        client.ask_offsets([Question("t", 1_700_000_000_000), Question("t", -3)], version=7)

No client library sends such batches and such questions as they are. A request goes in a version that the broker offers,
every answer has a time limit, and each kind of failure is a class of its own: :mod:`conformance.kafka.client.errors`.
"""

from __future__ import annotations

from conformance.kafka.client.answers import (
    LARGEST_TARGET,
    SPECIAL_TARGETS,
    AbortedTransaction,
    Answer,
    Appended,
    EpochEnd,
    FetchedBatches,
    Isolation,
    Metadata,
    OffsetAnswer,
    PartitionState,
    Producer,
    Question,
)
from conformance.kafka.client.client import Client
from conformance.kafka.client.connection import LIMIT, Address
from conformance.kafka.client.errors import (
    ClientError,
    ClosedError,
    NoAnswerError,
    NotOfferedError,
    RefusedError,
    UndecodableError,
    UnreachableError,
)
from conformance.kafka.client.fetch import Fetched, first_record
from conformance.kafka.client.library import kafka_python
from conformance.kafka.client.offsets import CONSUMER, DEBUGGER, LookUp

__all__ = [
    "CONSUMER",
    "DEBUGGER",
    "LARGEST_TARGET",
    "LIMIT",
    "SPECIAL_TARGETS",
    "AbortedTransaction",
    "Address",
    "Answer",
    "Appended",
    "Client",
    "ClientError",
    "ClosedError",
    "EpochEnd",
    "Fetched",
    "FetchedBatches",
    "Isolation",
    "LookUp",
    "Metadata",
    "NoAnswerError",
    "NotOfferedError",
    "OffsetAnswer",
    "PartitionState",
    "Producer",
    "Question",
    "RefusedError",
    "UndecodableError",
    "UnreachableError",
    "first_record",
    "kafka_python",
]
