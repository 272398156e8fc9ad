"""Examples of a seed in chunks of ten: each chunk can run alone, in any process, with the same result.

Several chunks form a round, after which the run reports its progress. The results of chunks can be sent between
processes, and are added up in a fixed order.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.errors import ToolError
from conformance.implementations.process.line_process import WAITED
from conformance.runs.determinism import without_local_constants
from conformance.runs.divergences.signatures import Buckets, signature_of
from conformance.runs.profiles import round_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.lockstep.divergence import Divergence
    from conformance.lockstep.generator_coverage import Kind
    from conformance.operations import Operation

SEED_OF_ROUND: Final = 1_000_003
SEED_OF_CHUNK: Final = 7_919
"""The distances between the seeds of two rounds, and of two chunks in a round."""
CHUNK: Final = 10
"""The number of examples in one run of Hypothesis.

From the eleventh example on, Hypothesis generates five of six examples by small changes of the previous one. This suits
values but not state machines: of 100 examples, about 80 repeat the same steps. The first ten examples of each seed are
all different.
"""


class Chunk(NamedTuple):
    """Chunk of examples.

    Attributes:
        number: The number of the chunk, from 0.
        done: The number of examples up to the end of this chunk.
        ends_round: True if a round ends with it.
    """

    number: int
    seed: int
    examples: int
    done: int
    ends_round: bool


def chunks_of(machine: str, wanted: int, seed: int) -> Iterator[Chunk]:
    """Yield the chunks of a machine for a seed, round by round."""
    number = done = 0
    for rounds, begun in enumerate(range(0, wanted, round_of(machine))):
        left = min(round_of(machine), wanted - begun)
        for place, start in enumerate(range(0, left, CHUNK)):
            examples = min(CHUNK, left - start)
            done += examples
            first = seed + rounds * SEED_OF_ROUND
            yield Chunk(number, first + place * SEED_OF_CHUNK, examples, done, start + examples == left)
            number += 1


class _TimeIsUp(BaseException):
    """Exception that ends Hypothesis between two examples."""


class _Ended(BaseException):
    """Exception around an error that ends the run: Hypothesis would execute the example again to explain the error."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(str(error))
        self.error = error


def run_chunk(
    bound: type[Any], how: settings, seed: int, examples: int, is_time_up: Callable[[], bool] = lambda: False
) -> bool:
    """Run one chunk, with the same examples whatever modules are loaded.

    Args:
        bound: The machine, bound to a lockstep.
        how: The settings with the number of steps.
        seed: The seed of the chunk.
        is_time_up: A callback that returns True to end the chunk; called after each example. The examples until then
            are the same as in any other run with this seed.

    Returns:
        True if all examples were run.

    Raises:
        DivergenceError: A participant diverges, and it counts.
        ToolError: The run cannot continue.
    """

    def do(self: Any, *arguments: Any) -> Any:
        try:
            return super(type(self), self).do(*arguments)
        except ToolError as error:
            raise _Ended(error) from error

    def teardown(self: Any) -> None:
        try:
            super(type(self), self).teardown()
        except ToolError as error:
            raise _Ended(error) from error
        if sys.exception() is None and is_time_up():
            raise _TimeIsUp

    members = {"do": do, "teardown": teardown, "__module__": bound.__module__}
    timed = type(bound.__name__, (bound,), members)
    try:
        with without_local_constants():
            run_state_machine_as_test(seeded(seed)(timed), settings=settings(how, max_examples=examples))
    except _TimeIsUp:
        return False
    except _Ended as ended:
        raise ended.error from ended.error.__cause__
    return True


FAILURES: Final = 200
"""The number of failures after which a program drops out of a machine, because each failure requires a new start."""
_TIMEOUT_SCORE: Final = 67
"""The number of failures that one timeout counts as: each takes ten seconds, and the third is the last."""
REGRESSION_TRACES: Final = -1
"""The chunk number of the result of the regression traces."""

Shown = tuple["Divergence", tuple["Operation", ...]]
"""A divergence, with the steps up to it."""


@dataclass
class ChunkResult:
    """Result of a chunk, or of all chunks up to some point.

    Attributes:
        number: The number of the chunk; :data:`REGRESSION_TRACES` for the regression traces.
        steps: The number of operations of the examples.
        kinds: The number of steps by operation, kind of error and exercised clauses, of the newest release's reference.
        drawn: The number of generated examples, without regression traces.
        drawn_kinds: As ``kinds``, but only of the generated examples.
        credited: For each participant, the number of steps that exercised each clause while it took part.
        executed: For each participant, the number of steps of each operation that were compared while it took part.
        reached: For each participant, the clauses that its reference exercised, with or without the participant.
        excused: For each participant, the number of steps with a tolerated difference, by the description of the
            tolerance.
        lacking: For each participant, the requested operations that it does not have.
        buckets: The buckets of the divergences that count.
        expected: For each participant, the clauses of divergences that are expected.
        tolerated: For each participant, the clauses of divergences that do not count at the level.
        matched_expectations: The numbers of the expectations that a divergence has matched.
        waited: For each participant, the number of ``examples`` and ``steps`` that other participants executed instead.
        failed: For each participant, the number of examples that ended with a failure, by its signature.
        requested: For each program, the operations of the examples in which it took part.
        survived: For each program, the operations after which it did not fail at least once.
        avoided: For each program, the number of steps by operation that it did not get, because it has failed at such.
        dropout_scores: For each participant, the score that decides whether it drops out of the run. Failures count,
            and with ``--fail-fast`` the first divergence.
        left: For each participant that has dropped out, the number of examples and steps until then.
        broken: A divergence of the reference itself, with which nothing can then be compared; or None.
        cut: True if the time was up.
        not_replayed: The number of regression traces that were not executed because the time was up.
    """

    number: int = REGRESSION_TRACES
    examples: int = 0
    steps: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    drawn: int = 0
    drawn_kinds: Counter[Kind] = field(default_factory=Counter)
    credited: dict[str, Counter[str]] = field(default_factory=dict)
    executed: dict[str, Counter[str]] = field(default_factory=dict)
    reached: dict[str, set[str]] = field(default_factory=dict)
    excused: dict[str, Counter[str]] = field(default_factory=dict)
    lacking: dict[str, set[str]] = field(default_factory=dict)
    buckets: Buckets = field(default_factory=Buckets)
    expected: dict[str, set[str]] = field(default_factory=dict)
    tolerated: dict[str, set[str]] = field(default_factory=dict)
    matched_expectations: set[int] = field(default_factory=set)
    waited: dict[str, Counter[str]] = field(default_factory=dict)
    failed: dict[str, Counter[str]] = field(default_factory=dict)
    requested: dict[str, set[str]] = field(default_factory=dict)
    survived: dict[str, set[str]] = field(default_factory=dict)
    avoided: dict[str, Counter[str]] = field(default_factory=dict)
    dropout_scores: dict[str, int] = field(default_factory=dict)
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
    broken: Shown | None = None
    cut: bool = False
    not_replayed: int = 0

    def add(self, chunk: ChunkResult, limit: int) -> None:
        """Add the result of the next chunk, without the participants that have dropped out before.

        Args:
            limit: The score at which a participant drops out, see ``dropout_scores``.
        """
        gone = self.gone(limit)
        self.number = chunk.number
        self.examples += chunk.examples
        self.steps += chunk.steps
        self.kinds.update(chunk.kinds)
        self.drawn += chunk.drawn
        self.drawn_kinds.update(chunk.drawn_kinds)
        counted = (self.credited, chunk.credited), (self.excused, chunk.excused), (self.failed, chunk.failed)
        more = (self.executed, chunk.executed), (self.waited, chunk.waited), (self.avoided, chunk.avoided)
        for totals, chunks in (*counted, *more):
            for participant, counts in chunks.items():
                if participant not in gone:
                    totals.setdefault(participant, Counter()).update(counts)
        sets = (self.lacking, chunk.lacking), (self.expected, chunk.expected), (self.reached, chunk.reached)
        own = (self.requested, chunk.requested), (self.survived, chunk.survived), (self.tolerated, chunk.tolerated)
        named = (*sets, *own)
        for mine, theirs in named:
            for participant, names in theirs.items():
                if participant not in gone:
                    mine.setdefault(participant, set()).update(names)
        stayed = {key: each for key, each in chunk.buckets.items() if each.divergence.participant not in gone}
        self.buckets.merge(Buckets(stayed))
        self.matched_expectations |= chunk.matched_expectations
        for participant, times in chunk.dropout_scores.items():
            self.dropout_scores[participant] = self.dropout_scores.get(participant, 0) + times
        for participant in self.gone(limit) - gone:
            self.left[participant] = self.examples, self.steps
        self.broken = self.broken or chunk.broken
        self.cut = self.cut or chunk.cut
        self.not_replayed += chunk.not_replayed

    def done_by(self, participant: str) -> tuple[int, int]:
        """Return the number of examples and steps in which a participant took part."""
        examples, steps = self.left.get(participant, (self.examples, self.steps))
        waited = self.waited.get(participant, Counter())
        return examples - waited["examples"], steps - waited["steps"]

    def note_failure(self, divergence: Divergence) -> None:
        """Count a failure of a participant, which ends the example for it."""
        name, text = divergence.participant, (divergence.failure and divergence.failure.text) or ""
        self.failed.setdefault(name, Counter())[signature_of(divergence).removeprefix("bulk_")] += 1
        self.dropout_scores[name] = self.dropout_scores.get(name, 0) + (
            _TIMEOUT_SCORE if text.startswith(WAITED) else 1
        )

    def gone(self, limit: int) -> set[str]:
        """Return the participants that have dropped out."""
        return {participant for participant, times in self.dropout_scores.items() if times >= limit}


def is_over(evidence: ChunkResult, participants: Iterable[str], limit: int) -> bool:
    """Return True if the run must stop: the reference diverged, the time is up, or every participant dropped out."""
    names = set(participants)
    return evidence.broken is not None or evidence.cut or (bool(names) and names <= evidence.gone(limit))
