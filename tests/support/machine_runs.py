"""Runs of a machine with a seed, without shrinking by Hypothesis; examples with given operations."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from conformance.lockstep import DivergenceError
from conformance.runs.profiles import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.machines.machine import Machine
    from conformance.operations import Operation


def run_machine(machine: type[Machine], lockstep: Any, examples: int, *, seed: int, steps: int = 20) -> None:
    """Run examples of a machine; raise the first divergence that counts.

    Args:
        machine: The machine.
        lockstep: The lockstep that it is bound to.
        examples: The number of examples.
        seed: The seed.
        steps: The maximum number of steps in an example.
    """
    settings = Profile("test", examples, steps, seed).settings(examples)
    run_state_machine_as_test(seeded(seed)(machine.bind(lockstep)), settings=settings)


@contextmanager
def no_divergence() -> Iterator[None]:
    """Fail with the text of the divergence if one is raised in the block."""
    try:
        yield
    except DivergenceError as error:
        pytest.fail(str(error.divergence))


def observe(lockstep: Any, *operations: Operation) -> list[Any]:
    """Execute operations as one example without a divergence; return the newest release's observation of each."""
    with no_divergence(), lockstep.example():
        seen = [lockstep.perform(operation) for operation in operations]
        lockstep.flush()
    return seen
