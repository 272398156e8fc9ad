"""How a broker behind ``wire:`` is reached, and what of it is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.implementations.wire.broker import WireBroker
from conformance.kafka.client.security import read_command_config

if TYPE_CHECKING:
    from conformance.kafka.client import Address


@dataclass(frozen=True, slots=True)
class WireOptions:
    """How a broker is reached, and what of it is left alone.

    Attributes:
        command_config: the file of Kafka's tools, for TLS and SASL.
        without: of :data:`conformance.implementations.wire.broker.NEEDED`.
        limit: seconds for an answer; None for the client's own.
    """

    command_config: Path | None = None
    without: tuple[str, ...] = ()
    limit: float | None = None

    def open(self, address: Address) -> WireBroker:
        """Connect.

        Raises:
            ToolError: it cannot be reached, hangs, or lacks what the run needs.
        """
        connect = None if self.command_config is None else read_command_config(self.command_config)
        return WireBroker(address, connect=connect, without=self.without, limit=self.limit)
