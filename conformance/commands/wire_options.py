"""Options for the connection to a broker (``wire:``), and for the features that are skipped."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformance.errors import ToolError
from conformance.implementations.forms import machine_of
from conformance.implementations.wire.broker import NEEDED
from conformance.implementations.wire.endpoint import words_of

if TYPE_CHECKING:
    from conformance.runs.wire_options import WireOptions

_PANEL = "Any broker, by Kafka's protocol (-i wire:HOST:PORT)"
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TLS and SASL properties, as for Kafka's tools.", rich_help_panel=_PANEL),
]
StartCommandOption = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="Command that starts the broker in the foreground; it is stopped by SIGTERM, killed, and restarted.",
        rich_help_panel=_PANEL,
    ),
]
SkipFeatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skip-feature",
        metavar="FEATURE",
        help=f"Skip features that the broker lacks: {', '.join(NEEDED)}. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]

TopicConfigOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Property of every topic that is created, such as remote.storage.enable=true. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]


def wire_options(
    implementations: Collection[str],
    command_config: Path | None,
    without: Collection[str],
    start_command: str = "",
    topic_config: Collection[str] = (),
) -> WireOptions | None:
    """Return the connection options of brokers (``wire:``), or None if no implementation is one.

    Raises:
        ToolError: An option does not apply, or a file cannot be read.
    """
    if all(machine_of(name) != "wire" for name in implementations):
        given = {
            "--command-config": command_config,
            "--start-command": start_command,
            "--skip-feature": without,
            "--topic-config": topic_config,
        }
        if names := [name for name, value in given.items() if value]:
            verb = "requires" if len(names) == 1 else "require"
            raise ToolError(f"{' and '.join(names)} {verb} -i wire:HOST:PORT")
        return None
    from conformance.kafka.client.security import read_command_config  # noqa: PLC0415 -- part of an extra
    from conformance.runs.wire_options import WireOptions  # noqa: PLC0415

    if unknown := sorted(set(without) - set(NEEDED)):
        raise ToolError(f"--skip-feature: unknown {', '.join(map(repr, unknown))}; choose from {', '.join(NEEDED)}")
    if command_config is not None:
        read_command_config(command_config)
    addresses = [name for name in implementations if name.startswith("wire:")]
    if start_command and len(addresses) != 1:
        raise ToolError(f"--start-command requires exactly one -i wire:HOST:PORT, not {len(addresses)}")
    if start_command:
        words_of(start_command)
    for each in topic_config:
        if not each.partition("=")[0] or "=" not in each:
            raise ToolError(f"--topic-config: {each!r} is not NAME=VALUE")
    if topic_config and "topic-requests" in without:
        raise ToolError(
            "--topic-config requires a broker that creates topics by request; omit --skip-feature topic-requests"
        )
    return WireOptions(
        command_config, tuple(without), start_command=start_command, topic_config=tuple(sorted(topic_config))
    )
