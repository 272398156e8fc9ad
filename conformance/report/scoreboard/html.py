"""The scoreboard as a page: one file that loads nothing else, in the design of a run's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.rendering import render
from conformance.report.scoreboard.board import MEANINGS, SIGNS

if TYPE_CHECKING:
    from conformance.report.scoreboard.board import Board


def html(board: Board) -> str:
    """The page."""
    return render(
        "scoreboard.html.j2",
        styles=["report.css", "scoreboard.css"],
        scripts=["scoreboard.js"],
        board=board,
        signs=SIGNS,
        meanings=MEANINGS,
    )
