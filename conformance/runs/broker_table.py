"""The results of real brokers as a table: how much was compared, which differences were expected, which were not."""

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
    "refused",
    "acknowledged",
    "answers compared",
    "segments compared",
    "expected",
    "unexplained",
)
"""Refused are starts that broker and kidx refuse alike (LG-19); acknowledged are batches, which every later stop left
where they were; answers and segments are those that were held to the reference's, a segment by all its files."""


def rows(results: Iterable[Result]) -> list[tuple[str, ...]]:
    """A row for each result that is a broker's; none otherwise."""
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
    """A broker's row for the reports; it holds if nothing is left unexplained.

    Raises:
        ValueError: the result is not a broker's.
    """
    (row,) = rows([result])
    return Measured("brokers", result.release, not result.divergences, dict(zip(HEADINGS[1:], row[1:], strict=True)))
