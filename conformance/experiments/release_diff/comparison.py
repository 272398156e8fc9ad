"""Comparison of the behaviour of two Kafka releases, by all state machines."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.experiments.release_diff.error_texts import TextChange, shortened
from conformance.experiments.release_diff.search import Search
from conformance.scratch import scratch_directory
from conformance.verdict import Comparison as Compared

if TYPE_CHECKING:
    from conformance.events import Event, Sink
    from conformance.experiments.release_diff.difference import Difference, Place
    from conformance.experiments.release_diff.error_texts import Pattern, Wording
    from conformance.experiments.release_diff.sides import Plan
    from conformance.kafka.jar_fetch import Progress
    from conformance.operations import Operation
    from conformance.runs.sameness import Sameness


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
        not_replayed: The number of regression traces that were not replayed before the time limit.
        missing: Descriptions of what was not executed before the time limit.
    """

    plan: Plan
    differences: tuple[Difference, ...]
    texts: tuple[TextChange, ...]
    examples: int
    steps: int
    seconds: float
    not_replayed: int = 0
    missing: tuple[str, ...] = ()

    def compared(self, differences: int) -> Compared:
        """Return what was compared, for the verdict; ``differences`` is the number of those that count."""
        return Compared(self.steps, differences, self.missing)

    @property
    def all(self) -> tuple[Difference | TextChange, ...]:
        """All differences, then all changed texts."""
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
        ToolError: Java or jars are missing, or the old release diverges from its own reference.
    """
    started = time.monotonic()
    known: dict[Sameness, dict[Place, None]] = {}
    differences: list[Difference] = []
    texts: dict[Pattern, TextChange] = {}
    examples = steps = not_replayed = 0
    missing: list[str] = []
    for number, machine in enumerate(plan.machines):
        limit = None
        if plan.max_time is not None:
            left = plan.max_time - (time.monotonic() - started)
            limit = max(left, 0.0) / (len(plan.machines) - number)
        with scratch_directory() as scratch:
            search = Search(machine, plan, known, scratch, sink, progress)
            differences += search.run(limit)
            for pattern, example in search.texts.found.items():
                change = None if pattern in texts else _text_change(search, pattern, example)
                if change is not None:
                    texts[pattern] = change
            examples += search.lockstep.statistics.examples
            steps += search.lockstep.statistics.steps
            not_replayed += search.not_replayed
            missing += search.missing
    seconds = time.monotonic() - started
    found = _merged(differences, known), tuple(texts.values())
    return Comparison(plan, *found, examples, steps, seconds, not_replayed, tuple(missing))


def _merged(differences: list[Difference], known: dict[Sameness, dict[Place, None]]) -> tuple[Difference, ...]:
    """Merge differences with the same clauses, because one change of Kafka may have effects in several operations.

    Args:
        differences: The differences in the order in which they were found.
        known: The machine, operation and aspects of all steps with a difference, by the difference's identity.
    """
    merged: list[Difference] = []
    for one in differences:
        families, places = one.implicated.families, known[one.identity]
        same = next((i for i, other in enumerate(merged) if families and other.implicated.families == families), None)
        if same is None:
            merged.append(replace(one, also=tuple(place for place in places if place != one.place)))
        else:
            first = merged[same]
            also = {place: None for place in (*first.also, *places) if place != first.place}
            merged[same] = replace(first, also=tuple(also), more=(*first.more, one.trace))
    return tuple(merged)


def _text_change(search: Search, pattern: Pattern, example: tuple[Wording, tuple[Operation, ...]]) -> TextChange | None:
    """Return a change of an error text with a shrunk example; None if it does not occur again."""
    short = shortened(*search.runners, example[1], pattern)
    if short is None:
        return None
    operations, (wording, implicated) = short
    title = f"have different error texts of {operations[-1].name}"
    return TextChange(search.name, wording, operations, implicated, search.save(operations, title, search.plan.seed))
