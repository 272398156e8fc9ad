"""The examples of a seed, in chunks of ten: each can be performed alone, in any process, and is the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.runs.profiles import round_of

if TYPE_CHECKING:
    from conformance.machines import Machine

SEED_OF_ROUND: Final = 1_000_003
_SEED_OF_CHUNK: Final = 7_919
CHUNK: Final = 10
"""Examples in one run of Hypothesis.

After its tenth example Hypothesis makes five of six by changing a little in the one before, which suits values and not
state machines: of 100 examples some 80 repeat the same steps. Ten of each seed are all different.
"""


class Chunk(NamedTuple):
    """Some examples.

    Attributes:
        number: of the chunk, from 0.
        seed: that they are drawn from.
        examples: how many.
        done: how many examples are wanted up to the end of this chunk.
        ends_round: whether a round ends with it.
    """

    number: int
    seed: int
    examples: int
    done: int
    ends_round: bool


def chunks_of(machine: str, wanted: int, seed: int) -> Iterator[Chunk]:
    """All examples of a machine from a seed: rounds, and in each of them chunks."""
    number = done = 0
    for rounds, begun in enumerate(range(0, wanted, round_of(machine))):
        left = min(round_of(machine), wanted - begun)
        for place, start in enumerate(range(0, left, CHUNK)):
            examples = min(CHUNK, left - start)
            done += examples
            first = seed + rounds * SEED_OF_ROUND
            yield Chunk(number, first + place * _SEED_OF_CHUNK, examples, done, start + examples == left)
            number += 1


class _TimeIsUp(BaseException):
    """Ends Hypothesis between two examples."""


def perform_chunk(
    bound: type[Any], how: settings, seed: int, examples: int, is_time_up: Callable[[], bool] = lambda: False
) -> bool:
    """Runs one chunk.

    Args:
        bound: a machine that is bound to a lockstep.
        how: in how many steps.
        seed: of the chunk.
        examples: how many.
        is_time_up: asked after each, and ends it; the examples up to there are those that this seed always has.

    Returns:
        Whether all of them were done.

    Raises:
        DivergenceError: a participant differs, and it counts.
    """

    def teardown(self: Any) -> None:
        super(type(self), self).teardown()
        if sys.exception() is None and is_time_up():
            raise _TimeIsUp

    timed = type(bound.__name__, (bound,), {"teardown": teardown, "__module__": bound.__module__})
    try:
        run_state_machine_as_test(seeded(seed)(timed), settings=settings(how, max_examples=examples))
    except _TimeIsUp:
        return False
    return True


def examples_of(
    machine: type[Machine],
    lockstep: Any,
    how: settings,
    seed: int,
    examples: int,
    is_time_up: Callable[[], bool] = lambda: False,
) -> None:
    """Drives a lockstep through the examples of one round, chunk by chunk.

    Args:
        machine: what is done.
        lockstep: performs them.
        how: in how many steps.
        seed: of the first chunk.
        examples: how many.
        is_time_up: asked after each, and ends it; the examples up to there are those that this seed always has.

    Raises:
        DivergenceError: a participant differs.
    """
    for number, done in enumerate(range(0, examples, CHUNK)):
        # Bound anew, because by now a participant may have turned out not to have an operation.
        bound = machine.bind(lockstep)
        if not perform_chunk(bound, how, seed + number * _SEED_OF_CHUNK, min(CHUNK, examples - done), is_time_up):
            return
