"""What real brokers came to, as a table: how much was compared, what was expected to differ, what nobody explains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

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
    "acknowledged",
    "answers compared",
    "segments compared",
    "expected",
    "unexplained",
)
"""Acknowledged are batches, which every later stop has left where they were; answers and segments are those that were
held to the reference's, a segment by all its files, byte for byte."""


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
            str(details["acknowledged"]),
            str(details["answers"]),
            str(details["segments"]),
            str(details["expected"]),
            str(details["unexplained"]),
        )
        for result in results
        if "segments" in (details := result.details)
    ]


def markdown(results: Iterable[Result]) -> str:
    """The table as Markdown."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *rows(results)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
