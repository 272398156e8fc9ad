"""Whether a difference counts at a level of the verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

from conformance.clauses import FACETS, load_clauses
from kidx.layout import TIME_INDEX

_OF_THE_FILE: Final = frozenset({"max_entries", "full", "length"})
"""Fields of a state that say how long the file is."""


class Difference(NamedTuple):
    """In what a step differs.

    Attributes:
        clauses: the ids of those that the step was attributed to.
        facets: which of :data:`conformance.clauses.FACETS` differ.
        fields: the names of the fields of the state that differ.
        files: the names of the files that differ, each with words for how it does.
        both_refused: the operation was refused as it had to be, and the kind of the refusal is another one.
    """

    clauses: Collection[str]
    facets: Collection[str]
    fields: Collection[str] = ()
    files: Collection[tuple[str, Collection[str]]] = ()
    both_refused: bool = False


def breaks_promise(difference: Difference, level: str) -> bool:
    """Return whether a difference counts at a level of the verdict, ``"must"`` or ``"api"``.

    It counts if a clause of the level speaks of the step, and something differs that no clause of a later level
    excuses. At level must nothing counts that only a caller of Kafka's classes notices.

    Args:
        difference: the difference.
        level: of the verdict.
    """
    catalogue = load_clauses()
    levels = {catalogue[clause].level for clause in difference.clauses}
    if level == "api":
        if difference.clauses and levels == {"OBSERVED"}:
            return False
        return not is_observed_only(*difference[:4])
    if "MUST" not in levels:
        return False
    noticed = noticed_facets(difference)
    return bool(noticed) and not is_observed_only(
        difference.clauses, noticed, difference.fields, difference.files, ("API", "OBSERVED")
    )


def noticed_facets(difference: Difference) -> frozenset[str]:
    """Return the facets of a difference that somebody notices who reads the files, or consumes from the log.

    The kind of a refusal is noticed where a clause promises it, the text of one never. How long an index is, is seen by
    nobody: but for a finished time index, of which the last entry is taken for the largest timestamp.

    Args:
        difference: the difference.
    """
    catalogue = load_clauses()
    noticed = set(difference.facets) - {"text"}
    if difference.both_refused and not any(catalogue[clause].promises_kind for clause in difference.clauses):
        noticed.discard("outcome")
    if difference.fields and all(name.rpartition(".")[2] in _OF_THE_FILE for name in difference.fields):
        noticed.discard("state")
    if difference.files and all(_is_room(*file) for file in difference.files):
        noticed.discard("bytes")
    return frozenset(noticed)


def _is_room(name: str, how: Collection[str]) -> bool:
    return "room" in how and not ("longer" in how and PurePath(name).suffix == TIME_INDEX.name)


def is_observed_only(
    ids: Iterable[str],
    facets: Collection[str] = (),
    fields: Collection[str] = (),
    files: Collection[tuple[str, Collection[str]]] = (),
    levels: Collection[str] = ("OBSERVED",),
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
        levels: of the clauses that may excuse something.

    Raises:
        ValueError: there is no such facet.
    """
    if unknown := sorted(set(facets) - set(FACETS)):
        raise ValueError(f"no facet {', '.join(unknown)}; there are {', '.join(FACETS)}")
    catalogue = load_clauses()
    excusing = (catalogue[clause] for clause in ids)
    excuses = frozenset[str]().union(*(clause.excuses for clause in excusing if clause.level in levels))
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
