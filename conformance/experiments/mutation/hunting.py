"""How many examples a machine needs to find a mutant, counted as a run of a campaign would."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis.errors import Flaky

from conformance.implementations.mutants import implementation_of
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.campaign import SEED_OF_ROUND, examples_of
from conformance.runs.profiles import PROFILES, round_of
from conformance.runs.shrinking.failure import shrunk
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.implementations.mutants import Mutant
    from conformance.lockstep import Divergence

LIMIT: Final = 2_000
"""Examples within which every mutant has to be found."""


@dataclass(frozen=True)
class Hunt:
    """The result of looking for one mutant from one seed.

    Attributes:
        mutant: its name.
        seed: of the run.
        examples: number of the example that showed it, from 1; None if it survived.
        seconds: that it took.
        steps: the operations that show it, in words; after shrinking where that was asked for.
        aspects: in what it differs.
        clauses: of the step.
        expected: what the reference says of the first aspect, and actual: what the mutant does.
    """

    mutant: str
    seed: int
    examples: int | None
    seconds: float
    steps: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""


def hunt(mutant: Mutant, seed: int, *, profile: str = "ci", limit: int = LIMIT, shrink: bool = False) -> Hunt:
    """Runs the mutant's machine until the mutant is found.

    Args:
        mutant: what to look for.
        seed: where to start, as ``conformance run --seed``.
        profile: of which the steps of an example are taken.
        limit: examples at most.
        shrink: leave out of the trace what it does not need; otherwise ``steps`` is everything up to the difference.

    Raises:
        DivergenceError: the reference itself differs from the model.
    """
    started = time.monotonic()
    machine = MACHINES[mutant.machine]
    how = PROFILES[profile].settings(limit)
    found: list[int] = []

    def note(_: Divergence) -> bool:
        found.append(lockstep.statistics.examples)
        return False

    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep([implementation_of(mutant, mutant.release)], scratch, excuse=note)
        try:
            size = round_of(mutant.machine)
            for number, done in enumerate(range(0, limit, size)):
                examples_of(machine, lockstep, how, seed + number * SEED_OF_ROUND, min(size, limit - done))
        except (DivergenceError, Flaky) as error:
            failure = lockstep.failure or error
            if not isinstance(failure, DivergenceError) or not found:
                raise
            examples, seconds = found[0], time.monotonic() - started
            if shrink:
                failure = shrunk(lockstep, failure)
        else:
            return Hunt(mutant.name, seed, None, time.monotonic() - started)
    steps = tuple(str(operation) for operation in failure.operations)
    divergence = failure.divergence
    return Hunt(
        mutant.name,
        seed,
        examples,
        seconds,
        steps,
        divergence.aspects,
        divergence.clauses,
        str(divergence.expected),
        str(divergence.actual),
    )
