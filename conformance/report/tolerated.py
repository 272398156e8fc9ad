"""Text about the differences that a run tolerated because an implementation lacks a capability."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.operations.log_capabilities import NOT_IN_STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.events import Result

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
