"""Remarks about the results of a machine.

They warn about failures of a program, which may hide other divergences, and state the numbers of regression traces and
examples that were not executed because of ``--max-time``, and the differences that a run tolerated because an
implementation lacks a capability.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.operations.log_capabilities import NOT_IN_STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.events import Result


def describe_failures(result: Result) -> str:
    """Return a sentence about the failures of an implementation on a machine; empty without failures."""
    found = result.details.get("failures")
    if not found:
        return ""
    shapes = ", ".join(f"{shape}, {times} times" for shape, times in found["shapes"].items())
    missing = found["not executed"]
    never = ", ".join(found.get("not survived", ()))
    hidden = f" Nothing was compared after {never}: it failed each time." if never else ""
    avoided = found.get("avoided", 0)
    hidden += f" {avoided} steps like those at which it failed were skipped in later examples." if avoided else ""
    rest = (
        f" {missing} of {found['examples']} examples were not executed: it dropped out of the run." if missing else ""
    )
    return (
        f"{result.implementation} {result.release} failed in {found['cut short']} of {found['examples']} examples of"
        f" the {result.machine} machine, which ended there ({shapes}).{rest}{hidden} Fix this first: it may hide other"
        " divergences."
    )


def stopped_by_time(result: Result) -> str:
    """Return the remark about the machine of a result; empty if it executed everything."""
    if not result.details.get("cut_by_time"):
        return ""
    missing = not_executed(result)
    return f"stopped by --max-time: {missing}" if missing else "stopped by --max-time"


def not_executed(result: Result) -> str:
    """Return the numbers of regression traces and examples not executed; empty for an event without the numbers."""
    found = result.details.get("not_executed", {})
    counts = [f"{missing} of {wanted} {kind}" for kind, (missing, wanted) in found.items() if missing]
    return f"{' and '.join(counts)} not executed" if counts else ""


_NAMED: Final = 3
"""Maximum number of releases that are listed by name."""


def tolerated(results: Iterable[Result]) -> Iterator[str]:
    """Yield a line for each tolerated difference, with the number of steps in all releases."""
    steps: dict[tuple[str, str], Counter[str]] = {}
    releases: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for words, count in result.details.get("excused", {}).items():
            steps.setdefault((result.implementation, result.machine), Counter())[words] += count
            releases.setdefault((result.implementation, result.machine, words), []).append(result.release)
    for (implementation, machine), counts in steps.items():
        where = f" by {implementation}" if len({name for name, _ in steps}) > 1 else ""
        alike: dict[tuple[int, bool, str], list[str]] = {}
        for words, count in counts.items():
            on = in_few_words(releases[implementation, machine, words])
            alike.setdefault((count, words.startswith(NOT_IN_STATE), on), []).append(words)
        for (count, _, on), said in alike.items():
            for line in _joined(said):
                yield f"tolerated in {count} steps{where}, {machine} machine on {on}: {line}"


def _joined(said: list[str]) -> list[str]:
    """Return the lines of tolerated differences; differences in fields of a state share one line."""
    if not all(words.startswith(NOT_IN_STATE) for words in said):
        return said
    return [NOT_IN_STATE + ", ".join(words.removeprefix(NOT_IN_STATE) for words in said)]


def in_few_words(releases: Sequence[str]) -> str:
    """Return the releases, or their number if there are many."""
    return ", ".join(releases) if len(releases) <= _NAMED else f"{len(releases)} releases"
