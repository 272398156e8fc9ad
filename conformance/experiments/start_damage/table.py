"""Results of brokers that start with corrupt files, as JSON and as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.experiments.start_damage.cases import CASES, Case
from conformance.experiments.start_damage.experiment import Outcome
from conformance.report.markdown_escape import table

if TYPE_CHECKING:
    from pathlib import Path

_LEGEND: Final = """\
A broker was stopped, its directories were corrupted, `kidx verify` predicted the next start, and the broker started.
*end N*: the end of the partition after the start; before, it was 48 after a clean stop and 84 after `kill -9`. Segments
are named by their base offsets; a killed broker had not flushed the segments from 48 on. A cell in bold was not
predicted. *New records cannot be read*: a producer's first batches were rejected, or acknowledged and not found by a
consumer. Retention was checked every second. *Sealed*: of an inactive segment. Cases that share a start share its
answer: no, as soon as one of them loses records.
"""


def to_json(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Return one object for each case and release."""
    return [
        {
            "release": outcome.release,
            "damage": outcome.case.name,
            "shutdown": outcome.case.shutdown,
            "answer": outcome.answer,
            "predicted": outcome.predicted,
            "happened": outcome.happened,
            "as_predicted": outcome.is_right,
            "said": outcome.said,
        }
        for outcome in outcomes
    ]


def merged(path: Path, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Merge new outcomes into the outcomes of a JSON file; they replace outcomes of the same case and release.

    Raises:
        ToolError: The file cannot be read, or has another format.
    """
    cases = {(case.name, case.shutdown): case for case in CASES}
    known: dict[tuple[str, Case], Outcome] = {}
    try:
        for row in json.loads(path.read_text("utf-8")) if path.exists() else []:
            case = cases.get((row["damage"], row["shutdown"]))
            if case is not None:
                words = row["answer"], row["predicted"], row["happened"], row["said"]
                known[row["release"], case] = Outcome(row["release"], case, *words)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"cannot read {path}: {error!r}") from error
    return list((known | {(outcome.release, outcome.case): outcome for outcome in outcomes}).values())


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return a summary of each release, and a row for each case with a column for each release."""
    releases = list(dict.fromkeys(outcome.release for outcome in outcomes))
    cases: dict[Case, dict[str, Outcome]] = {}
    for outcome in outcomes:
        cases.setdefault(outcome.case, {})[outcome.release] = outcome
    summary = []
    for release in releases:
        some = [outcome for outcome in outcomes if outcome.release == release]
        count = Counter(outcome.is_right for outcome in some)
        dead = sum(outcome.happened == "does not start" for outcome in some)
        harmed = sum(outcome.answer == "no" and outcome.happened != "does not start" for outcome in some)
        summary.append([release, str(len(some)), str(dead), str(harmed), f"{count[True]}/{len(some)}"])
    header = ["release", "cases", "do not start", "start, though the answer was no", "predicted"]
    rows = [
        [case.shutdown, case.name.replace("|", "\\|"), *(_cell(by_release.get(release)) for release in releases)]
        for case, by_release in cases.items()
    ]
    lines = [_LEGEND, *_table(header, summary), "", *_table(["broker", "corruption", *releases], rows)]
    return "\n".join(lines) + "\n"


def _table(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    return table(header, rows, numbers=len(header))


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return outcome.happened if outcome.is_right else f"**{outcome.happened}** (predicted: {outcome.predicted})"
