"""Lockstep over segments: every party performs the same operation, and its four files are compared after each.

The same idea as :mod:`conformance.lockstep`, with other things to look at: a *subject* must have the reference's
outcome, what it remembers, and the bytes of its ``.log``, ``.index``, ``.timeindex`` and ``.txnindex``. Subjects whose
dialects behave alike share one reference.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.attribution.segment import SegmentSituation, segment_clauses_of
from conformance.implementations.reference_segment import ReferenceSegment
from conformance.lockstep import Divergence, DivergenceError, Tally
from conformance.operations import OK, Operation
from conformance.segment_operations import SUFFIXES, SegmentObservation
from conformance.watched_file import WatchedFile, damage
from kidx.dialect import dialect_of
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation

Files = tuple[bytes | None, ...]
"""The contents in the order of :data:`SUFFIXES`; None for a file that does not exist."""


class SegmentTally(Tally):
    """What a segment lockstep has done since it was made."""

    def exercised(self, release: str) -> Counter[str]:
        """How many steps exercised each clause, in the dialect of a release."""
        return self.clauses.get(dialect_of(release).segment_rules, Counter())


class SegmentParty:
    """An implementation, its directory, and the four files it works on."""

    __slots__ = ("active", "directory", "files", "implementation", "perform", "prefix")

    def __init__(self, implementation: Any, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.implementation = implementation
        self.perform: Callable[[Operation], SegmentObservation] = implementation.perform
        self.directory = directory
        self.prefix = f"{directory}/"
        self.files = tuple(WatchedFile() for _ in SUFFIXES)
        self.active = True

    def begin(self) -> None:
        """Starts an example."""
        self.implementation.begin(self.directory)
        self.active = True

    def end(self) -> None:
        """Ends it and removes its files."""
        self.implementation.end()
        for file in self.files:
            file.release()
        for left_over in self.listing():
            os.unlink(self.prefix + left_over)  # noqa: PTH108 -- every example of every party comes by here

    def watch(self, base_offset: int, suffix: str) -> None:
        """Looks at the files of a segment from now on."""
        for file, kind in zip(self.files, SUFFIXES, strict=True):
            file.watch(self.prefix + file_name(base_offset, kind) + suffix)

    def read(self) -> Files:
        """What is in the files right now."""
        return tuple(file.read() for file in self.files)

    def listing(self) -> list[str]:
        """Names of all files in its directory."""
        return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above


class SegmentGroup:
    """The subjects whose dialects behave alike, with the reference that they are held to."""

    def __init__(self, release: str, subjects: list[SegmentParty], directory: Path) -> None:
        self.dialect = dialect_of(release)
        self.reference = SegmentParty(ReferenceSegment(release), directory / f"kidx-{release}")
        self.subjects = subjects
        self.situation = SegmentSituation(release)
        self.observation = SegmentObservation(OK, None)
        self.files: Files = (None,) * len(SUFFIXES)


class SegmentLockstep:
    """A set of parties that perform operations on segments together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: True lets the party leave the example, False raises.
        attribute: count which clauses the steps exercise.
    """

    def __init__(
        self,
        subjects: Iterable[Implementation],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], bool] = lambda _: False,
        attribute: bool = True,
    ) -> None:
        self.excuse = excuse
        self.attribute = attribute
        self.tally = SegmentTally()
        self.operations: list[Operation] = []
        self.failure: DivergenceError | None = None
        parties = [SegmentParty(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        alike: dict[str, tuple[str, list[SegmentParty]]] = {dialect_of(r).segment_rules: (r, []) for r in releases}
        for party in parties:
            release = party.implementation.release
            alike.setdefault(dialect_of(release).segment_rules, (release, []))[1].append(party)
        oldest_first = sorted(alike.values(), key=lambda pair: dialect_of(pair[0]).version)
        self.groups = [SegmentGroup(release, members, scratch) for release, members in oldest_first]
        self._parties = [*parties, *(group.reference for group in self.groups)]
        for group in self.groups:
            self.tally.clauses[group.dialect.segment_rules] = Counter()
        self._base_offset = 0
        self._suffix = ""

    @property
    def primary(self) -> SegmentGroup:
        """The group that strategies look at: the newest dialect."""
        return self.groups[-1]

    @property
    def subjects(self) -> list[Implementation]:
        """The implementations under test that have not been retired."""
        return [party.implementation for group in self.groups for party in group.subjects]

    def retire(self, name: str) -> bool:
        """Takes an implementation out for good, after it has diverged; False if there is none of that name."""
        for group in self.groups:
            for party in group.subjects:
                if party.implementation.name == name:
                    party.end()
                    group.subjects.remove(party)
                    self._parties.remove(party)
                    return True
        return False

    def supports(self, operation: str) -> bool:
        """Whether every party has an operation of that name."""
        return all(party.implementation.supports(operation) for party in self._parties)

    def begin(self) -> None:
        """Starts an example: every party in its empty directory."""
        self.operations = []
        self.tally.examples += 1
        for party in self._parties:
            party.begin()
        for group in self.groups:
            group.situation.begin()
            group.observation = SegmentObservation(OK, None)
            group.files = (None,) * len(SUFFIXES)

    def end(self) -> None:
        """Ends the example and removes its files."""
        for party in self._parties:
            party.end()

    def perform(self, operation: Operation) -> SegmentObservation:
        """One step of everybody.

        Returns:
            What came of it in the newest dialect's reference.

        Raises:
            DivergenceError: somebody differs, and it counts.
        """
        self.operations.append(operation)
        self.tally.steps += 1
        if operation.name == "open_segment":
            self._watch(operation.args[0], operation.args[7])
        elif operation.name == "rename_segment":
            old, new = operation.args
            self._watch(self._base_offset, self._suffix.removesuffix(old) + new)
        for group in self.groups:
            if operation.name == "damage_segment_file":
                self._damage(group, *operation.args)
            else:
                self._step(group, operation)
        return self.groups[-1].observation

    def _watch(self, base_offset: int, suffix: str) -> None:
        self._base_offset, self._suffix = base_offset, suffix
        for party in self._parties:
            party.watch(base_offset, suffix)

    def _damage(self, group: SegmentGroup, kind: str, how: str, arguments: tuple[int, ...]) -> None:
        for party in (group.reference, *group.subjects):
            damage(party.directory / (file_name(self._base_offset, kind) + self._suffix), how, tuple(arguments))
        group.files = group.reference.read()
        group.situation.damaged.add(kind)

    def _step(self, group: SegmentGroup, operation: Operation) -> None:
        before = group.files
        observation = group.reference.perform(operation)
        group.files = files = group.reference.read()
        group.observation = observation
        clauses: tuple[str, ...] = ()
        if self.attribute:
            clauses = segment_clauses_of(operation, group.situation, observation, before, files)
            counts = self.tally.clauses[group.dialect.segment_rules]
            for clause in clauses:
                counts[clause] += 1
        group.situation.follow(operation, observation)
        for subject in group.subjects:
            if subject.active:
                self._hold(subject, operation, observation, files, clauses)

    def _hold(
        self,
        party: SegmentParty,
        operation: Operation,
        expected: SegmentObservation,
        files: Files,
        clauses: tuple[str, ...],
    ) -> None:
        actual = party.perform(operation)
        contents = party.read()
        if actual == expected and contents == files:
            return
        if actual.outcome.error == "unsupported":
            self.tally.unsupported[party.implementation.name, operation.name] += 1
            party.active = False
            return
        mine, theirs = expected.outcome, actual.outcome
        pairs = {
            "outcome": (mine[:2], theirs[:2]),
            "text": (mine.text, theirs.text) if party.implementation.speaks_kafka else (None, None),
            "state": (expected.state, actual.state),
            "bytes": (files, contents),
        }
        self._diverged(party, operation, pairs, clauses)

    def compare_directories(self) -> None:
        """Every party has the same files, and no others.

        Raises:
            DivergenceError: a party has left something behind, or lost something.
        """
        for group in self.groups:
            expected = group.reference.listing()
            for party in group.subjects:
                if party.active and (actual := party.listing()) != expected:
                    self._diverged(party, self.operations[-1], {"bytes": (expected, actual)}, ())

    def _diverged(
        self, party: SegmentParty, operation: Operation, pairs: dict[str, tuple[Any, Any]], clauses: tuple[str, ...]
    ) -> None:
        different = {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}
        if not different:
            return
        expected, actual = next(iter(different.values()))
        divergence = Divergence(
            len(self.operations) - 1,
            operation,
            party.implementation.name,
            party.implementation.release,
            "kidx",
            tuple(different),
            expected,
            actual,
            clauses,
        )
        if self.excuse(divergence):
            party.active = False
            for clause in clauses:
                self.tally.dropped[party.implementation.name, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations)
        raise self.failure
