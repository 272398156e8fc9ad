"""Options ``--bootstrap-server`` and ``--log-dir``: a running broker, and the directory of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.kafka.progress import show_progress

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.runs.external_broker import ExternalBrokerAddress


def attachment_of(
    bootstrap: str, log_dir: Path | None, implementations: tuple[str, ...], releases: tuple[str, ...]
) -> ExternalBrokerAddress | None:
    """Return the running broker of ``--bootstrap-server``, or None without the option.

    Raises:
        ToolError: The options are incomplete, or the broker has another release or log directory.
    """
    if not bootstrap and log_dir is None:
        return None
    if not bootstrap or log_dir is None:
        raise ToolError("--bootstrap-server and --log-dir, the log directory of that broker, must be given together")
    if implementations != ("broker",):
        raise ToolError("--bootstrap-server requires -i broker and no other implementation")
    if len(releases) != 1:
        raise ToolError("--bootstrap-server requires exactly one --kafka: the broker's release")
    from conformance.runs.external_broker import ExternalBrokerAddress  # noqa: PLC0415 -- part of an extra

    attachment = ExternalBrokerAddress(bootstrap, log_dir)
    with show_progress("Kafka's jars") as progress:
        attachment.open(releases[0], progress)
    return attachment
