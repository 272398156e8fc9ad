"""Real brokers of any locked release: :class:`LocalBroker` is a local process, ``ContainerBroker`` a container.

:func:`new_broker` chooses the available one. A release is locked if a lock file lists its jars
(:mod:`conformance.kafka.releases`).
"""

from __future__ import annotations

from conformance.kafka.broker.backend import Choice, choose, new_broker
from conformance.kafka.broker.broker import Backend, Broker
from conformance.kafka.broker.config import Mode, default_mode, modes_of
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.local import LocalBroker

__all__ = [
    "Backend",
    "Broker",
    "BrokerError",
    "Choice",
    "LocalBroker",
    "Mode",
    "choose",
    "default_mode",
    "modes_of",
    "new_broker",
]
