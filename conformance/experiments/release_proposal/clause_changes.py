"""Clauses that begin or end with a release, inferred from its dialect and the dialects of known releases.

A behaviour of the dialect explains a clause if the value of the behaviour determines, for all known releases, if the
clause applies. If the explaining behaviours agree for the release's values, and contradict the clause's range, a change
of the range is proposed.
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
        holds: True if the clause applies to the release, contrary to its current range; False for the reverse.
        releases: The corrected range.
        because: The behaviours that explain the clause; empty if the change was inferred from traces.
        trace: The id of a trace that shows the change, or empty.
    """

    clause: Clause
    holds: bool
    releases: str
    because: tuple[str, ...] = ()
    trace: str = ""


def changes_of(
    dialect: Dialect, machines: Collection[str] = MACHINES, unread: Collection[str] = ()
) -> Iterator[ClauseChange]:
    """Yield the clauses whose ranges contradict the dialect of a release.

    Args:
        dialect: The release's dialect.
        machines: The machines that have driven the release. Clauses that none of them exercises are skipped.
        unread: The behaviours that no step depends on, so that their values are unknown.
    """
    known = {release: other for release, other in DIALECTS.items() if release != dialect.release}
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange):
            continue  # the range follows the behaviour's row
        because, holds = _predicted(clause, dialect, known, unread) if _is_exercised(clause, machines) else ((), None)
        if holds is not None and holds is not clause.applies_to(dialect.release):
            yield change(clause, dialect.release, because, holds=holds)


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


def change(clause: Clause, release: str, because: Iterable[str] = (), trace: str = "", *, holds: bool) -> ClauseChange:
    """Return a clause with a range that includes or excludes a release."""
    known = [other for other in DIALECTS if other != release]
    edited = (with_release if holds else without_release)(clause.releases.text, release, known)
    return ClauseChange(clause, holds, edited, tuple(because), trace)


def _predicted(
    clause: Clause, dialect: Dialect, known: dict[str, Dialect], unread: Collection[str]
) -> tuple[tuple[str, ...], bool | None]:
    """Return the behaviours that explain a clause, and True if it applies, False if not, None if they do not agree.

    If rows of behaviours name the clause, only these behaviours decide. A value that no known release has decides
    nothing. If a behaviour whose row names the clause has such a value, no other behaviour decides.
    """
    applies = {release: clause.applies_to(release) for release in known}
    if len(set(applies.values())) == 1:
        return (), None
    naming = {name for name in ROWS if family(clause.id) in _ids_of(name)}
    if any(all(getattr(dialect, name) != getattr(other, name) for other in known.values()) for name in naming):
        return (), None
    votes: dict[str, bool | None] = {}
    for name in ROWS:
        held: dict[Any, set[bool]] = {}
        for release, other in known.items():
            held.setdefault(getattr(other, name), set()).add(applies[release])
        if all(len(values) == 1 for values in held.values()):
            vote = next(iter(held.get(getattr(dialect, name), {None})))
            votes[name] = None if name in unread else vote
    about = {name: vote for name, vote in votes.items() if name in naming}
    for considered in (about, votes):
        if considered:
            answers = set(considered.values())
            return tuple(considered), answers.pop() if len(answers) == 1 else None
    return (), None


@cache
def _ids_of(name: str) -> frozenset[str]:
    """Return the clauses that the row of a behaviour names."""
    return frozenset((*ROWS[name].clauses, *_ID.findall(ROWS[name].__doc__ or "")))
