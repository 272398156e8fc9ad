"""Client of Kafka's wire protocol, based on the messages of kafka-python.

::

    with Client(Address("127.0.0.1", 9092)) as client:
        client.create_topic("t", {"retention.ms": "-1"})
        client.await_leader("t")
        client.produce("t", build_batch(records))
        client.versions("ListOffsets")  # range(1, 11)
        client.request_offsets([PartitionQuery("t", 1_700_000_000_000), PartitionQuery("t", -3)], version=7)

Client libraries would change such batches and queries, or reject them. A request is sent in a version that the broker
offers. Every response has a time limit. Each kind of failure has its own class
(:mod:`conformance.kafka.client.connection`).
"""

from __future__ import annotations

from conformance.kafka.client.client import (
    CONSUMER_REPLICA_ID,
    DEBUG_REPLICA_ID,
    Client,
    Fetched,
    OffsetsRequest,
    first_record,
)
from conformance.kafka.client.connection import (
    TIMEOUT_S,
    Address,
    ClientError,
    ClosedError,
    ErrorResponseError,
    RequestTimedOutError,
    UndecodableError,
    UnreachableError,
    UnsupportedApiError,
)
from conformance.kafka.client.library import kafka_python
from conformance.kafka.client.responses import (
    LARGEST_TARGET,
    SPECIAL_TARGETS,
    AbortedTransaction,
    EpochEndOffset,
    FetchedBatches,
    Isolation,
    Metadata,
    OffsetResult,
    PartitionOffsetResponse,
    PartitionQuery,
    PartitionState,
    Producer,
    ProduceResult,
)

__all__ = [
    "CONSUMER_REPLICA_ID",
    "DEBUG_REPLICA_ID",
    "LARGEST_TARGET",
    "SPECIAL_TARGETS",
    "TIMEOUT_S",
    "AbortedTransaction",
    "Address",
    "Client",
    "ClientError",
    "ClosedError",
    "EpochEndOffset",
    "ErrorResponseError",
    "Fetched",
    "FetchedBatches",
    "Isolation",
    "Metadata",
    "OffsetResult",
    "OffsetsRequest",
    "PartitionOffsetResponse",
    "PartitionQuery",
    "PartitionState",
    "ProduceResult",
    "Producer",
    "RequestTimedOutError",
    "UndecodableError",
    "UnreachableError",
    "UnsupportedApiError",
    "first_record",
    "kafka_python",
]
