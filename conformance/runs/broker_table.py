"""Table of the results of real brokers: the number of comparisons, and of expected and unexplained divergences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from conformance.events import Measured

if TYPE_CHECKING:
    from conformance.events import Result

_DETAILS: Final = {
    "stops": "restarts",
    "kills": "kills",
    "rejected": "refused_starts",
    "acknowledged": "acknowledged",
    "answers compared": "answers",
    "segments compared": "segments",
    "expected": "expected",
    "unexplained": "unexplained",
}
"""The details of a result by their headings in the table.

``rejected`` counts the starts that broker and kidx both reject (LG-19). ``acknowledged`` counts batches, all of which
every later stop preserved. Results and segments were compared with the reference, a segment by all its files.
"""


def measured(result: Result) -> Iterator[Measured]:
    """Yield the row of a broker; it passes if there are no unexplained divergences. Other results have none."""
    details = result.details
    if "segments" in details:
        row = {"backend": details["backend"], "mode": details["mode"]}
        row |= {"topics": str(result.examples), "steps": str(result.steps)}
        row |= {heading: str(details[name]) for heading, name in _DETAILS.items()}
        yield Measured("brokers", result.release, not result.divergences, row)
