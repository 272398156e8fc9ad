"""What the locksteps over segments and over logs share: parties with several files, grouped by how they behave.

As in :mod:`conformance.lockstep`, a *subject* must have its reference's outcome, state and bytes after every operation.
Subjects whose dialects behave alike share one reference. A subclass says which dialects do, what a party's files are,
how one is damaged, and which clauses a step exercises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from conformance.implementations.replies import OUT_OF_MEMORY
from conformance.lockstep.divergence import Divergence, DivergenceError, Tally
from conformance.lockstep.participant import Party
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from conformance.implementations.protocol import Implementation
    from conformance.operations import Operation


class FilesTally(Tally):
    """What such a lockstep has done since it was made; clauses are counted under ``key`` of a release."""

    def __init__(self, key: Callable[[str], str]) -> None:
        super().__init__()
        self._key = key

    def exercised(self, release: str) -> Counter[str]:
        """How many steps exercised each clause, in the dialect of a release."""
        return self.clauses.get(self._key(release), Counter())


PartyType = TypeVar("PartyType", bound=Party)


class FilesGroup(Generic[PartyType]):
    """The subjects whose dialects behave alike, with the reference that they are held to.

    Attributes:
        observation: what came of the last step in the reference, and ``files``: what its files were after it.
    """

    nothing: ClassVar[Any]
    """The observation before the first step."""
    no_files: ClassVar[Any]
    """The files of an empty directory."""

    def __init__(self, release: str, reference: PartyType, subjects: list[PartyType]) -> None:
        self.dialect = dialect_of(release)
        self.reference = reference
        self.subjects = subjects
        self.observation: Any = self.nothing
        self.files: Any = self.no_files

    def begin(self) -> None:
        """Starts an example."""
        self.observation, self.files = self.nothing, self.no_files

    def parties(self) -> Iterator[PartyType]:
        """The reference and every subject."""
        yield self.reference
        yield from self.subjects


def fleets_of(parties: Iterable[Any]) -> list[Any]:
    """Who can be driven together is: from now on a party is only asked what came of it."""
    kinds: dict[Callable[..., Any], list[Any]] = {}
    for party in parties:
        kind = getattr(party.implementation, "fleet", None)
        if kind is not None:
            kinds.setdefault(kind, []).append(party)
    fleets = []
    for kind, members in kinds.items():
        fleet = kind([member.implementation for member in members])
        for member in members:
            member.perform = member.implementation.observation
        fleets.append(fleet)
    return fleets


GroupType = TypeVar("GroupType", bound=FilesGroup[Any])


class FilesLockstep(ABC, Generic[PartyType, GroupType]):
    """A set of parties that perform operations together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: True lets the party leave the example, False raises.
        attribute: count which clauses the steps exercise.

    Attributes:
        stays: whether a party goes on with the example after a difference that is excused; by default none does.
    """

    damaging: ClassVar[str]
    """The operation that the harness performs itself, on a file that nobody has open."""
    aspects: ClassVar[tuple[str, ...]] = ("outcome", "state", "bytes")
    """What is compared, in the order in which it is told."""

    def __init__(
        self,
        subjects: Iterable[Any],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], bool] = lambda _: False,
        attribute: bool = True,
    ) -> None:
        self.excuse = excuse
        self.attribute = attribute
        self.stays: Callable[[Divergence], bool] = lambda _: False
        self.tally: Tally = FilesTally(self.key)
        self.operations: list[Operation] = []
        self.failure: DivergenceError | None = None
        parties = [self.party(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        alike: dict[Hashable, tuple[str, list[PartyType]]] = {}
        for release in releases:
            alike.setdefault(self.rules(release), (release, []))
        for party in parties:
            release = party.implementation.release
            alike.setdefault(self.rules(release), (release, []))[1].append(party)
        oldest_first = sorted(alike.values(), key=lambda pair: dialect_of(pair[0]).version)
        self.groups = [self.group(release, members, scratch / f"kidx-{release}") for release, members in oldest_first]
        self._parties = [*parties, *(group.reference for group in self.groups)]
        self._fleets = fleets_of(parties)
        self._counts: list[Counter[str]] = [Counter() for _ in self.groups]
        for group, counts in zip(self.groups, self._counts, strict=True):
            self.tally.clauses[self.key(group.dialect.release)] = counts

    # -- what a subclass says ----------------------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def rules(release: str) -> Hashable:
        """What makes two releases' dialects alike here."""

    @staticmethod
    @abstractmethod
    def key(release: str) -> str:
        """A name for :meth:`rules`."""

    @staticmethod
    def state_word(state: Any) -> str:
        """The state before a step in one or two words, for the histogram of a run."""
        return "closed" if state is None else "open"

    @abstractmethod
    def party(self, implementation: Any, directory: Path) -> PartyType:
        """An implementation with its files."""

    @abstractmethod
    def group(self, release: str, subjects: list[PartyType], directory: Path) -> GroupType:
        """Subjects with their reference, which works in ``directory``."""

    @abstractmethod
    def damage(self, group: GroupType, arguments: Sequence[Any]) -> None:
        """Damages a file of every party of a group."""

    @abstractmethod
    def clauses_of(self, group: GroupType, operation: Operation, observation: Any, files: Any) -> tuple[str, ...]:
        """The clauses of a step; the group is as it was before, ``observation`` and ``files`` are what came of it."""

    def prepare(self, operation: Operation) -> None:
        """Told of every operation before anybody performs it."""

    # -- the parties -------------------------------------------------------------------------------------------

    @property
    def primary(self) -> GroupType:
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
                    self._fleets = fleets_of(self._parties)
                    return True
        return False

    def leave(self, name: str) -> None:
        """Lets a party leave the example that has just begun."""
        for party in self._parties:
            if party.implementation.name == name:
                party.active = False

    def supports(self, operation: str) -> bool:
        """Whether every party has an operation of that name."""
        return all(party.implementation.supports(operation) for party in self._parties)

    # -- an example --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Starts an example: every party in its empty directory."""
        self.operations = []
        self.tally.examples += 1
        for party in self._parties:
            party.begin()
        for group in self.groups:
            group.begin()

    def end(self) -> None:
        """Ends the example and removes its files."""
        for party in self._parties:
            party.end()

    def settle(self) -> None:
        """Returns when everybody has performed every step: here nobody is ever behind."""

    def perform(self, operation: Operation) -> Any:
        """One step of everybody.

        Returns:
            What came of it in the newest dialect's reference.

        Raises:
            DivergenceError: somebody differs, and it counts.
        """
        self.operations.append(operation)
        self.tally.steps += 1
        self.prepare(operation)
        if operation.name == self.damaging:
            for group in self.groups:
                self.damage(group, operation.args)
                group.files = group.reference.read()
            return self.groups[-1].observation
        for fleet in self._fleets:
            fleet.start(operation)
        try:
            steps = zip(self.groups, self._counts, strict=True)
            clauses = [self._step(group, operation, counts) for group, counts in steps]
        finally:
            for fleet in self._fleets:
                fleet.finish()
        for group, exercised in zip(self.groups, clauses, strict=True):
            for subject in group.subjects:
                if subject.active:
                    self._hold(subject, operation, group.observation, group.files, exercised)
        return self.groups[-1].observation

    def _step(self, group: GroupType, operation: Operation, counts: Counter[str]) -> tuple[str, ...]:
        """The reference's step; returns the clauses that it exercises."""
        observation = group.reference.perform(operation)
        files = group.reference.read()
        clauses: tuple[str, ...] = ()
        if self.attribute:
            clauses = self.clauses_of(group, operation, observation, files)
            counts.update(clauses)
            if group is self.groups[-1]:
                before = self.state_word(group.observation.state)
                self.tally.cells[operation.name, before, observation.outcome.error] += 1
        group.observation, group.files = observation, files
        return clauses

    def _hold(
        self, party: PartyType, operation: Operation, expected: Any, files: Any, clauses: tuple[str, ...]
    ) -> None:
        actual = party.perform(operation)
        contents = party.read()
        if actual == expected and contents == files:
            return
        if actual.outcome.error == OUT_OF_MEMORY:
            self.tally.out_of_memory[party.implementation.name, operation.name] += 1
            party.active = False
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
        self._diverged(party, operation, {aspect: pairs[aspect] for aspect in self.aspects}, clauses)

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
        self, party: PartyType, operation: Operation, pairs: dict[str, tuple[Any, Any]], clauses: tuple[str, ...]
    ) -> None:
        different = {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}
        if not different:
            return
        expected, actual = next(iter(different.values()))
        if isinstance(expected, dict):
            expected, actual = only_different(expected, actual)
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
            party.active = self.stays(divergence)
            for clause in clauses:
                self.tally.dropped[party.implementation.name, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations)
        raise self.failure


def only_different(mine: dict[str, bytes], theirs: dict[str, bytes]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Of two directories, name and content of the files that are not the same; None for one that is missing."""
    names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    return tuple((name, mine.get(name)) for name in names), tuple((name, theirs.get(name)) for name in names)
