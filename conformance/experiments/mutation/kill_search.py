"""Search for one mutant, which is kidx with a planted defect: how many examples a state machine needs to detect it.

A detected mutant is killed, any other survives.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis.errors import Flaky

from conformance.implementations.mutants import implementation_of
from conformance.lockstep import DivergenceError
from conformance.machines import MACHINES
from conformance.runs.chunks import chunks_of, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.runs.shrinking.divergence import shrink_divergence
from conformance.runs.shrinking.search import SHRINK_SECONDS
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.implementations.mutants import Mutant
    from conformance.lockstep import Divergence

MAX_EXAMPLES: Final = 2_000
"""Number of examples in which every mutant must be killed."""


@dataclass(frozen=True)
class KillResult:
    """Result of the search for one mutant with one seed.

    Attributes:
        mutant: name of the mutant.
        seed: random seed of the run.
        examples: number of the example that killed the mutant, from 1; None if it survived.
        seconds: duration of the search.
        steps: operations up to the divergence, as text; only the necessary ones if they were shrunk.
        aspects: parts of the last step's result that differ, such as ``outcome``.
        clauses: clauses that the last step exercises.
        expected: value of the first aspect for the reference.
        actual: value of the first aspect for the mutant.
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


def search_kill(
    mutant: Mutant, seed: int, *, profile: str = "ci", limit: int = MAX_EXAMPLES, shrink: bool = False
) -> KillResult:
    """Run the state machine that has to detect a mutant until it does.

    Args:
        mutant: the mutant.
        seed: random seed, as ``conformance run --seed``.
        profile: profile that sets the steps per example.
        limit: maximum number of examples.
        shrink: True to shrink the trace; otherwise ``steps`` are all operations up to the divergence.

    Raises:
        DivergenceError: the reference itself diverges from the model.
    """
    started = time.monotonic()
    machine = MACHINES[mutant.machine]
    settings = PROFILES[profile].settings(limit)
    found: list[int] = []

    def note(_: Divergence) -> bool:
        found.append(lockstep.statistics.examples)
        return False

    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep([implementation_of(mutant, mutant.release)], scratch, on_divergence=note)
        try:
            for chunk in chunks_of(mutant.machine, limit, seed):
                run_chunk(machine.bind(lockstep), settings, chunk.seed, chunk.examples)
        except (DivergenceError, Flaky) as error:
            failure = lockstep.failure or error
            if not isinstance(failure, DivergenceError) or not found:
                raise
            examples, seconds = found[0], time.monotonic() - started
            if shrink:
                # The trace is to be short on a busy machine, too.
                failure = shrink_divergence(lockstep, failure, seconds=5 * SHRINK_SECONDS)
        else:
            return KillResult(mutant.name, seed, None, time.monotonic() - started)
    steps = tuple(str(operation) for operation in failure.operations)
    divergence = failure.divergence
    return KillResult(
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
