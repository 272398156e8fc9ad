"""Results of brokers with tiered storage, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from conformance.report.markdown_escape import table
from kidx.dialect import version_of

if TYPE_CHECKING:
    from conformance.experiments.tiers.experiment import AnswerCounts, Tried

_LEGEND: Final = """\
A broker copied segments to a remote tier (Kafka's `LocalTieredStorage`) and deleted them locally. The tables show its
responses across both tiers, and the next start after a corruption of its cache of remote index files. `kidx verify`
predicted each start; a cell in bold was not predicted. *N of M*: lookups by time with the correct response after the
start.
"""
_SKIPPED: Final = "a time whose record is in a later remote segment than the first candidate"

_COUNTS: Final = """\
The wire machine's topics, with local retention of one byte. Responses to ListOffsets were compared with Kafka's rules
(-3 to -6) or with kidx, only while the local log start was above the log start. A divergence is one that no clause
explains. Made by:
"""
_COUNTED: Final = {
    "answers": "responses across tiers",
    "topics": "topics",
    "steps": "steps",
    "segments": "remote segments",
    "divergences": "divergences",
    "seed": "seed",
    "seconds": "seconds",
}.items()


def to_json(result: Tried, provenance: str) -> dict[str, Any]:
    """Return the object of a release; ``provenance`` is the command and its version."""
    return {
        "release": result.release,
        "provenance": provenance,
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


def page(results: Sequence[dict[str, Any]]) -> str:
    """Return the page of a report, with the arguments of :func:`markdown`."""
    return f"# Tiered storage\n\nMade by:\n\n{_commands(results)}\n\n{markdown(results)}"


def _commands(results: Iterable[Mapping[str, Any]]) -> str:
    """Return each command in a line of a list."""
    return "\n".join(f"- {text}" for text in dict.fromkeys(result["provenance"] for result in results))


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """Return a table of responses, one of starts and one of counts, with a column per release.

    Args:
        results: The objects of :func:`to_json`, with the counts in ``answers`` if a release has any.
    """
    releases = [result["release"] for result in results]
    rows = [[target, *(result["special"][target] for result in results)] for target in results[0]["special"]]
    rows.append(["times, correct responses", *("{} of {}".format(*result["lookups"]) for result in results)])
    rows.append([_SKIPPED, *("{answer} (the record: {expected})".format(**result["skipped"]) for result in results)])
    starts = zip(*(result["starts"] for result in results), strict=True)
    damaged = [[f"`{some[0]['damage']}`", *map(_cell, some)] for some in starts]
    lines = [_LEGEND, *_table("query", releases, rows), "", *_table("damage", releases, damaged)]
    counted = [result for result in results if "answers" in result]
    if counted:
        rows = [[text, *(_text(name, result["answers"]) for result in counted)] for name, text in _COUNTED]
        commands = _commands(result["answers"] for result in counted)
        lines += ["", _COUNTS, f"{commands}\n", *_table("count", [result["release"] for result in counted], rows)]
    return "\n".join(lines) + "\n"


def merged(old: Iterable[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of earlier results and the new one, which keeps the earlier counts of its release.

    Args:
        old: The objects of an earlier report. Results about other corruptions are omitted, because a table has one row
            for each corruption.
        new: The object of one release.
    """
    by_release = {each["release"]: each for each in old if _corruptions(each) == _corruptions(new)}
    by_release[new["release"]] = by_release.get(new["release"], {}) | new
    return sorted(by_release.values(), key=lambda each: version_of(each["release"]))


def _corruptions(result: Mapping[str, Any]) -> list[str]:
    return [start["damage"] for start in result["starts"]]


def with_counts(old: Iterable[dict[str, Any]], counts: AnswerCounts, provenance: str) -> list[dict[str, Any]]:
    """Return the objects of earlier results, with the counts and the command for the counted release."""
    return [
        each | ({"answers": counts.to_json() | {"provenance": provenance}} if each["release"] == counts.release else {})
        for each in old
    ]


def counts_text(counts: AnswerCounts) -> str:
    """Return the counts of one release in a line."""
    found = counts.to_json()
    return f"{counts.release}: " + ", ".join(f"{text} {_text(name, found)}" for name, text in _COUNTED)


def _text(name: str, counts: dict[str, Any]) -> str:
    value = counts[name]
    if isinstance(value, dict):
        return "; ".join(f"{shape} ({times})" for shape, times in value.items()) or "0"
    return str(value) if name == "seed" else f"{value:,}"


def _cell(start: dict[str, Any]) -> str:
    happened = f"{start['happened']}: {start['answers']}" if start["answers"] else start["happened"]
    return happened if start["as_predicted"] else f"**{happened}** (predicted: {start['predicted']})"


def _table(first: str, releases: Sequence[str], rows: Iterable[list[str]]) -> list[str]:
    return table([first, *releases], rows, numbers=1 + len(releases))
