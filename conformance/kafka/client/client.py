"""The client: everything that the harness asks of a broker, over one connection."""

from __future__ import annotations

from conformance.kafka.client.fetch import FetchRequests
from conformance.kafka.client.produce import ProduceRequests
from conformance.kafka.client.transactions import TransactionRequests


class Client(ProduceRequests, FetchRequests, TransactionRequests):
    """One connection to one broker, of Kafka or not; a context manager.

    It takes a broker at its word: an answer is returned as it came, an error of a look-up, a fetch or an append is an
    answer too, and nothing that the protocol does not promise is expected.
    """
