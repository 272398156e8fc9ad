"""Comparison of two releases: every machine searches, and both releases execute the findings for the report."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING

from conformance.experiments.release_diff.error_texts import TextChange, shortened
from conformance.experiments.release_diff.implicated import last_implicated
from conformance.experiments.release_diff.search import PROFILE, Search
from conformance.experiments.release_diff.sides import Side, side_of
from conformance.lockstep.divergence import failure_json
from conformance.operations.trace import Trace
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.events import Event, Sink
    from conformance.experiments.release_diff.error_texts import Pattern, Wording
    from conformance.experiments.release_diff.execution import ExecutionRecord
    from conformance.experiments.release_diff.implicated import ImplicatedClauses
    from conformance.experiments.release_diff.search import Found, Key, Occurrences, Place
    from conformance.kafka.jar_fetch import Progress
    from conformance.lockstep import Divergence
    from conformance.operations import Operation


@dataclass(frozen=True)
class Plan:
    """Plan of a comparison.

    Attributes:
        old: The baseline release, or ``jvm:DIR``.
        new: The other release, or ``jvm:DIR``.
        machines: Names of :data:`conformance.machines.MACHINES`.
        traces: The directory of shrunk traces.
        seed: The random seed; a fixed seed reproduces the search.
        max_examples: The number of examples for each machine; by default from a profile, or fewer if nothing is new.
        max_time: The time limit in seconds, or None.
        kept: True if the regression traces are replayed first.
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
        """Baseline side and new side."""
        return side_of(self.old), side_of(self.new)


@dataclass(frozen=True)
class Difference:
    """One behaviour in which two releases differ.

    Attributes:
        machine: The machine that found it.
        divergence: The divergence of the new release from the old one's reference, at the last of ``operations``.
        operations: The shrunk trace.
        implicated: The clauses that separate the releases there; without any, the difference is a finding.
        old: The execution of the trace by the old release.
        new: The execution of the trace by the new release.
        trace: The path of the trace.
        unobserved: Fields of the state that the rest of the search did not compare.
        also: Machine, operation and aspects of other steps with the same difference.
        more: Traces in which it occurs at a step that the clauses do not cover.
    """

    machine: str
    divergence: Divergence
    operations: tuple[Operation, ...]
    implicated: ImplicatedClauses
    old: ExecutionRecord
    new: ExecutionRecord
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
    """Result of a comparison.

    Attributes:
        plan: The plan.
        differences: The differences, in the order in which they were found.
        texts: The errors whose texts differ.
        examples: The number of examples.
        steps: The number of operations.
        seconds: The duration.
        not_replayed: The number of regression traces that the time limit left out.
    """

    plan: Plan
    differences: tuple[Difference, ...]
    texts: tuple[TextChange, ...]
    examples: int
    steps: int
    seconds: float
    not_replayed: int = 0

    @property
    def all(self) -> tuple[Difference | TextChange, ...]:
        """All differences, and then all texts."""
        return (*self.differences, *self.texts)

    @property
    def differs(self) -> bool:
        """True if anything differs."""
        return bool(self.differences or self.texts)


def _ignore(_: Event) -> None:
    pass


def compare(plan: Plan, sink: Sink = _ignore, progress: Progress | None = None) -> Comparison:
    """Find the differences between the classes of two releases.

    Args:
        plan: The plan.
        sink: A callback that receives progress events.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: No Java, no jars, or the old release diverges from its own reference.
    """
    started = time.monotonic()
    known: dict[Key, Occurrences] = {}
    differences: list[tuple[Difference, Key]] = []
    texts: dict[Pattern, TextChange] = {}
    examples = steps = not_replayed = 0
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
            not_replayed += search.not_replayed
    seconds = time.monotonic() - started
    return Comparison(plan, _folded(differences, known), tuple(texts.values()), examples, steps, seconds, not_replayed)


def _folded(differences: list[tuple[Difference, Key]], known: dict[Key, Occurrences]) -> tuple[Difference, ...]:
    """Merge differences that the same clauses explain: one change may show in many later steps."""
    merged: list[Difference] = []
    for difference, key in differences:
        places = known[key].places
        families = difference.implicated.families
        same = next(
            (i for i, earlier in enumerate(merged) if families and earlier.implicated.families == families), None
        )
        if same is None:
            merged.append(replace(difference, also=tuple(place for place in places if place != difference.place)))
        else:
            first = merged[same]
            also = dict.fromkeys((*first.also, *places))
            also.pop(first.place, None)
            merged[same] = replace(first, also=tuple(also), more=(*first.more, difference.trace))
    return tuple(merged)


def _difference(plan: Plan, search: Search, found: Found) -> Difference:
    """Let both releases execute the shrunk trace, each in its own dialect, and return the described difference."""
    old, new = (performer.perform(found.operations) for performer in search.runners)
    implicated = last_implicated(old.side.release, new.side.release, old.clauses, new.clauses)
    where = f"{found.divergence.operation.name} ({', '.join(found.divergence.aspects)})"
    trace = Trace(
        search.name,
        old.side.release,
        found.operations,
        failure_json(found.divergence),
        f"{plan.old} and {plan.new} differ in {where}",
        _provenance(found.seed),
    )
    path = trace.save(plan.traces)
    return Difference(search.name, found.divergence, found.operations, implicated, old, new, path, found.unobserved)


def _text_change(
    plan: Plan, search: Search, pattern: Pattern, example: tuple[Wording, tuple[Operation, ...]]
) -> TextChange | None:
    short = shortened(*search.runners, example[1], pattern)
    if short is None:
        return None
    operations, (wording, implicated) = short
    title = f"{plan.old} and {plan.new} have different error texts of {operations[-1].name}"
    trace = Trace(search.name, search.old, operations, None, title, _provenance(plan.seed))
    return TextChange(search.name, wording, operations, implicated, trace.save(plan.traces))


def _provenance(seed: int) -> dict[str, object]:
    return {
        "kidx": version_of_package("kidx"),
        "hypothesis": version_of_package("hypothesis"),
        "seed": seed,
        "profile": PROFILE.name,
    }
