"""One machine looks for what separates two releases, in rounds, until nothing new turns up."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import seed as seeded
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from conformance.clauses import family
from conformance.errors import ToolError
from conformance.events import Progressed
from conformance.expectations import ExpectationTracker, load_expectations
from conformance.experiments.release_diff.performance import Performer, can_execute
from conformance.experiments.release_diff.stakes import separating
from conformance.experiments.release_diff.texts import TextCollector
from conformance.experiments.release_diff.watched import Watched
from conformance.lockstep import DivergenceError
from conformance.lockstep.decision import Decision, can_continue
from conformance.machines import MACHINES
from conformance.operations.state_diff import differing_fields
from conformance.runs.profiles import Profile, round_of
from conformance.runs.regression_traces import kept_traces
from conformance.runs.repeatable import without_local_constants
from conformance.runs.replay import perform_all
from conformance.runs.shrinking import shrink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.events import Sink
    from conformance.experiments.release_diff.sides import Side
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Operation

# The same seed every time: the answer to "what changed" is then the same every time, too.
PROFILE: Final = Profile("diff", examples=1_000, steps=30, seed=0)
LIVES: Final = (5, 10, *(PROFILE.steps,) * 4)
"""Rules in an example. A search goes on to the next number after a round in which nothing new turned up, and ends after
the last unless it is asked for more examples: most differences lie open in a life of five rules, which shrinks soonest;
what shows in one longer life of a hundred is found in 49 searches of 50."""
_SEED_OF_ROUND: Final = 1_000_003

Key = frozenset[str] | tuple[str, ...]
"""What makes two differences the same: the families of the clauses that separate the releases at that step; where no
clause does, the operation, the aspects and the kinds of outcome."""


Place = tuple[str, str, tuple[str, ...]]
"""Where a difference shows: machine, operation and aspects."""


class Sightings:
    """The places where one difference has shown, in the order they were met."""

    def __init__(self) -> None:
        self._places: dict[Place, None] = {}

    def add(self, machine: str, divergence: Divergence) -> None:
        """The difference has shown once more."""
        self._places[machine, divergence.operation.name, divergence.aspects] = None

    @property
    def places(self) -> tuple[Place, ...]:
        """All of them."""
        return tuple(self._places)


@dataclass(frozen=True)
class Found:
    """A new difference, shrunk.

    Attributes:
        key: what it is known by.
        divergence: how it shows at the last operation.
        operations: the shrunk trace.
        seed: the round's.
        unobserved: fields that are not compared from then on. A difference in nothing but the state would end every
            example in which it shows; without these fields the search goes on to what follows from it.
    """

    key: Key
    divergence: Divergence
    operations: tuple[Operation, ...]
    seed: int
    unobserved: tuple[str, ...]


class Search:
    """One machine, two sides.

    Args:
        machine: name of the machine.
        old: the side whose dialect counts. A build's classes are the reference: they may differ from kidx.
        new: the side whose classes are compared with it.
        known: what other machines have found already; added to.
        scratch: an empty directory.
        sink: called with progress.
        progress: called while jars are fetched.
    """

    def __init__(
        self,
        machine: str,
        old: Side,
        new: Side,
        known: dict[Key, Sightings],
        scratch: Path,
        sink: Sink,
        progress: Progress | None = None,
    ) -> None:
        self.name, self.old, self.new = machine, old.release, new.release
        self.known = known
        self.sink = sink
        kind = MACHINES[machine]
        self.control = Watched(kind.subject(old.specification, old.release, progress))
        self.texts = TextCollector(self.control, lambda: self.lockstep.operations)
        self.subject = self.texts.newer = Watched(
            kind.subject(new.specification, new.release, progress), old.release, self.texts
        )
        self.subject.beside = self.control
        self.performers = (
            Performer(machine, old, scratch / "old", progress),
            Performer(machine, new, scratch / "new", progress),
        )
        self.lockstep = kind.new_lockstep(
            [self.subject] if old.is_build else [self.control, self.subject],
            scratch / "both",
            releases=[old.release],
            on_divergence=self._judged,
        )
        if old.is_build:
            self.lockstep.replace_reference(self.control, scratch / "old-build")
        self._perform, self.lockstep.perform = self.lockstep.perform, self._perform_while_compared
        self.bound: Any = kind.bind(self.lockstep)
        self._ledger = ExpectationTracker(load_expectations())
        self._stops_at_all = False
        self._uncontrolled = -1
        self._left = -1
        self._first_new: int | None = None

    # -- what is known -----------------------------------------------------------------------------------------

    def _excused(self, divergence: Divergence) -> bool:
        """Whether a difference is known. Where the control has gone its own way, nothing can be said."""
        if self._stops_at_all:
            return False
        example = self.lockstep.statistics.examples
        if divergence.participant == self.control.name:
            self._uncontrolled = example
            return self._ledger.match(divergence.clauses, self.name, "jvm", self.old) is not None
        if self._uncontrolled == example:
            self._left = example
            return True
        sightings = self.known.get(self._key(divergence, self.lockstep.operations))
        if sightings is None:
            self._first_new = self._first_new or example
            return False
        sightings.add(self.name, divergence)
        return True

    def _judged(self, divergence: Divergence) -> Decision:
        """What becomes of a difference."""
        if not self._excused(divergence):
            return Decision.RAISE
        return Decision.CONTINUE if self._stays(divergence) else Decision.SKIP_EXAMPLE

    def _stays(self, divergence: Divergence) -> bool:
        """Whether the new side goes on after a difference that is known: one must not hide another."""
        if divergence.participant == self.control.name or self._left == self.lockstep.statistics.examples:
            return False
        if not can_continue(divergence):
            self._left = self.lockstep.statistics.examples
            return False
        return True

    def _perform_while_compared(self, operation: Operation) -> Any:
        """A step, unless the new side has left the example: then nothing is compared any more, and nothing is done."""
        if self._left == self.lockstep.statistics.examples:
            return self.lockstep.primary.observation
        return self._perform(operation)

    def _key(self, divergence: Divergence, operations: Sequence[Operation]) -> Key:
        clauses = separating(divergence.clauses, self.new)
        if not clauses:
            steps = self.performers[1].perform(operations).clauses
            if len(steps) == len(operations):
                clauses = separating(steps[-1], self.old)
        if clauses:
            return frozenset(map(family, clauses))
        kinds = [
            str(side[0]) for side in (divergence.expected, divergence.actual) if divergence.aspects[0] == "outcome"
        ]
        return (self.name, divergence.operation.name, *divergence.aspects, *kinds)

    # -- rounds ------------------------------------------------------------------------------------------------

    def run(self, wanted: int | None, seed: int, limit: float | None, *, kept: bool = True) -> list[Found]:
        """The traces that the package keeps, then rounds.

        Args:
            wanted: so many examples; by default a profile's, or fewer if nothing new turns up in lives of any length.
            seed: the same seed finds the same.
            limit: seconds; None for no limit. The kept traces and one round are performed all the same.
            kept: whether the kept traces are performed.

        Raises:
            ToolError: the old release's own classes differ from their reference, so that no comparison is possible.
        """
        started = time.monotonic()
        found = self._in_kept_traces(seed) if kept else []
        insists, wanted = wanted is not None, PROFILE.examples if wanted is None else wanted
        done = level = rounds = 0
        while done < wanted and (insists or level < len(LIVES)):
            if limit is not None and time.monotonic() - started >= limit and rounds:
                break
            planned = min(round_of(self.name), wanted - done)
            before = self.lockstep.statistics.examples
            life = LIVES[min(level, len(LIVES) - 1)]
            new = self._round(replace(PROFILE, steps=life), planned, seed + rounds * _SEED_OF_ROUND)
            rounds += 1
            if new is None:
                done, level = done + planned, level + 1
            else:
                found.append(new)
                done += max(1, min(planned, (self._first_new or 0) - before))
            share = done / wanted if insists else max(done / wanted, level / len(LIVES))
            self.sink(Progressed(self.name, self.lockstep.statistics.examples, self.lockstep.statistics.steps, share))
        return found

    def _in_kept_traces(self, seed: int) -> list[Found]:
        """What once told a wrong implementation from a right one is asked first; one trace may show several things."""
        found: list[Found] = []
        for trace in kept_traces(self.name):
            while True:
                self.lockstep.failure = None
                try:
                    perform_all(self.lockstep, trace.operations)
                except DivergenceError as failure:
                    found.append(self._new(failure, seed))
                else:
                    break
        return found

    def _round(self, profile: Profile, examples: int, seed: int) -> Found | None:
        """One run of Hypothesis: a new difference, or None."""
        self.lockstep.failure = None
        self._first_new = None
        try:
            with without_local_constants():
                run_state_machine_as_test(seeded(seed)(self.bound), settings=profile.settings(examples))
        except (DivergenceError, Flaky) as error:
            failure = self.lockstep.failure or error
            if not isinstance(failure, DivergenceError):
                raise
            return self._new(failure, seed)
        return None

    def _new(self, failure: DivergenceError, seed: int) -> Found:
        divergence = failure.divergence
        if divergence.participant != self.subject.name:
            against = "the abstract model" if divergence.against == "model" else "kidx"
            raise ToolError(
                f"{divergence.participant} itself diverges from {against} at {divergence.operation}: nothing can be "
                f"held to {self.old}; conformance run --kafka {self.old} --machine {self.name} shows it"
            )
        key = self._key(divergence, failure.operations)
        operations = failure.operations
        short = shrink(operations, lambda candidate: self._again(candidate, key))
        if short is not None:
            operations, divergence = short.operations, short.shown
        self.known.setdefault(key, Sightings()).add(self.name, divergence)
        unobserved: tuple[str, ...] = ()
        if divergence.aspects == ("state",):
            fields = differing_fields(divergence.expected, divergence.actual)
            unobserved = tuple(name for name, _, _ in fields if name)
            self.subject.unobserved.update(unobserved)
        return Found(key, divergence, operations, seed, unobserved)

    def _again(self, operations: Sequence[Operation], key: Key) -> Divergence | None:
        """The difference of that key, if the last of the operations shows it and none before differs in any way."""
        self._stops_at_all = True
        self.lockstep.begin()
        try:
            for operation in operations:
                if not can_execute(self.lockstep, operation):
                    return None
                self.lockstep.perform(operation)
        except DivergenceError as error:
            divergence = error.divergence
            ours = divergence.participant == self.subject.name and divergence.step == len(operations) - 1
            return divergence if ours and self._key(divergence, operations) == key else None
        finally:
            self.lockstep.end()
            self._stops_at_all = False
        return None
