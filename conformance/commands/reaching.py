"""Options that say how a broker behind ``wire:`` is reached, and what of it is left alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.errors import ToolError
from conformance.implementations.wire.opening import is_wire, words_of

if TYPE_CHECKING:
    from conformance.runs.wire_options import WireOptions

CommandConfigOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With -i wire: TLS and SASL, as Kafka's tools take them.")
]
StartCommandOption = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="With -i wire: starts the broker in the foreground; it is stopped by SIGTERM, killed, and started again.",
    ),
]
WithoutOption = Annotated[
    list[str] | None, typer.Option(metavar="FEATURE", help="With -i wire: leave out what the broker lacks.")
]


def wire_options(
    implementations: Collection[str], command_config: Path | None, without: Collection[str], start_command: str = ""
) -> WireOptions | None:
    """How brokers behind ``wire:`` are reached, if there are any.

    Raises:
        ToolError: an option is about nothing, or cannot be read.
    """
    if not any(map(is_wire, implementations)):
        if command_config is not None or without or start_command:
            raise ToolError("--command-config, --start-command and --without go with -i wire:HOST:PORT")
        return None
    from conformance.implementations.wire.broker import NEEDED  # noqa: PLC0415 -- part of an extra
    from conformance.kafka.client.security import read_command_config  # noqa: PLC0415
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    if unknown := sorted(set(without) - set(NEEDED)):
        raise ToolError(f"--without knows {', '.join(NEEDED)}, not {', '.join(map(repr, unknown))}")
    if command_config is not None:
        read_command_config(command_config)
    addresses = [name for name in implementations if name.startswith("wire:")]
    if start_command and len(addresses) != 1:
        raise ToolError(f"--start-command starts the broker of one -i wire:HOST:PORT, and there are {len(addresses)}")
    if start_command:
        words_of(start_command)
    return WireOptions(command_config, tuple(without), start_command=start_command)
