"""Remark about a machine that ``--max-time`` ended: the numbers of regression traces and examples not executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.events import Result


def stopped_by_time(result: Result) -> str:
    """Return the remark about the machine of a result; empty if it executed everything."""
    if not result.details.get("cut_by_time"):
        return ""
    missing = not_executed(result)
    return f"stopped by --max-time: {missing}" if missing else "stopped by --max-time"


def not_executed(result: Result) -> str:
    """Return the numbers of regression traces and examples not executed; empty for an event without the numbers."""
    found = result.details.get("not_executed", {})
    counts = [f"{missing} of {wanted} {kind}" for kind, (missing, wanted) in found.items() if missing]
    return f"{' and '.join(counts)} not executed" if counts else ""
