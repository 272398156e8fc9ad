"""Connection options of a ``wire:`` broker, and the features that a run skips."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from conformance.implementations.wire.broker import WireBroker
from conformance.implementations.wire.endpoint import open_endpoint
from conformance.kafka.client.security import read_command_config


@dataclass(frozen=True, slots=True)
class WireOptions:
    """Connection options of a broker, and the features that a run skips.

    Attributes:
        command_config: The configuration file of Kafka's tools, for TLS and SASL.
        without: The features that the run skips, of :data:`conformance.implementations.wire.broker.NEEDED`.
        limit: The timeout of a response in seconds; None for the client's own.
        start_command: A command that starts the broker, which is then also stopped and killed; empty for a running
            broker.
        topic_config: Properties of every topic that is created, as ``name=value``.
    """

    command_config: Path | None = None
    without: tuple[str, ...] = ()
    limit: float | None = None
    start_command: str = ""
    topic_config: tuple[str, ...] = ()

    @contextmanager
    def open(self, implementation: str) -> Iterator[WireBroker]:
        """Connect to the broker of an ``-i`` argument, and start it if necessary.

        Raises:
            ToolError: It cannot be built, started or reached, hangs, or lacks a required feature.
        """
        connect = None if self.command_config is None else read_command_config(self.command_config)
        with open_endpoint(implementation, self.start_command) as (address, lacks, process):
            without = (*self.without, *lacks)
            broker = WireBroker(
                address,
                connect=connect,
                without=without,
                limit=self.limit,
                process=process,
                command_config=self.command_config,
            )
            broker.topic_config = dict(map(_property, self.topic_config))
            try:
                yield broker
            finally:
                broker.close()
                if broker.left:  # also if the process ends by a signal, and however quiet it is
                    text = f"left {len(broker.left)} topics on {broker.address}: remove them with {broker.removal}"
                    print(text, file=sys.stderr)  # noqa: T201


def _property(text: str) -> tuple[str, str | int]:
    name, _, value = text.partition("=")
    return name, int(value) if value.lstrip("-").isdecimal() else value
