"""HTML page of the scoreboard: one file that loads nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.attribution.baseline import NAME
from conformance.report.rendering import render
from conformance.report.scoreboard.board import STATE_LABELS, STATE_LEGEND, STATE_SYMBOLS

if TYPE_CHECKING:
    from conformance.report.scoreboard.board import Board


def html(board: Board) -> str:
    """Return the page."""
    return render(
        "scoreboard.html.j2",
        styles=["report.css", "scoreboard.css"],
        scripts=["scoreboard.js"],
        board=board,
        labels=STATE_LABELS,
        signs=STATE_SYMBOLS,
        meanings=STATE_LEGEND,
        baseline=NAME,
    )
