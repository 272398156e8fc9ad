"""JSON for shields' endpoint badge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.machines import MACHINES

if TYPE_CHECKING:
    from conformance.report.combined import CombinedReport

_COLORS = {"conforms": "blue", "diverges": "red", "incomplete": "orange"}
"""Blue instead of green, because one reader in twenty cannot distinguish red and green."""


_WHOLE = frozenset(MACHINES)


def _part(report: CombinedReport) -> str:
    """Return the machines that have run, or nothing if all machines that run on files have."""
    driven = {result.machine: None for result in report.results if not result.unsupported}
    if not driven or driven.keys() >= _WHOLE:
        return ""
    return f" · {', '.join(driven)} only"


def badge(report: CombinedReport) -> str:
    """Return the verdict and the releases as an endpoint badge (schema version 1)."""
    releases = report.releases
    about = f"Kafka {releases[0]}" + (f"–{releases[-1]}" if len(releases) > 1 else "")
    about += _part(report)
    message = f"{report.verdict} · {about}"
    if report.divergences:
        count = len(report.divergences)
        message = f"{count} divergence{'s' if count > 1 else ''} · {about}"
    document = {
        "schemaVersion": 1,
        "label": "log index",
        "message": message,
        "color": _COLORS[report.verdict],
        "isError": report.verdict == "incomplete",
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
