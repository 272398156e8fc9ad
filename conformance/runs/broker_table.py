"""Table of the results of real brokers: the number of comparisons, and of expected and unexplained divergences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from conformance.events import Measured

if TYPE_CHECKING:
    from conformance.events import Result

HEADINGS: Final = (
    "release",
    "backend",
    "mode",
    "topics",
    "steps",
    "stops",
    "kills",
    "rejected",
    "acknowledged",
    "answers compared",
    "segments compared",
    "expected",
    "unexplained",
)
"""The headings of the table.

``rejected`` counts the starts that broker and kidx both reject (LG-19). ``acknowledged`` counts batches, all of which
every later stop preserved. Results and segments were compared with the reference, a segment by all its files.
"""


def rows(results: Iterable[Result]) -> list[tuple[str, ...]]:
    """Return a row for each result of a broker; empty without brokers."""
    return [
        (
            result.release,
            details["backend"],
            details["mode"],
            str(result.examples),
            str(result.steps),
            str(details["restarts"]),
            str(details["kills"]),
            str(details["refused_starts"]),
            str(details["acknowledged"]),
            str(details["answers"]),
            str(details["segments"]),
            str(details["expected"]),
            str(details["unexplained"]),
        )
        for result in results
        if "segments" in (details := result.details)
    ]


def measured(result: Result) -> Measured:
    """Return a broker's row for the reports; it passes if there are no unexplained divergences.

    Raises:
        ValueError: The result does not come from a broker.
    """
    (row,) = rows([result])
    return Measured("brokers", result.release, not result.divergences, dict(zip(HEADINGS[1:], row[1:], strict=True)))
