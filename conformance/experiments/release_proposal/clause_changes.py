"""Clauses that begin or end with a new release, inferred from its dialect and the dialects of known releases.

A clause is a requirement with a range of releases. A dialect has the value of each behaviour that differs between
releases. A behaviour *explains* a clause if, in all known releases, its value determines whether the clause applies. If
the behaviours that explain a clause agree for the new release, and contradict the clause's range, a change of the range
is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.tables import machines_of
from conformance.clauses import family, load_clauses
from conformance.clauses.behaviour_range import BehaviourRange
from conformance.clauses.edited_range import with_release, without_release
from conformance.clauses.machines import MACHINES
from kidx.dialect import DIALECTS, ROWS, Dialect

if TYPE_CHECKING:
    from conformance.clauses import Clause

_ID: Final = re.compile(r"\b[A-Z]{2,3}-\d+")


@dataclass(frozen=True)
class ClauseChange:
    """Clause whose range of releases has to change.

    Attributes:
        clause: The current clause.
        applies: True if the clause applies to the release, contrary to its current range; False for the reverse.
        releases: The corrected range.
        because: The behaviours that explain the clause; empty if the change was inferred from traces.
        trace: The id of a trace that shows the change, or empty.
    """

    clause: Clause
    applies: bool
    releases: str
    because: tuple[str, ...] = ()
    trace: str = ""


def changes_of(
    dialect: Dialect, machines: Collection[str] = MACHINES, unknown: Collection[str] = ()
) -> Iterator[ClauseChange]:
    """Yield the clauses whose ranges contradict the dialect of a release.

    Args:
        dialect: The release's dialect.
        machines: The state machines that have tested the release. Clauses that none of them exercises are skipped.
        unknown: The behaviours whose values are unknown, because no executed step depends on them.
    """
    known = {release: other for release, other in DIALECTS.items() if release != dialect.release}
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange):
            continue  # the range follows the behaviour's row
        if not _is_exercised(clause, machines):
            continue
        because, applies = _predicted(clause, dialect, known, unknown)
        if applies is not None and applies is not clause.applies_to(dialect.release):
            yield change(clause, dialect.release, because, applies=applies)


def clauses_of(behaviours: Collection[str]) -> Iterator[Clause]:
    """Yield the clauses whose ranges are defined by these behaviours."""
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange) and clause.releases.behaviour in behaviours:
            yield clause


def unexercised_clauses(machines: Collection[str]) -> tuple[str, ...]:
    """Return the clauses that apply only to some releases and that none of these machines exercises."""
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if not _is_exercised(clause, machines) and not all(map(clause.applies_to, DIALECTS))
    )


def _is_exercised(clause: Clause, machines: Collection[str]) -> bool:
    return any(machine in machines for machine in machines_of(clause.id))


def change(
    clause: Clause, release: str, because: Iterable[str] = (), trace: str = "", *, applies: bool
) -> ClauseChange:
    """Return the change after which a clause's range includes (``applies``) or excludes a release."""
    known = [other for other in DIALECTS if other != release]
    edited = (with_release if applies else without_release)(clause.releases.text, release, known)
    return ClauseChange(clause, applies, edited, tuple(because), trace)


def _predicted(
    clause: Clause, dialect: Dialect, known: dict[str, Dialect], unknown: Collection[str]
) -> tuple[tuple[str, ...], bool | None]:
    """Predict whether a clause applies to a release.

    If the clause is named in the table of behaviours, only behaviours in whose rows it is named count. There is no
    prediction if one of these has a value that no known release has.

    Args:
        clause: The clause.
        dialect: The release's dialect.
        known: The dialects of the known releases.
        unknown: The behaviours whose values are unknown.

    Returns:
        The behaviours that explain the clause; and True if it applies, False if not, None without a prediction.
    """
    applies = {release: clause.applies_to(release) for release in known}
    if len(set(applies.values())) == 1:
        return (), None
    naming = {name for name in ROWS if family(clause.id) in _ids_of(name)}
    if any(all(getattr(dialect, name) != getattr(other, name) for other in known.values()) for name in naming):
        return (), None
    predictions: dict[str, bool | None] = {}
    for name in ROWS:
        by_value: dict[Any, set[bool]] = {}  # whether the clause applies to the releases with a value
        for release, other in known.items():
            by_value.setdefault(getattr(other, name), set()).add(applies[release])
        if all(len(each) == 1 for each in by_value.values()):
            prediction = next(iter(by_value.get(getattr(dialect, name), {None})))
            predictions[name] = None if name in unknown else prediction
    of_naming = {name: prediction for name, prediction in predictions.items() if name in naming}
    if explaining := of_naming or predictions:
        distinct = set(explaining.values())
        return tuple(explaining), distinct.pop() if len(distinct) == 1 else None
    return (), None


@cache
def _ids_of(name: str) -> frozenset[str]:
    """Return the clauses that are named in a behaviour's row of the table."""
    return frozenset((*ROWS[name].clauses, *_ID.findall(ROWS[name].__doc__ or "")))
