"""Which clauses begin or end with a release, by what its dialect has in common with the releases that are known.

A behaviour of the dialect explains a clause if the clause holds in every known release with certain values of it and in
none with the others. What the behaviours that explain a clause say of a release with their values, is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.attribution.tables import machines_of
from conformance.clauses import MACHINES, family, load_clauses
from conformance.clauses.behaviour_range import BehaviourRange
from conformance.clauses.edited_range import with_release, without_release
from kidx.dialect import DIALECTS, ROWS, Dialect

if TYPE_CHECKING:
    from conformance.clauses import Clause

_ID: Final = re.compile(r"\b[A-Z]{2,3}-\d+")


@dataclass(frozen=True)
class ClauseChange:
    """A clause whose range of releases is to be another one.

    Attributes:
        clause: the clause as it is.
        holds: whether it holds in the release, which it does not say.
        releases: the range that says so.
        because: the behaviours that explain it; none if steps have shown it.
        trace: id of a trace that shows it; empty if there is none.
    """

    clause: Clause
    holds: bool
    releases: str
    because: tuple[str, ...] = ()
    trace: str = ""


def changes_of(
    dialect: Dialect, machines: Collection[str] = MACHINES, unread: Collection[str] = ()
) -> Iterator[ClauseChange]:
    """The clauses whose ranges do not say what the dialect of a release does.

    Args:
        dialect: of the release.
        machines: that have driven it. Clauses that none of them exercises are left out: no step has shown anything.
        unread: behaviours that no step depends on. They say nothing.
    """
    known = {release: other for release, other in DIALECTS.items() if release != dialect.release}
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange):
            continue  # the row says it
        because, holds = _predicted(clause, dialect, known, unread) if _asked(clause, machines) else ((), None)
        if holds is not None and holds is not clause.applies_to(dialect.release):
            yield change(clause, dialect.release, because, holds=holds)


def clauses_of(behaviours: Collection[str]) -> Iterator[Clause]:
    """Yield the clauses whose ranges are those of these behaviours: they change with the rows."""
    for clause in load_clauses().values():
        if isinstance(clause.releases, BehaviourRange) and clause.releases.behaviour in behaviours:
            yield clause


def not_asked(machines: Collection[str]) -> tuple[str, ...]:
    """The clauses that hold in some releases only and that none of the machines exercises: nothing is said of them."""
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if not _asked(clause, machines) and not all(map(clause.applies_to, DIALECTS))
    )


def _asked(clause: Clause, machines: Collection[str]) -> bool:
    return any(machine in machines for machine in machines_of(clause.id))


def change(clause: Clause, release: str, because: Iterable[str] = (), trace: str = "", *, holds: bool) -> ClauseChange:
    """A clause with the range that says whether it holds in a release."""
    known = [other for other in DIALECTS if other != release]
    edited = (with_release if holds else without_release)(clause.releases.text, release, known)
    return ClauseChange(clause, holds, edited, tuple(because), trace)


def _predicted(
    clause: Clause, dialect: Dialect, known: dict[str, Dialect], unread: Collection[str]
) -> tuple[tuple[str, ...], bool | None]:
    """Return the behaviours that explain a clause, and whether it holds; None if they do not decide it.

    Behaviours whose rows name the clause come first, then all. A value that no known release has says nothing, and if
    a behaviour whose row names the clause has such a value, nothing else does.
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
