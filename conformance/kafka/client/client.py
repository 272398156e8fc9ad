"""Client with all requests that the harness sends to a broker, over one connection."""

from __future__ import annotations

from conformance.kafka.client.fetch import FetchRequests
from conformance.kafka.client.produce import ProduceRequests
from conformance.kafka.client.transactions import TransactionRequests


class Client(ProduceRequests, FetchRequests, TransactionRequests):
    """Connection to one broker, of Kafka or not; a context manager.

    It returns responses unchanged, also the errors of a lookup, a fetch or an append, and assumes
    only what the protocol guarantees.
    """
