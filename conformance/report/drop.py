"""Page that displays an ``events.ndjson`` file dropped on it. The page is one file, and loads and sends nothing."""

from __future__ import annotations

from conformance.events import FORMAT, READABLE
from conformance.report.combined import VERDICTS_BY_SEVERITY
from conformance.report.html import VERDICT_LEGEND
from conformance.report.markdown import VERDICT_SYMBOLS
from conformance.report.rendering import render
from conformance.verdict import VERDICT_LABELS


def drop_page() -> str:
    """Return the HTML page."""
    return render(
        "drop.html.j2",
        styles=["report.css", "drop.css"],
        scripts=["drop.js"],
        format=FORMAT,
        versions=list(READABLE),
        verdicts=list(VERDICTS_BY_SEVERITY),
        labels=dict(VERDICT_LABELS),
        signs=VERDICT_SYMBOLS,
        meanings=VERDICT_LEGEND,
    )
