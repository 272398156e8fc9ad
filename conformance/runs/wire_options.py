"""How a broker behind ``wire:`` is reached, and what of it is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.implementations.wire.broker import WireBroker
from conformance.implementations.wire.endpoint import open_endpoint
from conformance.kafka.client.security import read_command_config


@dataclass(frozen=True, slots=True)
class WireOptions:
    """How a broker is reached, and what of it is left alone.

    Attributes:
        command_config: the file of Kafka's tools, for TLS and SASL.
        without: of :data:`conformance.implementations.wire.features.NEEDED`.
        limit: seconds for an answer; None for the client's own.
        start_command: starts a broker behind ``wire:``, which is stopped and killed then; empty for one that runs.
    """

    command_config: Path | None = None
    without: tuple[str, ...] = ()
    limit: float | None = None
    start_command: str = ""

    @contextmanager
    def open(self, implementation: str) -> Iterator[WireBroker]:
        """A connection to the broker of an IMPL, which is started if it has to be.

        Raises:
            ToolError: it cannot be built, started or reached, hangs, or lacks what the run needs.
        """
        connect = None if self.command_config is None else read_command_config(self.command_config)
        with open_endpoint(implementation, self.start_command) as (address, lacks, process):
            without = (*self.without, *lacks)
            with WireBroker(address, connect=connect, without=without, limit=self.limit, process=process) as broker:
                yield broker
