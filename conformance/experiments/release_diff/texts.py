"""Refusals that both releases make and word differently: collected while a search runs, shortened afterwards.

A different text leaves the state equal, so it must not end an example as other differences do. Two changes are the
same if their texts are, numbers and file names aside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.experiments.release_diff.stakes import Stakes, stakes_of
from conformance.runs.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.experiments.release_diff.performance import Performer
    from conformance.experiments.release_diff.watched import Watched
    from conformance.operations import Observation, Operation

_FILE = re.compile(r"[\w./-]*\.(?:log|index|timeindex|txnindex)(?:\.(?:deleted|cleaned|swap))?\b")
_NUMBER = re.compile(r"-?\d+")
_MODIFIED = re.compile(r"(?<=lastModifiedTime=)\d+")
"""When a file was written: each participant has files of its own."""
_SECONDS = 5.0
"""For one of many changes: two releases perform every candidate."""

Pattern = tuple[str, str]
"""Both texts without their numbers and file names."""


class Wording(NamedTuple):
    """How both releases word one refusal."""

    error: str
    old: str
    new: str

    @property
    def pattern(self) -> Pattern:
        """What is the same wherever this refusal is made."""
        return _pattern(self.old), _pattern(self.new)


@dataclass(frozen=True)
class TextChange:
    """One refusal whose text has changed.

    Attributes:
        machine: which machine showed it.
        wording: the texts of an example.
        operations: the example; its last step is refused.
        stakes: the clauses that separate the releases there.
        trace: where the example is kept.
    """

    machine: str
    wording: Wording
    operations: tuple[Operation, ...]
    stakes: Stakes
    trace: Path


class TextCollector:
    """Hears what the newer release answers and compares it with what the older one has just said.

    Args:
        older: the older release's classes, which perform every operation first.
        operations: asked for the operations so far.
    """

    def __init__(self, older: Watched, operations: Callable[[], Sequence[Operation]]) -> None:
        self.older = older
        self.newer: Watched | None = None
        self.found: dict[Pattern, tuple[Wording, tuple[Operation, ...]]] = {}
        """For each change the shortest example."""
        self._operations = operations

    def __call__(self, _: Operation, answer: Observation) -> None:
        """Told of every operation of the newer release."""
        older, newer = self.older, self.newer
        if newer is None or older.last is None or older.performed != newer.performed:
            return
        wording = worded_differently(older.last, answer, older.directory, newer.directory)
        if wording is None:
            return
        operations = self._operations()
        known = self.found.get(wording.pattern)
        if known is None or len(operations) < len(known[1]):
            self.found[wording.pattern] = wording, tuple(operations)


def worded_differently(old: Any, new: Any, old_directory: Path, new_directory: Path) -> Wording | None:
    """Both texts if two observations are the same refusal in other words."""
    mine, theirs = old.outcome, new.outcome
    if mine.error is None or mine.error != theirs.error or mine.text is None or theirs.text is None:
        return None
    if mine.text == theirs.text:
        return None
    wording = Wording(mine.error, _without(mine.text, old_directory), _without(theirs.text, new_directory))
    return None if wording.old == wording.new else wording


def _pattern(text: str) -> str:
    return _NUMBER.sub("N", _FILE.sub("FILE", text))


def _without(text: str, directory: Path) -> str:
    return _MODIFIED.sub("…", text.replace(f"{directory}/", "").replace(str(directory), ""))


def shortened(
    old: Performer, new: Performer, operations: Sequence[Operation], pattern: Pattern
) -> tuple[tuple[Operation, ...], tuple[Wording, Stakes]] | None:
    """A shorter example of a change, with its texts and what is at stake; None if it cannot be seen again."""

    def still(candidate: Sequence[Operation]) -> tuple[Wording, Stakes] | None:
        mine, theirs = old.perform(candidate), new.perform(candidate)
        if not len(mine.observations) == len(theirs.observations) == len(candidate):
            return None
        before, after = mine.observations[-1], theirs.observations[-1]
        if before is None or after is None:
            return None
        wording = worded_differently(before, after, old.directory, new.directory)
        if wording is None or wording.pattern != pattern:
            return None
        return wording, stakes_of(old.release, new.release, mine.clauses[-1], theirs.clauses[-1])

    found = shrink(operations, still, seconds=_SECONDS)
    return None if found is None else (found.operations, found.shown)
