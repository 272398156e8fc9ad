"""Which clauses separate two releases where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.clauses import family, load_clauses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Stakes(NamedTuple):
    """Clauses at stake: ids that hold in the old release and not in the new one, and the other way round."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @property
    def families(self) -> frozenset[str]:
        """The ids without the letters of their variants: ``AI-16`` of ``AI-16b`` and ``AI-16c``."""
        return frozenset(map(family, (*self.old, *self.new)))


def separating(clauses: Iterable[str], other: str) -> tuple[str, ...]:
    """Those of a release's clauses that do not hold in another release."""
    catalogue = load_clauses()
    return tuple(clause for clause in clauses if not catalogue[clause].applies_to(other))


def stakes_of(old: str, new: str, old_clauses: Iterable[str], new_clauses: Iterable[str]) -> Stakes:
    """The clauses that separate two releases, from those that a step exercises in each dialect.

    Where one release's step exercises a separating clause and the other's none of that family, the other's variants of
    it are named too: what holds instead, although this step does not show it.
    """
    mine, theirs = separating(old_clauses, new), separating(new_clauses, old)
    return Stakes(mine + _instead(theirs, mine, old, new), theirs + _instead(mine, theirs, new, old))


def _instead(given: Iterable[str], present: Iterable[str], release: str, other: str) -> tuple[str, ...]:
    """Variants that hold in one release only, of the families of ``given`` that ``present`` has nothing of."""
    missing = set(map(family, given)) - set(map(family, present))
    return tuple(
        clause.id
        for clause in load_clauses().values()
        if family(clause.id) in missing and clause.applies_to(release) and not clause.applies_to(other)
    )


def nearest_stakes(
    old: str, new: str, old_steps: Sequence[tuple[str, ...]], new_steps: Sequence[tuple[str, ...]]
) -> Stakes:
    """The stakes of the last step of a shrunk trace that has any: what parts them may show only later."""
    for mine, theirs in zip(reversed(old_steps), reversed(new_steps), strict=True):
        stakes = stakes_of(old, new, mine, theirs)
        if stakes.families:
            return stakes
    return Stakes()
