"""Lockstep: every party performs the same operation before the next one starts, and all must agree.

The parties are the *subjects* (implementations under test), for each dialect among them one *reference* (kidx) and
for each dialect one abstract *model* where it is defined. After every operation a subject must have the reference's
outcome, state and bytes on disk; the reference must have the model's.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.attribution import Situation, clauses_of, is_observed_only
from conformance.implementations.model import UNKNOWN, Model
from conformance.implementations.reference import ReferenceIndex
from conformance.implementations.replies import FAILURE
from conformance.operations import FILE_OPERATIONS, OK, Observation, Operation, Outcome
from conformance.power.coverage import CellKey, state_of_index
from conformance.watched_file import WatchedFile, damaged, overwrite
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.implementations.protocol import Fleet, Implementation


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference: who, at which step, in what.

    Attributes:
        step: 0-based index into the trace.
        operation: the operation of that step.
        party: name of the implementation that differs, e.g. ``"jvm 3.9.2"``.
        release: the release whose dialect it was held to.
        against: ``"kidx"``, or ``"model"`` if it is the reference that differs.
        aspects: which of ``"outcome"``, ``"text"``, ``"state"`` and ``"bytes"`` differ, in this order.
        expected: what the other side says of the first of them, and ``actual``: what the party says.
        clauses: ids of the clauses that the step exercises.
    """

    step: int
    operation: Operation
    party: str
    release: str
    against: str
    aspects: tuple[str, ...]
    expected: Any
    actual: Any
    clauses: tuple[str, ...]

    @property
    def is_failure(self) -> bool:
        """Whether somebody's program has crashed, was late or talked nonsense, which nothing can excuse."""
        return isinstance(self.actual, Outcome) and self.actual.error == FAILURE

    @property
    def observed_only(self) -> bool:
        """Whether only behaviour is at stake that nobody has to copy (``--level must``)."""
        return is_observed_only(self.clauses, self.aspects)


class DivergenceError(AssertionError):
    """Raised at the first difference that counts; carries it, and the trace up to it."""

    def __init__(self, divergence: Divergence, operations: Sequence[Operation]) -> None:
        super().__init__(f"{divergence.party} diverges at step {divergence.step + 1}, {divergence.operation}")
        self.divergence = divergence
        self.operations = tuple(operations)


@dataclass(slots=True)
class Tally:
    """What a lockstep has done since it was made."""

    examples: int = 0
    steps: int = 0
    clauses: dict[str, Counter[str]] = field(default_factory=dict)
    """For each set of index rules (X1 …): how many steps exercised a clause."""
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(party, clause): divergences that were expected, or left out of the verdict."""
    unsupported: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(party, operation): what an implementation does not have."""
    cells: Counter[CellKey] = field(default_factory=Counter)
    """(operation, state before it, error): what the newest dialect's reference went through."""

    def exercised(self, release: str) -> Counter[str]:
        """How many steps exercised each clause, in the dialect of a release."""
        return self.clauses.get(dialect_of(release).index_rules, Counter())


class _Party:
    """An implementation, its directory, and the file it works on."""

    __slots__ = ("active", "directory", "file", "fleet", "implementation", "perform", "prefix")

    def __init__(self, implementation: Any, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.implementation = implementation
        self.perform = implementation.perform
        self.directory = directory
        self.prefix = f"{directory}/"
        self.file = WatchedFile()
        self.fleet: Fleet | None = None
        self.active = True

    def begin(self) -> None:
        self.implementation.begin(self.directory)
        self.active = True

    def end(self) -> None:
        self.implementation.end()
        self.file.release()
        for left_over in self.listing():
            try:
                os.unlink(self.prefix + left_over)  # noqa: PTH108 -- every example of every party comes by here
            except IsADirectoryError:  # nothing of ours, so somebody's program has made it
                shutil.rmtree(self.prefix + left_over)

    def listing(self) -> list[str]:
        return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above


def fleets_of(parties: Iterable[Any]) -> list[Any]:
    """Who can be driven together is, and knows it from now on."""
    kinds: dict[Callable[..., Any], list[Any]] = {}
    for party in parties:
        kind = getattr(party.implementation, "fleet", None)
        if kind is not None:
            kinds.setdefault(kind, []).append(party)
    fleets = []
    for kind, members in kinds.items():
        fleet = kind([member.implementation for member in members])
        for member in members:
            member.fleet = fleet
            member.perform = member.implementation.observation
        fleets.append(fleet)
    return fleets


class _Group:
    """The subjects of one dialect with the reference and the model they are held to."""

    def __init__(self, release: str, subjects: list[_Party], directory: Path, *, model: bool) -> None:
        self.dialect = dialect_of(release)
        self.reference = _Party(ReferenceIndex(release), directory / f"kidx-{self.dialect.index_rules}")
        self.model = Model(release) if model else None
        self.subjects = subjects
        self.situation = Situation(release)
        self.exercised: Counter[str] = Counter()
        self.observation = Observation(OK, None)
        self.file: bytes | None = None


_NAMING = {"open": 1, "rename": 0}
"""Operations after which another file is looked at, and which argument names it."""


class Lockstep:
    """A set of parties that perform operations together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: True lets the party leave the example, False raises.
        attribute: count which clauses the steps exercise.
        model: hold the reference to the abstract model.
    """

    def __init__(
        self,
        subjects: Iterable[Implementation],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], bool] = lambda _: False,
        attribute: bool = True,
        model: bool = True,
    ) -> None:
        self.excuse = excuse
        self.attribute = attribute
        self.tally = Tally()
        self.operations: list[Operation] = []
        self.failure: DivergenceError | None = None
        self._failed = False
        parties = [_Party(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        by_dialect: dict[str, tuple[str, list[_Party]]] = {dialect_of(r).index_rules: (r, []) for r in releases}
        for party in parties:
            release = party.implementation.release
            by_dialect.setdefault(dialect_of(release).index_rules, (release, []))[1].append(party)
        self.groups = [
            _Group(release, members, scratch, model=model) for _, (release, members) in sorted(by_dialect.items())
        ]
        self._parties = [*parties, *(group.reference for group in self.groups)]
        self._fleets = fleets_of(parties)
        for group in self.groups:
            self.tally.clauses[group.dialect.index_rules] = group.exercised
        self._name = ""

    @property
    def primary(self) -> _Group:
        """The group that strategies look at: the newest dialect."""
        return self.groups[-1]

    @property
    def subjects(self) -> list[Implementation]:
        """The implementations under test that have not been retired."""
        return [party.implementation for group in self.groups for party in group.subjects]

    def retire(self, name: str) -> bool:
        """Takes an implementation out for good, after it has diverged.

        Returns:
            False if it is the reference: nobody can be held to it any more.
        """
        for group in self.groups:
            for party in group.subjects:
                if party.implementation.name == name:
                    party.end()
                    group.subjects.remove(party)
                    self._parties.remove(party)
                    self._fleets = fleets_of(self._parties)
                    return True
        return False

    def supports(self, operation: str) -> bool:
        """Whether every party has an operation of that name."""
        return operation in FILE_OPERATIONS or all(p.implementation.supports(operation) for p in self._parties)

    def begin(self) -> None:
        """Starts an example: every party in its empty directory."""
        self.operations = []
        self._name = ""
        self._failed = False
        self.tally.examples += 1
        for party in self._parties:
            party.begin()
        for group in self.groups:
            if group.model is not None:
                group.model.begin()
            group.situation.begin()
            group.observation = Observation(OK, None)
            group.file = None

    def end(self) -> None:
        """Ends the example and removes its files.

        Raises:
            DivergenceError: somebody's program has failed when its index was closed because the example was over.
        """
        for party in self._parties:
            party.end()
        for party in self._parties:
            told: list[str] = getattr(party.implementation, "failures_between_examples", [])
            if told:
                text = told[-1]
                told.clear()
                if not self._failed:
                    # As a step of its own it comes again in a replay.
                    self.operations.append(Operation("close"))
                    pairs = {"outcome": (OK[:2], Outcome(FAILURE, None, text))}
                    self._diverged(party, self.operations[-1], "kidx", pairs, ())

    def perform(self, operation: Operation) -> Observation:
        """One step of everybody.

        Returns:
            What came of it in the newest dialect's reference.

        Raises:
            DivergenceError: somebody differs, and it counts.
        """
        self.operations.append(operation)
        self.tally.steps += 1
        name = operation.name
        before = self._name
        if name in _NAMING:
            self._watch(operation.args[_NAMING[name]])
            if name == "open" and self._name != before:
                for group in self.groups:
                    group.file = group.reference.file.read()
        if name in FILE_OPERATIONS:
            for group in self.groups:
                self._damage(group, operation, before)
            return self.groups[-1].observation
        for fleet in self._fleets:
            fleet.start(operation)
        try:
            clauses = [self._refer(group, operation) for group in self.groups]
        finally:
            for fleet in self._fleets:
                fleet.finish()
        for group, ids in zip(self.groups, clauses, strict=True):
            self._hold_subjects(group, operation, ids)
        return self.groups[-1].observation

    def _watch(self, name: str) -> None:
        self._name = name
        for party in self._parties:
            party.file.watch(party.prefix + name)

    def _refer(self, group: _Group, operation: Operation) -> tuple[str, ...]:
        """What the reference makes of an operation, held to the model; the clauses that this exercises."""
        reference = group.reference
        prediction = None if group.model is None else group.model.perform(operation, file_bytes=group.file)
        observation = reference.perform(operation)
        clauses: tuple[str, ...] = ()
        if self.attribute:
            situation = group.situation
            if operation.name == "open":
                situation.preexisting = group.file is not None
            clauses = clauses_of(operation, situation, observation)
            if group is self.groups[-1]:
                self.tally.cells[operation.name, state_of_index(situation), observation.outcome.error] += 1
            situation.follow(operation, observation)
            exercised = group.exercised
            for clause in clauses:
                exercised[clause] += 1
        group.file = reference.file.read()
        group.observation = observation
        if prediction is not None:
            self._hold_reference_to_model(group, operation, prediction, clauses)
        return clauses

    def _damage(self, group: _Group, operation: Operation, name: str) -> None:
        """Everybody's file is changed alike; they are all the same, as the step before has shown."""
        if group.model is not None:
            group.model.perform(operation)
        group.observation = Observation(OK, group.observation.state)
        group.situation.follow(operation, group.observation)
        if group.file is None and operation.name != "write_file":
            return
        group.file = damaged(group.file or b"", operation.name, operation.args)
        for party in (group.reference, *group.subjects):
            if party.active:
                overwrite(party.prefix + name, group.file)

    def _hold_subjects(self, group: _Group, operation: Operation, clauses: tuple[str, ...]) -> None:
        """Compares everybody with the reference; whoever answers in the very bytes that it would agrees with it."""
        expected, file = group.observation, group.file
        fleet, reply = None, None
        for subject in group.subjects:
            if not subject.active:
                continue
            if subject.fleet is not fleet:
                fleet = subject.fleet
                reply = None if fleet is None else fleet.packed(operation, expected)
            if reply is None or not subject.implementation.answers(reply) or subject.file.read() != file:
                self._hold(subject, operation, expected, file, clauses)

    def _hold(
        self, party: _Party, operation: Operation, expected: Observation, file: bytes | None, clauses: tuple[str, ...]
    ) -> None:
        actual = party.perform(operation)
        content = party.file.read()
        if actual == expected and content == file:
            return
        if actual.outcome.error == "unsupported":
            self.tally.unsupported[party.implementation.name, operation.name] += 1
            party.active = False
            return
        mine, theirs = expected.outcome, actual.outcome
        speaks_kafka = party.implementation.speaks_kafka
        pairs = {
            # What went wrong with somebody's program is told in the text of its failure.
            "outcome": (mine[:2], theirs if theirs.error == FAILURE else theirs[:2]),
            "text": (mine.text, theirs.text) if speaks_kafka else (None, None),
            # Who is not Kafka need not tell its state, of a closed index for instance; the file speaks for it.
            "state": (expected.state, actual.state if actual.state or speaks_kafka else expected.state),
            "bytes": (file, content),
        }
        self._diverged(party, operation, "kidx", pairs, clauses)

    def _hold_reference_to_model(
        self, group: _Group, operation: Operation, prediction: Any, clauses: tuple[str, ...]
    ) -> None:
        party, observation = group.reference, group.observation
        if (
            prediction.outcome[:2] == observation.outcome[:2]
            and (prediction.state is UNKNOWN or prediction.state == observation.state)
            and (prediction.file is UNKNOWN or prediction.file == group.file)
        ):
            return
        pairs = {
            "outcome": (prediction.outcome[:2], observation.outcome[:2]),
            "state": (prediction.state, observation.state if prediction.state is not UNKNOWN else UNKNOWN),
            "bytes": (prediction.file, group.file if prediction.file is not UNKNOWN else UNKNOWN),
        }
        self._diverged(party, operation, "model", pairs, clauses)

    def require(self, condition: bool, invariant: str, state: Any) -> None:
        """An invariant of the reference itself, in words.

        Raises:
            DivergenceError: it does not hold.
        """
        if not condition:
            reference = self.primary.reference
            self._diverged(reference, self.operations[-1], "model", {"state": (invariant, state)}, ())

    def compare_directories(self) -> None:
        """Every party has the same files, and no others.

        Raises:
            DivergenceError: a party has left something behind, or lost something.
        """
        for group in self.groups:
            expected = group.reference.listing()
            for party in group.subjects:
                if party.active and (actual := party.listing()) != expected:
                    self._diverged(party, self.operations[-1], "kidx", {"bytes": (expected, actual)}, ())

    def _diverged(
        self,
        party: _Party,
        operation: Operation,
        against: str,
        pairs: dict[str, tuple[Any, Any]],
        clauses: tuple[str, ...],
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
            against,
            tuple(different),
            expected,
            actual,
            clauses,
        )
        if against == "kidx" and not divergence.is_failure and self.excuse(divergence):
            party.active = False
            for clause in clauses:
                self.tally.dropped[party.implementation.name, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations)
        self._failed = True
        raise self.failure
