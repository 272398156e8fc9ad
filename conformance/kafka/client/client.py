"""Client with all requests that the harness sends to a broker, over one connection."""

from __future__ import annotations

from conformance.kafka.client.fetch import FetchRequests
from conformance.kafka.client.produce import ProduceRequests
from conformance.kafka.client.transactions import TransactionRequests


class Client(ProduceRequests, FetchRequests, TransactionRequests):
    """Connection to a broker, which may be Kafka or a compatible implementation; a context manager.

    Lookups, fetches and appends return the broker's responses unchanged, including errors. The client relies only on
    guarantees of the protocol.
    """
