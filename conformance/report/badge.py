"""A badge: the JSON that shields' endpoint badge shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.report.combined import Combined

_COLORS = {"conforms": "blue", "diverges": "red", "incomplete": "orange"}
"""Blue and not green: red and green look the same to one reader in twenty."""


def badge(report: Combined) -> str:
    """The verdict and what it is about, as an endpoint badge (schema version 1)."""
    releases = report.releases
    about = f"Kafka {releases[0]}" + (f"–{releases[-1]}" if len(releases) > 1 else "")
    message = f"{report.verdict} · {about}"
    if report.divergences:
        count = len(report.divergences)
        message = f"{count} difference{'s' if count > 1 else ''} · {about}"
    document = {
        "schemaVersion": 1,
        "label": "log index",
        "message": message,
        "color": _COLORS[report.verdict],
        "isError": report.verdict == "incomplete",
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
