"""Whether a difference counts at a level of the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Final

from conformance.clauses import FACETS, load_clauses

_OF_THE_FILE: Final = frozenset({"max_entries", "full", "length"})
"""Fields of a state that say how long the file is."""


def is_observed_only(
    ids: Iterable[str],
    facets: Collection[str] = (),
    fields: Collection[str] = (),
    files: Collection[tuple[str, Collection[str]]] = (),
) -> bool:
    """Whether a diverging step may be left out of a verdict at level MUST.

    The MUST clauses attributed to a step say what holds in general (a refused offset is refused); an OBSERVED one says
    what Kafka also does in exactly this state (and leaves eight stray bytes). So the particular decides: the
    divergence is left out if every facet that differs is excused by an OBSERVED clause of the step. A facet that none
    of them excuses is a violation of a MUST: accepting the offset is no better way of refusing it.

    The state follows from the rest: where another outcome is excused, a step that was done instead of refused, or the
    reverse, has left another state; where other bytes are excused, the fields that say how long the file is follow.

    A later consequence of an excused divergence looks like a violation, because the participants no longer have the
    same state: a lockstep at level MUST ends the example there, or goes on without that implementation.

    Args:
        ids: the clauses the step was attributed to.
        facets: which of :data:`conformance.clauses.FACETS` differ. If none is given, nothing is known about where the
            difference lies, and any OBSERVED clause decides.
        fields: the fields of the state that differ, as far as they are known.
        files: the names of the files that differ, as far as they are known, each with words for how it does.

    Raises:
        ValueError: there is no such facet.
    """
    if unknown := sorted(set(facets) - set(FACETS)):
        raise ValueError(f"no facet {', '.join(unknown)}; there are {', '.join(FACETS)}")
    catalogue = load_clauses()
    excuses = frozenset[str]().union(*(catalogue[clause].excuses for clause in ids))
    if not excuses:
        return False
    left = {facet for facet in facets if facet not in excuses}
    if files and all(_may_differ(*each, excuses) for each in files):
        left.discard("bytes")
    if fields and all(f"state/{name.partition('.')[0]}" in excuses for name in fields):
        left.discard("state")
    if left != {"state"}:
        return not left
    return "outcome" in facets or ("bytes" in facets and bool(fields) and set(fields) <= _OF_THE_FILE)


def _may_differ(name: str, how: Collection[str], excuses: Collection[str]) -> bool:
    """Whether a file may differ in a way, or files like it in any."""
    return any(f"bytes/{word}" in excuses for word in (name, PurePath(name).suffix, *how))
