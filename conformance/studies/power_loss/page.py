"""Markdown page of what survives a power failure in each release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.operations import Json

NEW: Final = "new"
"""Text that replaces the clause of a cause that no clause covers."""
_FILE: Final = re.compile(r" in file /\S*$")
"""End of an error, with a temporary file."""
_TITLES: Final = {"log": "Logs", "segment": "Segments", "cleaned": "Compacted logs", "cache": "Remote index files"}


def table(rows: Sequence[Json], command: str) -> str:
    """Return the page: a section for each machine, with one line per cause and one column per release, the last first.

    Args:
        rows: JSON results of the machines and releases.
        command: command that produced them.
    """
    lines = [
        "# What survives a power failure",
        "",
        f"`{command}` prints this page. A number is how many states of the disk violated a guarantee for that",
        "reason; in an empty cell, none of the tested states did. `conformance clauses ID` explains a clause.",
    ]
    for machine in dict.fromkeys(row["machine"] for row in rows):
        of_machine = [row for row in rows if row["machine"] == machine]
        lines += ["", f"## {_TITLES[machine]}", "", *_counts(of_machine[::-1]), *_smallest(of_machine)]
    return "\n".join(lines) + "\n"


def _counts(rows: Sequence[Json]) -> Iterator[str]:
    releases, clauses = [row["release"] for row in rows], load_clauses()
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for finding in row["findings"]:
            of_clause = counts.setdefault(finding["clause"] or NEW, {})
            of_clause[row["release"]] = of_clause.get(row["release"], 0) + finding["times"]
    yield f"| | | {' | '.join(releases)} |"
    yield f"|---|---|{'--:|' * len(releases)}"
    yield f"| | states tested | {' | '.join(str(row['states']) for row in rows)} |"
    for clause in [*(clause for clause in clauses if clause in counts), *([NEW] if NEW in counts else [])]:
        title = clauses[clause].title if clause in clauses else "a cause that no clause covers"
        if clause in clauses and clauses[clause].ticket:
            title += f" ({clauses[clause].ticket})"
        yield f"| {clause} | {title} | {' | '.join(str(counts[clause].get(name, '')) for name in releases)} |"


def _smallest(rows: Sequence[Json]) -> Iterator[str]:
    """Yield the shortest trace of each cause, with its release: the operations, and what was lost."""
    best: dict[str, tuple[int, str, Json]] = {}
    for row in rows:
        for finding in row["findings"]:
            size = len(finding["steps"]) + len(finding["lost"])
            clause = finding["clause"] or NEW
            if clause not in best or size < best[clause][0]:
                best[clause] = size, row["release"], finding
    if best:
        yield from ("", "The smallest trace of each cause:", "")
    for clause in sorted(best, key=_order):
        _, release, finding = best[clause]
        steps = ", ".join(f"`{each['op']}`" for each in finding["steps"])
        shown = _FILE.sub("", finding["shows"])
        yield f"- {clause}, {release}: {steps}; lost: {'; '.join(finding['lost']) or 'nothing'}. {shown}."


def _order(clause: str) -> tuple[int, str]:
    number = "".join(letter for letter in clause if letter.isdigit())
    return int(number or 0), clause
