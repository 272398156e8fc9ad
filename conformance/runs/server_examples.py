"""Examples of the machines that drive a running broker, and the verdicts of its clauses.

Each topic, and each stop of a broker, takes seconds. So these machines have their own budgets, Hypothesis only
generates, and the steps of a divergence are shrunk as operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.attribution.tables import clauses_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from conformance.events import Verdict

CHUNK: Final = 8
"""Examples of one run of Hypothesis: most of the tenth and later ones are the preceding example with a small change."""


class Amount(NamedTuple):
    """Work of one run.

    Attributes:
        examples: number of topics.
        steps: rules executed on each topic.
        restarts: stops of the broker between the steps of all topics.
    """

    examples: int
    steps: int
    restarts: int


def run_examples(machine: Any, first_seed: int, amount: Amount, is_over: Callable[[], bool]) -> None:
    """Run the examples of a bound machine in chunks, each with its own seed.

    Args:
        machine: class of the state machine, bound to a lockstep.
        first_seed: seed of the first chunk.
        amount: number of examples and of their steps.
        is_over: A callback before each chunk except the first; True ends the run.

    Raises:
        DivergenceError: the lockstep raises it.
        ClientError, BrokerError: the broker is gone.
    """
    for done in range(0, amount.examples, CHUNK):
        if done and is_over():
            break
        run_state_machine_as_test(
            seed(first_seed + done)(machine),
            settings=settings(
                max_examples=min(CHUNK, amount.examples - done),
                stateful_step_count=amount.steps,
                deadline=None,
                database=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )


def verdicts_of(
    machine: str, release: str, hits: Mapping[str, int], diverging: AbstractSet[str], expected: AbstractSet[str]
) -> tuple[dict[str, int], dict[str, Verdict]]:
    """Return how many steps exercised each clause of a machine in a release, and the verdict of each clause.

    Args:
        machine: name of the machine.
        release: release of Kafka.
        hits: number of steps by clause id.
        diverging: ids of clauses in which a divergence was found.
        expected: ids of clauses whose divergences are expected.
    """
    counts = {clause.id: hits.get(clause.id, 0) for clause in clauses_for(machine, release)}
    verdicts: dict[str, Verdict] = {}
    for clause, count in counts.items():
        if clause in diverging:
            verdicts[clause] = "diverges"
        elif clause in expected:
            verdicts[clause] = "expected-divergence"
        else:
            verdicts[clause] = "conforms" if count else "not-run"
    return counts, verdicts
