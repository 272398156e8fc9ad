"""Real brokers of any locked release: :class:`LocalBroker` is a local process, ``ContainerBroker`` a container.

:func:`new_broker` takes what there is.
"""

from __future__ import annotations

from conformance.kafka.broker.backend import Choice, choose, new_broker
from conformance.kafka.broker.broker import Backend, Broker
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.broker.settings import Mode, default_mode, modes_of

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
