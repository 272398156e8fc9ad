"""Cases per second of the fuzzer, compared in one run on this machine: ``python -m tests.bench.fuzz``.

The same kind of contents, new in each turn, are examined one by one in lockstep, as for a user's adapter, and in bulk
by Kafka's classes: with the newest release, and with all locked ones. Each warms up before the clock starts, and they
take turns. Rates are medians of the clock's and of processor time. On a shared machine the latter counts, over all
threads, Java's compiler included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from conformance.implementations.jvm.virtual_machine import enable_c2_compiler
from conformance.kafka.releases import RELEASES, newest
from conformance.machines import MACHINES
from conformance.scratch import scratch_directory
from conformance.studies.fuzz.batches import BatchedExecutor
from conformance.studies.fuzz.executor import CaseExecutor
from conformance.studies.fuzz.mutations import mutated
from conformance.studies.fuzz.probes import MACHINE_OF
from conformance.studies.fuzz.seed_files import SEEDS
from tests.bench.frame import Rows, bench, machine

HEADS = ("format", "releases", "one by one", "in one call", "times", "of a processor", "in one call", "times")
Examine = Callable[[list[bytes]], object]


def one_by_one(format_name: str, releases: list[str], scratch: Path) -> Examine:
    """Run the lockstep that decides about divergences."""
    kind = MACHINES[MACHINE_OF[format_name]]
    subjects = [kind.subject("jvm", release) for release in releases]
    executor = CaseExecutor(format_name, kind.new_lockstep(subjects, scratch, releases=releases))

    def examine(contents: list[bytes]) -> None:
        for content in contents:
            examined = executor.examine(content)
            if examined.failure or examined.crash:
                raise SystemExit(f"{format_name}: {content.hex()} differs")

    return examine


def whole_batch(format_name: str, releases: list[str], scratch: Path) -> Examine:
    """Check the contents in bulk, as the fuzzer does with Kafka's classes."""
    scratch.mkdir()
    batches = BatchedExecutor(format_name, releases, ["jvm"], scratch)

    return batches.examine


def rates(examine: Examine, make: Callable[[], bytes], count: int, warm_up: int, rounds: int) -> tuple[float, float]:
    """Return cases per second by the clock and of processor time; making contents counts."""
    for _ in range(warm_up):
        examine([make() for _ in range(count)])
    wall, own = [], []
    for _ in range(rounds):
        begun, spent = time.perf_counter(), time.process_time()
        examine([make() for _ in range(count)])
        wall.append(count / (time.perf_counter() - begun))
        own.append(count / (time.process_time() - spent))
    return statistics.median(wall), statistics.median(own)


def row(format_name: str, releases: list[str], rounds: int, scratch: Path) -> list[str]:
    """Measure the rates of one format."""
    seeds = SEEDS[format_name](scratch)
    chance = random.Random(1)  # noqa: S311 -- nothing secret

    def make() -> bytes:
        return mutated(chance, format_name, seeds)

    few = 4 if len(releases) > 1 else 1
    slow = rates(one_by_one(format_name, releases, scratch / "one"), make, 64 // few, 2, rounds)
    batch = 1024 if format_name != "log" else 128
    fast = rates(whole_batch(format_name, releases, scratch / "all"), make, batch // (few * few), 160, rounds)
    times = [new / old for new, old in zip(fast, slow, strict=True)]
    figures = [f"{slow[0]:,.0f}", f"{fast[0]:,.0f}", f"{times[0]:.0f}"]
    figures += [f"{slow[1]:,.0f}", f"{fast[1]:,.0f}", f"{times[1]:.0f}"]
    return [format_name, str(len(releases)), *figures]


def rows(given: argparse.Namespace) -> Rows:
    """Yield a row for each format and number of releases; each may take minutes."""
    enable_c2_compiler()  # as conformance fuzz does where it has a minute
    yield machine("numba", "jpype1")
    for releases in ([newest()], *([] if given.one_release else [list(RELEASES)])):
        for name in given.format or SEEDS:
            with scratch_directory() as scratch:
                yield row(name, releases, given.rounds, scratch)


if __name__ == "__main__":
    once = (False, "Omit the measurement with all locked releases.")
    bench(__doc__, HEADS, rows, rounds=8, format=([*SEEDS], "All four by default."), one_release=once)
