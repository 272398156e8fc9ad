"""Behaviours of a new release, inferred by trying every known value of every row of the table of behaviours.

The search starts with a dialect, which has the value of every behaviour, of a known release. Traces in which the new
release's classes differ from the dialect fail. Again and again, the search changes one value, so that most of these
traces no longer fail. If no single change explains a trace, it tries two changes together. The traces that still fail
show new behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import family
from kidx.dialect import ROWS, Dialect, with_overrides

if TYPE_CHECKING:
    from conformance.experiments.release_proposal.trials import Failing, Trials

Change = Mapping[str, Any]
"""Changed behaviours, each with its new value."""
_TOGETHER: Final = 12
"""Maximum number of changes that are tried in pairs."""


@dataclass(frozen=True)
class Probed:
    """Result of probing a release.

    Attributes:
        dialect: The inferred dialect.
        changed: The behaviours that differ from the known release, each with its value.
        because: For each changed behaviour, the ids of the traces that differ without the change.
        failing: The traces that differ in the inferred dialect, too, because no known behaviour explains them.
        unknown: The behaviours whose values are unknown, because no trace depends on them.
    """

    dialect: Dialect
    changed: Change
    because: Mapping[str, tuple[str, ...]]
    failing: Mapping[str, Failing]
    unknown: frozenset[str]

    @property
    def untested(self) -> frozenset[str]:
        """The unknown behaviours without those that are read from the release's own classes."""
        return self.unknown - self.changed.keys()


def probe(trials: Trials, start: Dialect, changed: Change | None = None) -> Probed:
    """Find the known behaviours that explain the traces.

    Args:
        trials: The release's classes.
        start: The dialect with the release's name and the behaviours of a known release.
        changed: The behaviours that are already known to differ.
    """
    found, because = dict(changed or {}), dict[str, tuple[str, ...]]()
    failing = trials.result(with_overrides(start, **found)).failing
    while failing and (best := _best(trials, with_overrides(start, **found), failing)):
        change, left = best
        because |= dict.fromkeys(change, tuple(id_ for id_ in failing if id_ not in left))
        found |= change
        failing = left
    dialect = with_overrides(start, **found)
    return Probed(dialect, found, because, failing, trials.never_read(dialect))


def _best(
    trials: Trials, dialect: Dialect, failing: Mapping[str, Failing]
) -> tuple[Change, Mapping[str, Failing]] | None:
    """Return the change that explains most traces, and the traces that still fail; None if no change explains a trace.

    Of changes that explain equally many traces, a change of a row that names a clause of a difference is preferred,
    then the first in the table. A change that makes another trace fail is not considered.
    """
    implicated = {family(clause) for each in failing.values() for clause in each.divergence.clauses}
    ranked: list[tuple[int, bool, int, Change]] = []
    without_success: list[Change] = []  # changes after which a trace still fails, but with another divergence
    for number, change in enumerate(_changes(dialect)):
        left = trials.failing(with_overrides(dialect, **change), failing)
        if len(left) < len(failing):
            (name,) = change
            ranked.append((len(left), implicated.isdisjoint(ROWS[name].clauses), number, change))
        elif any(left[id_].divergence != failing[id_].divergence for id_ in left):
            without_success.append(change)
    if not ranked:
        for number, (one, other) in enumerate(combinations(without_success[:_TOGETHER], 2)):
            change = {**one, **other}
            left = trials.failing(with_overrides(dialect, **change), failing)
            if len(change) == 2 and len(left) < len(failing):
                ranked.append((len(left), True, number, change))
    for *_, change in sorted(ranked, key=lambda each: each[:3]):
        left = trials.result(with_overrides(dialect, **change)).failing
        if left.keys() < failing.keys():
            return change, left
    return None


def _changes(dialect: Dialect) -> Iterator[Change]:
    """Yield each other value of each row."""
    for name, row in ROWS.items():
        for value in row.values:
            if value != getattr(dialect, name):
                yield {name: value}
