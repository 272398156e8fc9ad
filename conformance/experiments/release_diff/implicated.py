"""Clauses that separate two releases at a step: they apply to only one of the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.clauses import family, load_clauses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ImplicatedClauses(NamedTuple):
    """Ids of the implicated clauses: those that apply only to the old release, and those only to the new release."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @property
    def families(self) -> frozenset[str]:
        """Ids without the letters of their variants: ``AI-16`` for ``AI-16b`` and ``AI-16c``."""
        return frozenset(map(family, (*self.old, *self.new)))


def separating(clauses: Iterable[str], other: str) -> tuple[str, ...]:
    """Return the clauses of a release that do not apply to another release."""
    catalogue = load_clauses()
    return tuple(clause for clause in clauses if not catalogue[clause].applies_to(other))


def implicated_by_step(old: str, new: str, old_clauses: Iterable[str], new_clauses: Iterable[str]) -> ImplicatedClauses:
    """Return the clauses that separate two releases, of the clauses that a step exercises in each dialect.

    If only one release's step exercises a separating clause, the other release's variants of this clause are included,
    too.
    """
    mine, theirs = separating(old_clauses, new), separating(new_clauses, old)
    return ImplicatedClauses(mine + _instead(theirs, mine, old, new), theirs + _instead(mine, theirs, new, old))


def _instead(given: Iterable[str], present: Iterable[str], release: str, other: str) -> tuple[str, ...]:
    """Return the variants of clauses that apply only to ``release``.

    Args:
        given: Clauses of the other release.
        present: Clauses of this release; no variants of these are returned.
        release: The release.
        other: The other release.
    """
    missing = set(map(family, given)) - set(map(family, present))
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if family(clause.id) in missing and clause.applies_to(release) and not clause.applies_to(other)
    )


def last_implicated(
    old: str, new: str, old_steps: Sequence[tuple[str, ...]], new_steps: Sequence[tuple[str, ...]]
) -> ImplicatedClauses:
    """Return the implicated clauses of the last step of a trace that implicates any."""
    for mine, theirs in zip(reversed(old_steps), reversed(new_steps), strict=True):
        implicated = implicated_by_step(old, new, mine, theirs)
        if implicated.families:
            return implicated
    return ImplicatedClauses()
