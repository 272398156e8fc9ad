"""Steps per second, compared in one run on this machine: ``python -m tests.bench.steps``.

Generating: the same examples (same seed) by Hypothesis with no participant, with the reference and the model alone,
with one release, and with all locked releases. Replaying: the operations of those examples without Hypothesis, by the
full lockstep, and by the release's classes and the reference alone. Segments and logs have no model. A log's step is a
query of forty timestamps or an append of several batches, so a turn has fewer of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test

from conformance.implementations.jvm import JvmIndex
from conformance.implementations.jvm.virtual_machine import enable_c2_compiler
from conformance.kafka.releases import RELEASES, newest
from conformance.lockstep.lockstep import Observer
from conformance.lockstep.scopes.index import IndexLockstep
from conformance.machines import MACHINES
from conformance.runs.gc_tuning import infrequent_gc
from conformance.runs.profiles import PROFILES
from conformance.scratch import scratch_directory
from tests.bench.frame import Rows, bench, machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.lockstep.lockstep import Lockstep
    from conformance.operations import Operation

INDEX_MACHINES = ("offset", "time", "transaction")
FILES_MACHINES = ("segment", "log")
HEADS = ("machine", "what", "steps/s", "of Hypothesis alone", "of its processor time")
INTRODUCTION = """One run of `python3 bootstrap.py python -m tests.bench.steps --markdown reports/steps.md`.
Hypothesis makes the same examples without participants, and with each set of participants. Then the same operations
are replayed without Hypothesis. The targets are 80 % of Hypothesis alone with one release, 25 % with all releases,
and 50,000 steps/s for a replay with one release. Java uses both of its compilers. [Testing the
harness](../docs/testing-the-harness.md#speed) explains the numbers."""


class Rate(NamedTuple):
    """Rate of one run."""

    steps: int
    seconds: float
    processor_seconds: float


@contextmanager
def measured(lockstep: Lockstep[Any, Any]) -> Iterator[list[Rate]]:
    """Yield a rate that is filled in when the block ends."""
    rates: list[Rate] = []
    before, wall, processor = lockstep.statistics.steps, time.perf_counter(), time.process_time()
    yield rates
    rates.append(Rate(lockstep.statistics.steps - before, time.perf_counter() - wall, time.process_time() - processor))


def generate(machine: str, lockstep: Lockstep[Any, Any], examples: int) -> Rate:
    """Run Hypothesis."""
    with measured(lockstep) as rates:
        bound = seed(1)(MACHINES[machine].bind(lockstep))
        run_state_machine_as_test(bound, settings=PROFILES["ci"].settings(examples))
    return rates[0]


def played_back(machine: str, scratch: Path, examples: int) -> Lockstep[Any, Any]:
    """Return a lockstep without participants that repeats the newest reference's observations of :func:`generate`.

    The rules of segments and logs use them, so Hypothesis draws the same only if they are the same.
    """
    seen: list[tuple[Operation, Any, Any]] = []
    left = cycle(seen)

    class Keeping(kind_of(machine)):  # type: ignore[misc]  # the class of the machine's lockstep
        def perform(self, operation: Operation) -> Any:
            observation = super().perform(operation)
            seen.append((operation, observation, self.primary.files))
            return observation

    class Playing(kind_of(machine)):  # type: ignore[misc]
        def begin(self) -> None:
            self.primary.begin()

        def perform(self, operation: Operation) -> Any:
            self.statistics.steps += 1
            group = self.primary
            expected, group.observation, group.files = next(left)
            assert operation == expected, (operation, expected)
            return group.observation

        def end(self) -> None:
            pass

    generate(machine, Keeping([], scratch / "keeping", releases=[newest()]), examples)
    lockstep: Lockstep[Any, Any] = Playing([], scratch / "playing", releases=[newest()])
    return lockstep


def new_lockstep(machine: str, subjects: Iterable[str], scratch: Path, **options: Any) -> Lockstep[Any, Any]:
    """Return the lockstep that a machine drives, with the classes of some releases."""
    driven: Any = MACHINES[machine]
    subject = JvmIndex if machine in INDEX_MACHINES else driven.jvm
    lockstep: Lockstep[Any, Any] = kind_of(machine)(map(subject, subjects), scratch, **options)
    return lockstep


def kind_of(machine: str) -> Any:
    """Return the class of the lockstep that a machine drives."""
    return IndexLockstep if machine in INDEX_MACHINES else MACHINES[machine].lockstep_type


def record(machine: str, scratch: Path, examples: int) -> list[list[Operation]]:
    """Record the operations of some examples."""
    lockstep = new_lockstep(machine, [], scratch, releases=[newest()])
    runs: list[list[Operation]] = []

    class Keeping(Observer):
        def ends(self) -> None:
            runs.append(list(lockstep.operations))

    lockstep.observers.append(Keeping())
    generate(machine, lockstep, examples)
    return runs


def replay(runs: list[list[Operation]], lockstep: Lockstep[Any, Any]) -> Rate:
    """Execute the recorded operations that the participants have again."""
    runs = [[each for each in operations if lockstep.supports(each.name)] for operations in runs]
    with measured(lockstep) as rates:
        for operations in runs:
            lockstep.begin()
            for operation in operations:
                lockstep.perform(operation)
            lockstep.end()
    return rates[0]


def in_turns(tasks: Mapping[str, Callable[[], Rate]], warm_up: int, rounds: int) -> dict[str, list[Rate]]:
    """Run each piece of work for this number of steps unmeasured, then in turns; return the rates of each."""
    for task in tasks.values():
        steps = 0
        while steps < warm_up:
            steps += task().steps
    done = [[task() for task in tasks.values()] for _ in range(rounds)]
    return {label: list(rates) for label, rates in zip(tasks, zip(*done, strict=True), strict=True)}


def share(rates: list[Rate], of: list[Rate], what: str) -> str:
    """Return the median ratio of two rates over the turns that they took together."""
    pairs = zip(rates, of, strict=True)
    return f"{statistics.median(per(rate, what) / per(whole, what) for rate, whole in pairs):.0%}"


def per(rate: Rate, what: str) -> float:
    """Return steps per second of wall-clock time or of processor time."""
    seconds: float = getattr(rate, what)
    return rate.steps / seconds


def measure(name: str, examples: int, rounds: int, scratch: Path) -> dict[str, list[Rate]]:
    """Measure the rates of one machine's rows."""
    participants: dict[str, tuple[list[str], list[str]]] = {
        "Hypothesis alone": ([], []),
        "kidx alone": ([], [newest()]),
        f"with {newest()}": ([newest()], []),
        f"with all {len(RELEASES)}": (list(RELEASES), []),
    }
    generating = {}
    for number, (label, (subjects, releases)) in enumerate(participants.items()):
        if not (subjects or releases or name in INDEX_MACHINES):
            lockstep = played_back(name, scratch / f"g{number}", examples)
        else:
            lockstep = new_lockstep(name, subjects, scratch / f"g{number}", releases=releases)
        generating[f"generating, {label}"] = partial(generate, name, lockstep, examples)
    runs = record(name, scratch / "r", examples)
    replaying = {}
    for label, options in {"whole lockstep": {}, "reference and release": {"attribute": False, "model": False}}.items():
        lockstep = new_lockstep(name, [newest()], scratch / f"p{label[0]}", **options)
        replaying[f"replaying, {label}, {newest()}"] = partial(replay, runs, lockstep)
    warm_up, turns = (15_000, 3 * rounds) if name in INDEX_MACHINES else (3_000, rounds)
    return in_turns(generating, warm_up, rounds) | in_turns(replaying, 4 * warm_up, turns)


def rows(given: argparse.Namespace) -> Rows:
    """Yield the rows of each machine."""
    enable_c2_compiler()  # takes minutes; reports/jobs.md says why a short run omits it
    yield f"{machine('hypothesis', 'jpype1')}."
    for name in given.machine or (*INDEX_MACHINES, *FILES_MACHINES):
        with scratch_directory() as scratch, infrequent_gc():
            by_label = measure(name, given.examples, given.rounds, scratch)
        alone = next(iter(by_label.values()))
        for label, rates in by_label.items():
            cells = ["", ""]
            if label.startswith("generating"):
                cells = [share(rates, alone, what) for what in ("seconds", "processor_seconds")]
            yield name, label, f"{statistics.median(per(rate, 'seconds') for rate in rates):,.0f}", *cells


if __name__ == "__main__":
    machines = [*INDEX_MACHINES, *FILES_MACHINES]
    turns = (11, "number of short runs, of which the median is shown")
    bench(__doc__, HEADS, rows, "Steps per second", INTRODUCTION, machine=machines, examples=15, rounds=turns)
