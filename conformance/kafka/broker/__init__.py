"""Real brokers of any locked release: :class:`LocalBroker` as a local process."""

from __future__ import annotations

from conformance.kafka.broker.broker import Broker
from conformance.kafka.broker.errors import BrokerError
from conformance.kafka.broker.local import LocalBroker
from conformance.kafka.broker.settings import Mode, default_mode, modes_of

__all__ = ["Broker", "BrokerError", "LocalBroker", "Mode", "default_mode", "modes_of"]
