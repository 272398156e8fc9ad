"""What changed between two releases: every machine searches, and what is found is performed by both for the record."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING

from conformance.experiments.release_diff.search import PROFILE, Search
from conformance.experiments.release_diff.sides import Side, side_of
from conformance.experiments.release_diff.stakes import nearest_stakes
from conformance.experiments.release_diff.texts import TextChange, shortened
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.events import Event, Sink
    from conformance.experiments.release_diff.performance import Performance
    from conformance.experiments.release_diff.search import Found, Key, Place, Sightings
    from conformance.experiments.release_diff.stakes import Stakes
    from conformance.experiments.release_diff.texts import Pattern, Wording
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Operation


@dataclass(frozen=True)
class Plan:
    """What is to be compared.

    Attributes:
        old: the release whose behaviour is the measure, or ``jvm:DIR``.
        new: the other one, or ``jvm:DIR``.
        machines: names of :data:`conformance.machines.MACHINES`.
        traces: where shrunk traces are written.
        seed: the same seed finds the same.
        max_examples: for each machine; by default a profile's, or fewer if nothing new turns up.
        max_time: seconds for everything; None for no limit.
        kept: whether the traces that the package keeps are performed first.
    """

    old: str
    new: str
    machines: tuple[str, ...]
    traces: Path
    seed: int = PROFILE.seed or 0
    max_examples: int | None = None
    max_time: float | None = None
    kept: bool = True

    @property
    def sides(self) -> tuple[Side, Side]:
        """The old one and the new one."""
        return side_of(self.old), side_of(self.new)


@dataclass(frozen=True)
class Difference:
    """One thing that two releases do differently.

    Attributes:
        machine: which machine found it.
        divergence: how the new release differs from the old one's reference, at the last of ``operations``.
        operations: the shrunk trace.
        stakes: the clauses that separate the releases there; none makes it a finding.
        old: what the old release made of the trace, and ``new``: what the new one did.
        trace: where it is kept.
        unobserved: fields of the state that the rest of the search did not compare.
        also: machine, operation and aspects of other steps in which the same difference showed.
        more: traces of those that showed it at a step that the clauses do not speak of.
    """

    machine: str
    divergence: Divergence
    operations: tuple[Operation, ...]
    stakes: Stakes
    old: Performance
    new: Performance
    trace: Path
    unobserved: tuple[str, ...]
    also: tuple[Place, ...] = ()
    more: tuple[Path, ...] = ()

    @property
    def place(self) -> Place:
        """Machine, operation and aspects of the step that differs."""
        return self.machine, self.divergence.operation.name, self.divergence.aspects


@dataclass(frozen=True)
class Comparison:
    """Everything that was found.

    Attributes:
        plan: what was asked.
        differences: in the order they were found.
        texts: the refusals that are worded differently.
        examples: how many were tried, and ``steps``: how many operations.
        seconds: how long it took.
    """

    plan: Plan
    differences: tuple[Difference, ...]
    texts: tuple[TextChange, ...]
    examples: int
    steps: int
    seconds: float

    @property
    def all(self) -> tuple[Difference | TextChange, ...]:
        """Differences, and then texts."""
        return (*self.differences, *self.texts)

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        return bool(self.differences or self.texts)


def _ignore(_: Event) -> None:
    pass


def compare(plan: Plan, sink: Sink = _ignore, progress: Progress | None = None) -> Comparison:
    """Finds what the classes of two releases do differently.

    Args:
        plan: what to compare.
        sink: called with progress.
        progress: called while jars are fetched.

    Raises:
        ToolError: the work cannot be done: no Java, no jars, or the old release diverges from its own reference.
    """
    started = time.monotonic()
    known: dict[Key, Sightings] = {}
    differences: list[tuple[Difference, Key]] = []
    texts: dict[Pattern, TextChange] = {}
    examples = steps = 0
    for number, machine in enumerate(plan.machines):
        limit = None
        if plan.max_time is not None:
            left = plan.max_time - (time.monotonic() - started)
            limit = max(left, 0.0) / (len(plan.machines) - number)
        with scratch_directory() as scratch:
            search = Search(machine, *plan.sides, known, scratch, sink, progress)
            new = search.run(plan.max_examples, plan.seed, limit, kept=plan.kept)
            differences += [(_difference(plan, search, found), found.key) for found in new]
            for pattern, example in search.texts.found.items():
                change = None if pattern in texts else _text_change(plan, search, pattern, example)
                if change is not None:
                    texts[pattern] = change
            examples += search.lockstep.statistics.examples
            steps += search.lockstep.statistics.steps
    return Comparison(
        plan, _folded(differences, known), tuple(texts.values()), examples, steps, time.monotonic() - started
    )


def _folded(differences: list[tuple[Difference, Key]], known: dict[Key, Sightings]) -> tuple[Difference, ...]:
    """Differences that the same clauses explain as one: what parts two releases may show in many later steps."""
    told: list[Difference] = []
    for difference, key in differences:
        places = known[key].places
        families = difference.stakes.families
        same = next((i for i, earlier in enumerate(told) if families and earlier.stakes.families == families), None)
        if same is None:
            told.append(replace(difference, also=tuple(place for place in places if place != difference.place)))
        else:
            first = told[same]
            also = dict.fromkeys((*first.also, *places))
            also.pop(first.place, None)
            told[same] = replace(first, also=tuple(also), more=(*first.more, difference.trace))
    return tuple(told)


def _difference(plan: Plan, search: Search, found: Found) -> Difference:
    """Both releases perform the shrunk trace, each in its own dialect, for the words."""
    old, new = (performer.perform(found.operations) for performer in search.performers)
    stakes = nearest_stakes(old.side.release, new.side.release, old.clauses, new.clauses)
    where = f"{found.divergence.operation.name} ({', '.join(found.divergence.aspects)})"
    trace = Trace(
        search.name,
        old.side.release,
        found.operations,
        failure_json(found.divergence),
        f"{plan.old} and {plan.new} differ in {where}",
        _made_by(found.seed),
    )
    path = trace.save(plan.traces)
    return Difference(search.name, found.divergence, found.operations, stakes, old, new, path, found.unobserved)


def _text_change(
    plan: Plan, search: Search, pattern: Pattern, example: tuple[Wording, tuple[Operation, ...]]
) -> TextChange | None:
    short = shortened(*search.performers, example[1], pattern)
    if short is None:
        return None
    operations, (wording, stakes) = short
    title = f"{plan.old} and {plan.new} word a refusal of {operations[-1].name} differently"
    trace = Trace(search.name, search.old, operations, None, title, _made_by(plan.seed))
    return TextChange(search.name, wording, operations, stakes, trace.save(plan.traces))


def _made_by(seed: int) -> dict[str, object]:
    return {
        "kidx": version_of_package("kidx"),
        "hypothesis": version_of_package("hypothesis"),
        "seed": seed,
        "profile": PROFILE.name,
    }
