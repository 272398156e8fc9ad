"""Errors that both releases raise with different texts: collected during a search, and shrunk afterwards.

After a different text, states are equal, so the example continues, unlike after other differences. Two changes are the
same if their texts are equal except for numbers and file names.

:func:`separating` names the clauses that separate two releases at a step: they apply to only one of the two. Clauses of
one family, such as ``AI-16b`` and ``AI-16c``, are the variants of one requirement in different releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.clauses import family, load_clauses
from conformance.runs.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.experiments.release_diff.execution import RecordingProxy, ReleaseRunner
    from conformance.operations import Observation, Operation


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
        old_steps: For each step, the clauses that it exercises by the rules of the old release.
        new_steps: For each step, the clauses that it exercises by the rules of the new release.
    """
    for old_clauses, new_clauses in zip(reversed(old_steps), reversed(new_steps), strict=True):
        implicated = implicated_by_step(old, new, old_clauses, new_clauses)
        if implicated.families:
            return implicated
    return ImplicatedClauses()


_FILE = re.compile(r"[\w./-]*\.(?:log|index|timeindex|txnindex)(?:\.(?:deleted|cleaned|swap))?\b")
_NUMBER = re.compile(r"-?\d+")
_MODIFIED = re.compile(r"(?<=lastModifiedTime=)\d+")
"""Modification time of a file, which differs between participants."""
_SECONDS = 5.0
"""Time limit in seconds for shrinking one change, because there may be many."""

Pattern = tuple[str, str]
"""Both texts without their numbers and file names."""


class Wording(NamedTuple):
    """Texts of one error in both releases."""

    error: str
    old: str
    new: str

    @property
    def pattern(self) -> Pattern:
        """Both texts without their numbers and file names."""
        return _pattern(self.old), _pattern(self.new)


@dataclass(frozen=True)
class TextChange:
    """Error whose text has changed.

    Attributes:
        machine: The state machine that found the change.
        wording: The texts in an example.
        operations: The operations of the example, the last of which raises the error.
        implicated: The clauses that separate the releases at this step.
        trace: The path of the example's trace.
    """

    machine: str
    wording: Wording
    operations: tuple[Operation, ...]
    implicated: ImplicatedClauses
    trace: Path


class TextCollector:
    """Listener that compares the error texts of both releases in each step.

    Args:
        older: The older release's classes, which execute every operation first.
        operations: A function that returns the operations of the example so far.

    Attributes:
        newer: The newer release's classes; None until they are set.
        found: The shortest example of each change: the texts and the operations.
    """

    def __init__(self, older: RecordingProxy, operations: Callable[[], Sequence[Operation]]) -> None:
        self.older = older
        self.newer: RecordingProxy | None = None
        self.found: dict[Pattern, tuple[Wording, tuple[Operation, ...]]] = {}
        self._operations = operations

    def __call__(self, _: Operation, answer: Observation) -> None:
        """Record an observation of the newer release; the older release has executed the same step before."""
        older, newer = self.older, self.newer
        if newer is None or older.last is None or older.performed != newer.performed:
            return
        wording = differing_error_texts(older.last, answer, older.directory, newer.directory)
        if wording is None:
            return
        operations = self._operations()
        known = self.found.get(wording.pattern)
        if known is None or len(operations) < len(known[1]):
            self.found[wording.pattern] = wording, tuple(operations)


def differing_error_texts(old: Any, new: Any, old_directory: Path, new_directory: Path) -> Wording | None:
    """Return both texts if two observations are the same error with different texts, or None."""
    before, after = old.outcome, new.outcome
    if before.error is None or before.error != after.error or before.text is None or after.text is None:
        return None
    if before.text == after.text:
        return None
    wording = Wording(before.error, _without(before.text, old_directory), _without(after.text, new_directory))
    return None if wording.old == wording.new else wording


def _pattern(text: str) -> str:
    return _NUMBER.sub("N", _FILE.sub("FILE", text))


def _without(text: str, directory: Path) -> str:
    """Return a text without paths of a directory, and without modification times."""
    return _MODIFIED.sub("…", text.replace(f"{directory}/", "").replace(str(directory), ""))


def shortened(
    old: ReleaseRunner, new: ReleaseRunner, operations: Sequence[Operation], pattern: Pattern
) -> tuple[tuple[Operation, ...], tuple[Wording, ImplicatedClauses]] | None:
    """Return a shorter example of a change, with its texts and clauses; None if the change does not occur again."""

    def shows(candidate: Sequence[Operation]) -> tuple[Wording, ImplicatedClauses] | None:
        older, newer = old.perform(candidate), new.perform(candidate)
        if not len(older.observations) == len(newer.observations) == len(candidate):
            return None
        before, after = older.observations[-1], newer.observations[-1]
        if before is None or after is None:
            return None
        wording = differing_error_texts(before, after, old.directory, new.directory)
        if wording is None or wording.pattern != pattern:
            return None
        return wording, implicated_by_step(old.release, new.release, older.clauses[-1], newer.clauses[-1])

    found = shrink(operations, shows, seconds=_SECONDS)
    return None if found is None else (found.operations, found.result)
