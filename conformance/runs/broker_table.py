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
"""The details of a result, by the headings in the table.

``rejected`` counts the starts that the broker and kidx both reject (LG-19). ``acknowledged`` counts acknowledged
batches; none was lost at a later stop. Results and segments are compared with the reference, a segment with all its
files.
"""


def measured(result: Result) -> Iterator[Measured]:
    """Yield the row of a broker, which passes if there are no unexplained divergences; yield none for other results."""
    details = result.details
    if "segments" in details:
        row = {"backend": details["backend"], "mode": details["mode"]}
        row |= {"topics": str(result.examples), "steps": str(result.steps)}
        row |= {heading: str(details[name]) for heading, name in _DETAILS.items()}
        yield Measured("brokers", result.release, not result.divergences, row)
