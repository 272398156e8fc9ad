"""Decision whether a divergence counts for a verdict at a level.

The level of a clause is MUST (guaranteed to every user), API (guaranteed to callers of Kafka's classes) or OBSERVED
(what Kafka happens to do).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

from conformance.clauses import FACETS, load_clauses
from kidx.layout import TIME_INDEX

OF_THE_FILE: Final = frozenset({"max_entries", "full", "length"})
"""The fields of a state that depend on the length of the file."""
READ_WHEN_NEEDED: Final = frozenset({"maximum", "rolling_based_timestamp"})
"""The fields of a segment's state that are None until they are read from its files."""
_OF_OUTCOME: Final = "bytes/of-outcome"
"""Excuse for bytes that follow from another outcome; bytes that differ after equal outcomes are not excused."""
_OF_RENAMED: Final = frozenset({".deleted", ".swap", ".cleaned"})
"""The suffixes that Kafka adds to the names of files."""


class DivergentParts(NamedTuple):
    """Parts of a step that differ.

    Attributes:
        clauses: The ids of the clauses that the step was attributed to.
        facets: The members of :data:`conformance.clauses.FACETS` that differ.
        fields: The names of the fields of the state that differ.
        files: The names of the files that differ, each with keywords for the kind of difference.
        both_refused: True if both outcomes are errors, as required, but of different kinds.
        results: How the outcomes differ: ``error`` if only one of them is an error, or the names of the fields of the
            result that differ; empty if the result has no fields. ``entry`` replaces ``error`` if both sides appended
            the records to a segment, and one side then rejected an index entry.
        unread: The names of those fields that one side has read from the files and the other has not read yet.
    """

    clauses: Collection[str]
    facets: Collection[str]
    fields: Collection[str] = ()
    files: Collection[tuple[str, Collection[str]]] = ()
    both_refused: bool = False
    results: Collection[str] = ()
    unread: Collection[str] = ()


def counts_at_level(parts: DivergentParts, level: str) -> bool:
    """Return True if a divergence counts for a verdict at level ``"must"`` or ``"api"``.

    It counts if a clause of the level applies to the step, and at least one difference is not permitted by a clause of
    a later level. At level ``must``, a divergence that only callers of Kafka's classes can notice does not count.

    Args:
        parts: The parts of the step that differ.
    """
    catalogue = load_clauses()
    levels = {catalogue[clause].level for clause in parts.clauses}
    if level == "api":
        if parts.clauses and levels == {"OBSERVED"}:
            return False
        return not is_observed_only(*parts[:4], results=parts.results)
    if "MUST" not in levels:
        return False
    noticed = noticed_facets(parts)
    return bool(noticed) and not is_observed_only(
        parts.clauses,
        noticed,
        [name for name in parts.fields if name not in parts.unread],
        parts.files,
        ("API", "OBSERVED"),
        is_other_outcome=not {"outcome", "text"}.isdisjoint(parts.facets),
        results=parts.results,
    )


def noticed_facets(parts: DivergentParts) -> frozenset[str]:
    """Return the facets of a divergence that are visible to readers of the files and to consumers of the log.

    The kind of an error is visible if a clause guarantees it; the message of an error never is. The length of an index
    file is visible if a clause guarantees it, and for a finished time index, whose last entry is taken for the largest
    timestamp. When a segment reads a value from its files is not visible; the value is compared when both have it.

    Args:
        parts: The parts of the step that differ.
    """
    catalogue = load_clauses()
    promised = frozenset[str]().union(*(catalogue[clause].promises for clause in parts.clauses))
    noticed = set(parts.facets) - {"text"}
    if parts.both_refused and "kind" not in promised:
        noticed.discard("outcome")
    if parts.fields and all(name in parts.unread or name.rpartition(".")[2] in OF_THE_FILE for name in parts.fields):
        noticed.discard("state")
    if "length" not in promised and parts.files and all(_is_padding_only(*file) for file in parts.files):
        noticed.discard("bytes")
    return frozenset(noticed)


def _is_padding_only(name: str, how: Collection[str]) -> bool:
    """Return True if only the unused end of a file differs (``room``), and the file is not a ``longer`` time index.

    The last entry of a time index, perhaps of zeros, is taken for the largest timestamp.
    """
    return "room" in how and not ("longer" in how and suffix_of(name) == TIME_INDEX.name)


def suffix_of(name: str) -> str:
    """Return the suffix of a file of a segment, as ``.index``, even if the file is renamed to ``….index.deleted``."""
    path = PurePath(name)
    return PurePath(path.stem).suffix if path.suffix in _OF_RENAMED and PurePath(path.stem).suffix else path.suffix


def is_observed_only(
    ids: Iterable[str],
    facets: Collection[str] = (),
    fields: Collection[str] = (),
    files: Collection[tuple[str, Collection[str]]] = (),
    levels: Collection[str] = ("OBSERVED",),
    *,
    is_other_outcome: bool = False,
    results: Collection[str] = (),
) -> bool:
    """Return True if a divergent step does not count for a verdict at level MUST.

    A MUST clause of a step says what is required in general (a rejected offset is an error). An OBSERVED clause says
    what Kafka also does in exactly this state (the rejected append leaves eight stray bytes). The more specific clause
    decides: the divergence does not count if an OBSERVED clause of the step permits every facet that differs. A facet
    that no OBSERVED clause permits violates a MUST clause: to accept the offset is not a permitted way to reject it.

    A state is not permitted because the outcome is: an operation that may be rejected, or may return another value,
    still loses no entry. Only a clause with the excuse ``bytes/of-outcome`` permits the bytes and the state that result
    from another outcome, and from an append of several entries that fails one entry earlier or later. If different
    bytes are permitted, so are different values of the fields for the length of the file.

    After a permitted divergence, the participants no longer have the same state, and later steps may look like
    violations. A lockstep at level MUST therefore ends the example, or continues without that implementation.

    Args:
        ids: The clauses that the step exercises.
        facets: The members of :data:`conformance.clauses.FACETS` that differ. If it is empty, the kind of the
            divergence is unknown, and any OBSERVED clause of the step is enough.
        fields: The fields of the state that differ, as far as they are known.
        files: The names of the files that differ, as far as they are known, each with keywords for the kind of
            difference.
        levels: The levels whose clauses may permit a difference.
        is_other_outcome: True if the outcomes differ, perhaps only in the message.
        results: How the outcomes differ, as in :class:`DivergentParts`.

    Raises:
        ValueError: A facet is unknown.
    """
    if unknown := sorted(set(facets) - set(FACETS)):
        raise ValueError(f"unknown facet {', '.join(unknown)}; choose from {', '.join(FACETS)}")
    catalogue = load_clauses()
    excusing = (catalogue[clause] for clause in ids)
    excuses = frozenset[str]().union(*(clause.excuses for clause in excusing if clause.level in levels))
    if not excuses:
        return False
    left = {facet for facet in facets if facet not in excuses}
    if results and all(f"outcome/{name}" in excuses for name in results):
        left.discard("outcome")
    if _OF_OUTCOME in excuses and is_other_outcome and "outcome" not in left:
        left -= {"bytes", "state"}
    if files and all(_may_differ(*each, excuses) for each in files):
        left.discard("bytes")
    if fields and all(f"state/{name.partition('.')[0]}" in excuses for name in fields):
        left.discard("state")
    if left != {"state"}:
        return not left
    return "bytes" in facets and bool(fields) and set(fields) <= OF_THE_FILE


def _may_differ(name: str, how: Collection[str], excuses: Collection[str]) -> bool:
    """Return True if the clauses allow this file, or all files of its type, to differ in this way."""
    return any(f"bytes/{word}" in excuses for word in (name, suffix_of(name), *how))
