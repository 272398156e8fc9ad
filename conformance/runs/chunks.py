"""Examples of a seed in chunks of ten: each chunk can run alone, in any process, with the same result.

Several chunks form a round, after which the run reports its progress.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.errors import ToolError
from conformance.runs.determinism import without_local_constants
from conformance.runs.profiles import round_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
