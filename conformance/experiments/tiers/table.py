"""Results as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from conformance.experiments.tiers.experiment import Outcome, Tried

_LEGEND: Final = """\
A broker copied segments to a remote tier (Kafka's `LocalTieredStorage`) and deleted them locally. The tables show its
responses across both tiers, and the next start after a corruption of its cache of remote index files. `kidx verify`
predicted each start; a cell in bold was not predicted. *N of M*: lookups by time with the correct response after the
start.
"""
_SKIPPED: Final = "a time whose record is in a later remote segment than the first candidate"


def to_json(results: Iterable[Tried]) -> list[dict[str, Any]]:
    """Return one object per release."""
    return [
        {
            "release": result.release,
            "special": {str(target): answer for target, answer in result.special.items()},
            "lookups": list(result.lookups),
            "skipped": {"answer": result.skipped[0], "expected": result.skipped[1]},
            "starts": [
                {
                    "damage": outcome.case.name,
                    "predicted": outcome.predicted,
                    "happened": outcome.happened,
                    "as_predicted": outcome.is_right,
                    "answers": outcome.answers,
                    "error": outcome.error,
                }
                for outcome in result.outcomes
            ],
        }
        for result in results
    ]


def markdown(results: Sequence[Tried]) -> str:
    """Return a table of responses and one of starts, with a column per release."""
    lines = [_LEGEND, _row(("query", *(result.release for result in results))), _rule(1 + len(results))]
    lines += [_row((target, *(result.special[target] for result in results))) for target in results[0].special]
    lines.append(_row(("times, correct responses", *("{} of {}".format(*result.lookups) for result in results))))
    skipped = (f"{answer} (the record: {record})" for answer, record in (result.skipped for result in results))
    lines += [_row((_SKIPPED, *skipped)), "", _row(("damage", *(result.release for result in results)))]
    lines.append(_rule(1 + len(results)))
    for outcomes in zip(*(result.outcomes for result in results), strict=True):
        lines.append(_row((f"`{outcomes[0].case.name}`", *map(_cell, outcomes))))
    return "\n".join(lines) + "\n"


def _cell(outcome: Outcome) -> str:
    happened = f"{outcome.happened}: {outcome.answers}" if outcome.answers else outcome.happened
    return happened if outcome.is_right else f"**{happened}** (predicted: {outcome.predicted})"


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _rule(columns: int) -> str:
    return _row("---" for _ in range(columns))
