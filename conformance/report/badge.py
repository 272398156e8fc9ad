"""Badges: JSON for shields' endpoint, and SVG files that need no other host."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.verdict import VERDICT_LABELS
from kidx.printable import printable

if TYPE_CHECKING:
    from conformance.report.combined import CombinedReport

_COLORS = {"conforms": "blue", "diverges": "red", "incomplete": "orange", "nothing-compared": "orange"}
"""Blue instead of green, because one reader in twenty cannot distinguish red and green."""


_ALL_MACHINES = frozenset(DEFAULT_MACHINES)


def _part(report: CombinedReport) -> str:
    """Return the part of the message that names the machines; empty if every default machine has run."""
    driven = {result.machine: None for result in report.results if not result.unsupported}
    if not driven or driven.keys() >= _ALL_MACHINES:
        return ""
    return f" · {', '.join(driven)} only"


def badge(report: CombinedReport) -> str:
    """Return the verdict and the releases as an endpoint badge (schema version 1)."""
    releases = report.releases
    about = f"Kafka {releases[0]}" + (f"–{releases[-1]}" if len(releases) > 1 else "")
    about += _part(report)
    about += "".join(f" · {edition}" for edition in report.editions)
    message = f"{VERDICT_LABELS[report.verdict]} · {about}"
    if report.divergences:
        count = len(report.divergences)
        message = f"{count} divergence{'s' if count > 1 else ''} · {about}"
    document = {
        "schemaVersion": 1,
        "label": "log index",
        "message": message,
        "color": _COLORS[report.verdict],
        "isError": report.verdict in ("incomplete", "nothing-compared"),
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


_CHARACTER = 7
"""Width of a character in pixels; ``textLength`` fits the text to the total."""
_FILLS = {"blue": "#0072b2", "red": "#b34e00", "orange": "#8a6d00", "grey": "#57606a"}
"""Background colours on which white text is readable."""
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{left}" height="20" fill="#1d232a"/><rect x="{left}" width="{right}" height="20" fill="{fill}"/>
<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
<text x="5" y="14" textLength="{label_width}">{label}</text>
<text x="{at}" y="14" textLength="{message_width}">{message}</text>
</g>
</svg>
"""


def svg_badge(label: str, message: str, color: str) -> str:
    """Return a badge as an SVG file.

    Args:
        label: The text on the left.
        message: The text on the right.
        color: ``blue``, ``red``, ``orange`` or ``grey``, the background of the message.
    """
    label, message = printable(label), printable(message)
    widths = [_CHARACTER * len(each) for each in (label, message)]
    left, right = (width + 10 for width in widths)
    return _SVG.format(
        width=left + right,
        left=left,
        right=right,
        fill=_FILLS[color],
        at=left + 5,
        label_width=widths[0],
        message_width=widths[1],
        label=escape(label),
        message=escape(message),
    )
