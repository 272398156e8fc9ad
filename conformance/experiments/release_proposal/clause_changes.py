"""Which clauses begin or end with a release, by what its dialect has in common with the releases that are known.

A behaviour of the dialect explains a clause if the clause holds in every known release with certain values of it and in
none with the others. What the behaviours that explain a clause say of a release with their values, is proposed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses import MACHINES, load_clauses
from conformance.clauses.edited_range import with_release, without_release
from conformance.experiments.release_diff.stakes import family
from kidx.dialect import BEHAVIOURS, DIALECTS, Dialect
from kidx.dialect.columns import Columns

if TYPE_CHECKING:
    from conformance.clauses import Clause

_COLUMNS: Final = tuple(column.name for column in fields(Columns) if column.name != "release")
_ID: Final = re.compile(r"\b[A-Z]{2,3}-\d+")
_WHOLE: Final = {"index_rules", "segment_rules", "version"}
"""Behaviours that only sum up others."""


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
    dialect: Dialect, machines: Collection[str] = MACHINES, alike: Sequence[Dialect] = ()
) -> Iterator[ClauseChange]:
    """The clauses whose ranges do not say what the dialect of a release does.

    Args:
        dialect: of the release.
        machines: that have driven it. Clauses that none of them exercises are left out: no step has shown anything.
        alike: dialects that no step has told from it. A behaviour that they do not share says nothing.
    """
    known = {release: other for release, other in DIALECTS.items() if release != dialect.release}
    for clause in load_clauses().values():
        because, holds = _predicted(clause, (dialect, *alike), known) if _asked(clause, machines) else ((), None)
        if holds is not None and holds is not clause.applies_to(dialect.release):
            yield change(clause, dialect.release, because, holds=holds)


def not_asked(machines: Collection[str]) -> tuple[str, ...]:
    """The clauses that hold in some releases only and that none of the machines exercises: nothing is said of them."""
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if not _asked(clause, machines) and not all(map(clause.applies_to, DIALECTS))
    )


def _asked(clause: Clause, machines: Collection[str]) -> bool:
    return any(machine in machines for machine in clause.exercised_by)


def change(clause: Clause, release: str, because: Iterable[str] = (), trace: str = "", *, holds: bool) -> ClauseChange:
    """A clause with the range that says whether it holds in a release."""
    known = [other for other in DIALECTS if other != release]
    edited = (with_release if holds else without_release)(clause.releases.text, release, known)
    return ClauseChange(clause, holds, edited, tuple(because), trace)


def _predicted(
    clause: Clause, dialects: Sequence[Dialect], known: dict[str, Dialect]
) -> tuple[tuple[str, ...], bool | None]:
    """The behaviours that explain a clause, and what they say; None if they explain nothing, or contradict each other.

    Behaviours whose docstrings name the clause come first, then the columns, which have been probed, then all. A value
    that no known release has says nothing.
    """
    applies = {release: clause.applies_to(release) for release in known}
    if len(set(applies.values())) == 1:
        return (), None
    votes: dict[str, bool | None] = {}
    for name in (*_COLUMNS, *(name for name in BEHAVIOURS if name not in _WHOLE)):
        held: dict[Any, set[bool]] = {}
        for release, other in known.items():
            held.setdefault(getattr(other, name), set()).add(applies[release])
        if all(len(values) == 1 for values in held.values()):
            answers = {next(iter(held.get(getattr(dialect, name), {None}))) for dialect in dialects}
            votes[name] = answers.pop() if len(answers) == 1 else None
    about = {name: vote for name, vote in votes.items() if family(clause.id) in _ids_of(name)}
    probed = {name: vote for name, vote in votes.items() if name in _COLUMNS}
    for considered in (about, probed, votes):
        if considered:
            answers = set(considered.values())
            return tuple(considered), answers.pop() if len(answers) == 1 else None
    return (), None


@cache
def _ids_of(name: str) -> frozenset[str]:
    """The clauses that the docstring of a behaviour or a column names."""
    if name in _COLUMNS:
        text = inspect.getdoc(Columns) or ""
        text = next((line for line in text.splitlines() if line.strip().startswith(f"{name}:")), "")
    else:
        text = inspect.getdoc(getattr(Dialect, name)) or ""
    return frozenset(_ID.findall(text))
