"""Runs of a machine with a seed, as a run of the harness: no shrinking by Hypothesis, no database, no health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test

from conformance.runs.profiles import Profile

if TYPE_CHECKING:
    from conformance.machines.machine import Machine


def run_machine(machine: type[Machine], lockstep: Any, examples: int, *, seed: int, steps: int = 20) -> None:
    """Run a machine's examples, each with at most so many steps; raise the first divergence that counts."""
    settings = Profile("test", examples, steps, seed).settings(examples)
    run_state_machine_as_test(seeded(seed)(machine.bind(lockstep)), settings=settings)
