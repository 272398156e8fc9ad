"""Clauses that separate two Kafka releases at a step: they apply to only one of the two releases.

Clauses of one family, such as ``AI-16b`` and ``AI-16c``, are the variants of one requirement in different releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.clauses import family, load_clauses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ImplicatedClauses(NamedTuple):
    """Ids of the clauses that separate two releases.

    Attributes:
        old: The clauses that apply only to the old release.
        new: The clauses that apply only to the new release.
    """

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
    """Return the clauses that separate two releases at a step.

    If the step exercises a separating clause of only one release, the variants of this clause in the other release are
    included, too.

    Args:
        old: The old release.
        new: The new release.
        old_clauses: The clauses that the step exercises by the rules of the old release.
        new_clauses: The clauses that the step exercises by the rules of the new release.
    """
    only_old, only_new = separating(old_clauses, new), separating(new_clauses, old)
    return ImplicatedClauses(
        only_old + _variants(only_new, only_old, old, new), only_new + _variants(only_old, only_new, new, old)
    )


def _variants(given: Iterable[str], present: Iterable[str], release: str, other: str) -> tuple[str, ...]:
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
    """Return the separating clauses of the last step of a trace that has any.

    Args:
        old: The old release.
        new: The new release.
        old_steps: For each step, the clauses that it exercises by the rules of the old release.
        new_steps: For each step, the clauses that it exercises by the rules of the new release.
    """
    for old_clauses, new_clauses in zip(reversed(old_steps), reversed(new_steps), strict=True):
        implicated = implicated_by_step(old, new, old_clauses, new_clauses)
        if implicated.families:
            return implicated
    return ImplicatedClauses()
