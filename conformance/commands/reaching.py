"""Options that say how a broker behind ``wire:`` is reached, and what of it is left alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.errors import ToolError
from conformance.implementations.wire.features import NEEDED
from conformance.implementations.wire.opening import is_wire, words_of

if TYPE_CHECKING:
    from conformance.runs.wire_options import WireOptions

_PANEL = "Any broker by its protocol (-i wire:HOST:PORT)"
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS and SASL, as Kafka's tools take them.", rich_help_panel=_PANEL),
]
StartCommandOption = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="Starts the broker in the foreground; it is stopped by SIGTERM, killed, and started again.",
        rich_help_panel=_PANEL,
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-feature",
        metavar="FEATURE",
        help=f"Skip what the broker lacks: {', '.join(NEEDED)}. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]


def wire_options(
    implementations: Collection[str], command_config: Path | None, without: Collection[str], start_command: str = ""
) -> WireOptions | None:
    """How brokers behind ``wire:`` are reached, if there are any.

    Raises:
        ToolError: an option is about nothing, or cannot be read.
    """
    if not any(map(is_wire, implementations)):
        given = {"--command-config": command_config, "--start-command": start_command, "--skip-feature": without}
        if names := [name for name, value in given.items() if value]:
            goes = "goes" if len(names) == 1 else "go"
            raise ToolError(f"{' and '.join(names)} {goes} with -i wire:HOST:PORT")
        return None
    from conformance.kafka.client.security import read_command_config  # noqa: PLC0415 -- part of an extra
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    if unknown := sorted(set(without) - set(NEEDED)):
        raise ToolError(f"--skip-feature knows {', '.join(NEEDED)}, not {', '.join(map(repr, unknown))}")
    if command_config is not None:
        read_command_config(command_config)
    addresses = [name for name in implementations if name.startswith("wire:")]
    if start_command and len(addresses) != 1:
        raise ToolError(f"--start-command starts the broker of one -i wire:HOST:PORT, and there are {len(addresses)}")
    if start_command:
        words_of(start_command)
    return WireOptions(command_config, tuple(without), start_command=start_command)
