"""Pages of the scoreboard: HTML, in one file that loads nothing else, and Markdown.

The Markdown page has the table, then every divergence with its meaning and its replay command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.attribution.baseline import NAME
from conformance.report.markdown_escape import code, table, text
from conformance.report.rendering import render
from conformance.report.scoreboard.board import STATE_LABELS, STATE_LEGEND, STATE_SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.report.scoreboard.board import Board, Row, RunProvenance


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


def markdown(board: Board) -> str:
    """Return the board as GitHub-flavoured Markdown."""
    lines = ["# Scoreboard", ""]
    lines += [f"> ⚠ {text(line)}" for line in board.comparison.reasons]
    header = ["implementation", "version", "compared with", NAME, *(text(name) for name, _ in board.areas)]
    rows = [
        [
            text(row.label),
            text(row.version),
            f"Kafka {text(row.release)}",
            str(row.baseline or "–"),
            *(cell.symbol for cell in row.cells),
        ]
        for row in board.rows
    ]
    lines += table(header, rows, numbers=3)
    legend = (f"{STATE_SYMBOLS[state]} {STATE_LABELS[state]}: {meaning}" for state, meaning in STATE_LEGEND.items())
    lines += ["", " · ".join(legend)]
    for row in board.rows:
        lines += [
            "",
            f"## {text(' '.join(filter(None, (row.label, row.version))))}, compared with Kafka {text(row.release)}",
            "",
        ]
        lines += [*filter(None, [text(row.about)])]
        lines += ["", *(line for made in row.made for line in _made(made))]
        lines += _faults(row)
    return "\n".join(lines) + "\n"


def _made(made: RunProvenance) -> Iterator[str]:
    """Yield the lines about a run from which results come."""
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    facts = "".join(f" · {fact}" for fact in made.facts)
    driven = ", ".join(made.machines) or "nothing was run"
    yield f"- {text(made.started)} · {text(driven)} · level {text(made.level)}"
    yield f"  · {made.steps:,} steps{text(facts)} · {text(versions)}"
    yield f"  · tolerated: {text('; '.join(made.excused) or 'nothing')}"
    if made.command:
        yield f"  · {code(made.command)}"


def _faults(row: Row) -> Iterator[str]:
    for cell in row.cells:
        for fault in cell.faults:
            event = fault.event
            what = event.signature or ", ".join(event.failure["aspects"])
            yield ""
            yield f"**{text(cell.area)}**: {text(fault.means)}  "
            yield f"{text(event.clause or 'no clause')} · {code(what)} · {len(event.steps)} steps  "
            if fault.known is not None:
                yield f"known: {text(fault.known.reason)} {text(fault.known.link)}  "
            yield code(event.replay)
