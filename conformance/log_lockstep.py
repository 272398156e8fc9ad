"""Lockstep one level up: all parties keep a log in a directory of their own, and every file of it is compared.

As in :mod:`conformance.lockstep`, a *subject* must have its reference's outcome, state and bytes after every operation.
Two releases share a reference if no column and no property of their dialects tells them apart.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import fields
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.attribution.log import clauses_of_log_step
from conformance.implementations.reference_log import ReferenceLog
from conformance.lockstep import Divergence, DivergenceError, Tally
from conformance.log_operations import LOG_SIGNATURES, TOPIC_DIRECTORY, LogObservation
from conformance.operations import OK, Operation
from conformance.watched_file import damage
from kidx.dialect import DIALECTS, Dialect, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.implementations.jvm.log import JvmLog

    Party = JvmLog | ReferenceLog

COMPARED = (".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint")
"""The files whose names and bytes are compared; producer snapshots are left out."""

Files = dict[str, bytes]


def rules_of(dialect: Dialect) -> tuple[object, ...]:
    """Everything that a dialect says, without the number of the release."""
    derived = (name for name, value in vars(Dialect).items() if isinstance(value, property | cached_property))
    names = {*derived, *(column.name for column in fields(Dialect))} - {"release", "version"}
    return tuple(getattr(dialect, name) for name in sorted(names))


@cache
def representative(release: str) -> str:
    """The oldest release with the same rules: what a log's tally is kept under."""
    wanted = rules_of(dialect_of(release))
    return next(other for other, dialect in DIALECTS.items() if rules_of(dialect) == wanted)


class LogTally(Tally):
    """What a log lockstep has done since it was made."""

    def exercised(self, release: str) -> Counter[str]:
        """How many steps exercised each clause, in the dialect of a release."""
        return self.clauses.get(representative(release), Counter())


class _Member:
    def __init__(self, implementation: Party, directory: Path) -> None:
        self.implementation = implementation
        self.directory = directory
        self.active = True

    def begin(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.implementation.begin(self.directory)
        self.active = True

    def end(self) -> None:
        self.implementation.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def files(self) -> Files:
        """Name and content of every file that is compared."""
        found = {}
        try:
            with os.scandir(self.directory / TOPIC_DIRECTORY) as entries:
                for entry in entries:
                    if entry.name.endswith(COMPARED):
                        descriptor = os.open(entry.path, os.O_RDONLY)
                        found[entry.name] = os.read(descriptor, 1 << 24)
                        os.close(descriptor)
        except FileNotFoundError:
            return {}
        return found


class LogGroup:
    """The subjects of one set of rules, and the reference they are held to."""

    def __init__(self, release: str, subjects: list[_Member], directory: Path) -> None:
        self.dialect = dialect_of(release)
        self.reference = _Member(ReferenceLog(release), directory / f"kidx-{release}")
        self.subjects = subjects
        self.observation = LogObservation(OK, None)
        self.files: Files = {}


class LogLockstep:
    """A set of parties that perform operations on logs together.

    Args:
        subjects: the implementations under test; each is held to the dialect of its own release.
        scratch: an empty directory for their files, best in memory.
        releases: dialects to run the reference in even without a subject.
        excuse: decides about a difference: True lets the party leave the example, False raises.
    """

    def __init__(
        self,
        subjects: Iterable[JvmLog],
        scratch: Path,
        *,
        releases: Iterable[str] = (),
        excuse: Callable[[Divergence], bool] = lambda _: False,
    ) -> None:
        self.excuse = excuse
        self.tally = LogTally()
        self.operations: list[Operation] = []
        self.failure: DivergenceError | None = None
        members = [_Member(subject, scratch / str(number)) for number, subject in enumerate(subjects)]
        by_rules: dict[tuple[object, ...], tuple[str, list[_Member]]] = {}
        for release in releases:
            by_rules.setdefault(rules_of(dialect_of(release)), (release, []))
        for member in members:
            release = member.implementation.release
            by_rules.setdefault(rules_of(dialect_of(release)), (release, []))[1].append(member)
        groups = [LogGroup(release, subjects, scratch) for release, subjects in by_rules.values()]
        self.groups = sorted(groups, key=lambda group: group.dialect.version)
        self._members = [*members, *(group.reference for group in self.groups)]
        for group in self.groups:
            self.tally.clauses[representative(group.dialect.release)] = Counter()

    @property
    def primary(self) -> LogGroup:
        """The group that strategies look at: the newest dialect."""
        return self.groups[-1]

    def supports(self, operation: str) -> bool:
        """Whether every party has an operation of that name."""
        return operation in LOG_SIGNATURES

    def begin(self) -> None:
        """Starts an example: every party in its empty directory."""
        self.operations = []
        self.tally.examples += 1
        for member in self._members:
            member.begin()
        for group in self.groups:
            group.observation, group.files = LogObservation(OK, None), {}

    def end(self) -> None:
        """Ends the example and removes its files."""
        for member in self._members:
            member.end()

    def perform(self, operation: Operation) -> LogObservation:
        """One step of everybody; what came of it in the newest dialect's reference.

        Raises:
            DivergenceError: somebody differs, and it counts.
        """
        self.operations.append(operation)
        self.tally.steps += 1
        for group in self.groups:
            self._step(group, operation)
        return self.primary.observation

    def _step(self, group: LogGroup, operation: Operation) -> None:
        if operation.name == "damage_log_file":
            path, how, arguments = operation.args
            for member in (group.reference, *group.subjects):
                damage(member.directory / TOPIC_DIRECTORY / path, how, tuple(arguments))
            group.files = group.reference.files()
            return
        before = group.observation.state
        group.observation = expected = group.reference.implementation.perform(operation)
        group.files = files = group.reference.files()
        clauses = clauses_of_log_step(operation, group.dialect, before, expected)
        counts = self.tally.clauses[representative(group.dialect.release)]
        for clause in clauses:
            counts[clause] += 1
        for subject in group.subjects:
            if subject.active:
                self._hold(subject, operation, expected, files, clauses)

    def _hold(
        self, member: _Member, operation: Operation, expected: LogObservation, files: Files, clauses: Sequence[str]
    ) -> None:
        actual = member.implementation.perform(operation)
        content = member.files()
        pairs: dict[str, tuple[Any, Any]] = {
            "outcome": (expected.outcome[:2], actual.outcome[:2]),
            "state": (expected.state, actual.state),
            "bytes": (files, content),
        }
        different = tuple(aspect for aspect, (mine, theirs) in pairs.items() if mine != theirs)
        if not different:
            return
        mine, theirs = pairs[different[0]]
        if different[0] == "bytes":
            mine, theirs = _only_different(mine, theirs)
        release = member.implementation.release
        divergence = Divergence(
            len(self.operations) - 1,
            operation,
            member.implementation.name,
            release,
            "kidx",
            different,
            mine,
            theirs,
            tuple(clauses),
        )
        if self.excuse(divergence):
            member.active = False
            for clause in clauses:
                self.tally.dropped[member.implementation.name, clause] += 1
            return
        self.failure = DivergenceError(divergence, self.operations)
        raise self.failure


def _only_different(mine: Files, theirs: Files) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    names = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    return tuple((name, mine.get(name)) for name in names), tuple((name, theirs.get(name)) for name in names)
