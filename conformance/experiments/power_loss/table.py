"""Markdown page of what survives a power failure in each release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.clauses import load_clauses

if TYPE_CHECKING:
    from conformance.operations import Json

NEW = "new"
"""Replaces the clause of a cause that no clause covers."""


def table(rows: Sequence[Json], command: str) -> str:
    """Return the page: one line per cause, one column per release, and the number of states that showed it.

    Args:
        rows: JSON results of the releases.
        command: command that produced them.
    """
    clauses = load_clauses()
    releases = [row["release"] for row in rows]
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for finding in row["findings"]:
            of_clause = counts.setdefault(finding["clause"] or NEW, {})
            of_clause[row["release"]] = of_clause.get(row["release"], 0) + finding["times"]
    order = [*(clause for clause in clauses if clause in counts), *([NEW] if NEW in counts else [])]
    lines = [
        "# What survives a power failure",
        "",
        f"`{command}` prints this page. A number is how many states of the disk broke a promise for that reason; none",
        "means that none of the tested states did. `conformance clauses ID` explains a clause.",
        "",
        f"| | | {' | '.join(releases)} |",
        f"|---|---|{'--:|' * len(releases)}",
        f"| | states tested | {' | '.join(str(row['states']) for row in rows)} |",
    ]
    for clause in order:
        title = clauses[clause].title if clause in clauses else "a cause that no clause covers"
        cells = " | ".join(str(counts[clause].get(release, "")) for release in releases)
        lines.append(f"| {clause} | {title} | {cells} |")
    return "\n".join(lines) + "\n"
