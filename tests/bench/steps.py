"""Steps a second, side by side, in one run on this machine: ``python3 bootstrap.py python tests/bench/steps.py``.

Generating: the same examples (same seed) by Hypothesis with nobody to drive, with the reference and the model alone,
with one release, and with all 26. Replaying: the operations of those examples performed again without Hypothesis, by
the full lockstep, and by the release's classes and the reference alone, as ``conformance replay`` needs them.

A step is one operation, whatever took part in it. The JVM warms up before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path

from hypothesis import seed
from hypothesis.stateful import run_state_machine_as_test
from rich.console import Console
from rich.table import Table

from conformance.implementations.jvm import JvmIndex
from conformance.kafka.releases import RELEASES, newest
from conformance.lockstep import Lockstep
from conformance.machines import MACHINES
from conformance.profiles import PROFILES
from conformance.scratch import scratch_directory
from kidx.java import find_java

INDEX_MACHINES = ("offset", "time", "transaction")


def generate(machine: str, lockstep: Lockstep, examples: int) -> tuple[int, float]:
    """Steps and seconds of a run of Hypothesis."""
    before = lockstep.tally.steps
    started = time.perf_counter()
    bound = seed(1)(MACHINES[machine].bind(lockstep))
    run_state_machine_as_test(bound, settings=PROFILES["ci"].settings(examples))
    return lockstep.tally.steps - before, time.perf_counter() - started


def record(machine: str, scratch: Path, examples: int) -> list[list]:
    """The operations of some examples."""
    lockstep = Lockstep([], scratch, releases=[newest()])
    runs: list[list] = []
    end = lockstep.end

    def keep() -> None:
        runs.append(list(lockstep.operations))
        end()

    lockstep.end = keep  # type: ignore[method-assign]
    generate(machine, lockstep, examples)
    return runs


def replay(runs: list[list], lockstep: Lockstep) -> tuple[int, float]:
    """Steps and seconds of performing recorded operations again."""
    started = time.perf_counter()
    for operations in runs:
        lockstep.begin()
        for operation in operations:
            lockstep.perform(operation)
        lockstep.end()
    return sum(map(len, runs)), time.perf_counter() - started


def rate(measured: list[tuple[int, float]]) -> float:
    """The median rate of several runs, steps a second."""
    return statistics.median(steps / seconds for steps, seconds in measured)


def measure(machine: str, examples: int, rounds: int, scratch: Path) -> list[tuple[str, float]]:
    """Every row of one machine's table."""
    rows = []
    parties = {
        "Hypothesis alone": ([], []),
        "kidx and the model": ([], [newest()]),
        f"with {newest()}": ([newest()], []),
        f"with all {len(RELEASES)}": (list(RELEASES), []),
    }
    for number, (label, (subjects, releases)) in enumerate(parties.items()):
        lockstep = Lockstep(map(JvmIndex, subjects), scratch / f"g{number}", releases=releases)
        generate(machine, lockstep, examples)
        rows.append((f"generating, {label}", rate([generate(machine, lockstep, examples) for _ in range(rounds)])))
    runs = record(machine, scratch / "r", examples)
    variants = {"whole lockstep": {}, "reference and release": {"attribute": False, "model": False}}
    for label, options in variants.items():
        lockstep = Lockstep([JvmIndex(newest())], scratch / f"p{label[0]}", **options)
        for _ in range(5):
            replay(runs, lockstep)
        measured = rate([replay(runs, lockstep) for _ in range(rounds)])
        rows.append((f"replaying, {label}, {newest()}", measured))
    return rows


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", choices=INDEX_MACHINES, action="append")
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many runs is shown")
    arguments = parser.parse_args()
    console = Console()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    console.print(
        f"{machine}; Python {platform.python_version()}, Hypothesis {version('hypothesis')}, JPype {version('jpype1')},"
        f" Java {find_java().version}",
        highlight=False,
    )
    table = Table("machine", "what", "steps/s", "of Hypothesis alone", box=None, pad_edge=False)
    for name in arguments.machine or INDEX_MACHINES:
        with scratch_directory() as scratch:
            rows = measure(name, arguments.examples, arguments.rounds, scratch)
        alone = rows[0][1]
        for label, value in rows:
            share = f"{value / alone:.0%}" if label.startswith("generating") else ""
            table.add_row(name, label, f"{value:,.0f}", share)
    console.print(table)


if __name__ == "__main__":
    main()
