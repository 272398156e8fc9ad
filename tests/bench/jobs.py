"""Processor time of a run by thread: ``python -m tests.bench.jobs [--markdown FILE]``.

Even on a busy machine, seconds of processor time show what ``--jobs`` can give: a process that already uses one and a
half processors cannot become twice as fast on two.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from conformance import cli
from conformance.implementations.jvm import virtual_machine
from conformance.kafka.releases import RELEASES
from tests.bench.frame import Rows, bench

INDEXES = ("--machine", "offset", "--machine", "time", "--machine", "transaction")
BOTH, G1 = ("-XX:TieredStopAtLevel=4",), ("-XX:-UseSerialGC", "-XX:+UseG1GC")


class Run(NamedTuple):
    """Measured run, and the extra options of its Java."""

    words: tuple[str, ...]
    examples: int
    jobs: int = 1
    options: tuple[str, ...] = ()


def runs(share: int) -> list[Run]:
    every = ("--kafka", "all")
    segments, logs = (*every, "--machine", "segment"), (*every, "--machine", "log")
    return [
        *(Run((*every, *INDEXES), share, options=options) for options in ((), BOTH, G1)),
        Run((*every, *INDEXES), share, jobs=2),
        *(Run((*every, *INDEXES), 4 * share, options=options) for options in ((), BOTH)),
        Run((*every, *INDEXES), 4 * share, jobs=2),
        *(Run(("--kafka", "4.4.0", *INDEXES), 20 * share, options=options) for options in ((), BOTH)),
        *(Run(segments, share // 4, options=options) for options in ((), BOTH)),
        *(Run(logs, share // 8, options=options) for options in ((), BOTH)),
    ]


def measure(run: Run) -> dict[str, float]:
    """Run it in this process; return the seconds of processor time by thread."""
    virtual_machine.OPTIONS = (*virtual_machine.OPTIONS, *run.options)
    words = ("run", *run.words, "--seed", "5", "--max-examples", str(run.examples), "-j", str(run.jobs), "-q")
    sys.argv = ["conformance", *words]
    with redirect_stdout(sys.stderr):
        try:
            cli.main()
        except SystemExit as ended:
            assert ended.code == 0, ended.code
    used: defaultdict[str, float] = defaultdict(float)
    for task in Path("/proc/self/task").iterdir():
        try:
            name, _, numbers = (task / "stat").read_text().partition("(")[2].rpartition(")")
        except FileNotFoundError:  # a thread of Java's that has just ended
            continue
        seconds = sum(map(int, numbers.split()[11:13])) / os.sysconf("SC_CLK_TCK")
        used["main" if task.name == str(os.getpid()) else kind(name)] += seconds
    times = os.times()
    used["all"] = times.user + times.system + times.children_user + times.children_system
    used["helpers"] = times.children_user + times.children_system
    return dict(used)


def kind(thread: str) -> str:
    return "compilers" if "Compiler" in thread else "Kafka" if thread.startswith("conformance-hel") else "other"


def row(run: Run, used: dict[str, float]) -> list[str]:
    words = " ".join(word for word in run.words if word != "--machine").removeprefix("--kafka ")
    seconds = [f"{used.get(name, 0.0):.1f}" for name in ("all", "main", "Kafka", "compilers", "helpers")]
    busy = f"{(used['all'] - used.get('helpers', 0.0)) / used['main']:.2f}"
    return [words, str(run.examples), str(run.jobs), " ".join(run.options) or "unchanged", *seconds, busy]


HEADS = (
    "run", "examples", "jobs", "Java", "all", "main thread", "Kafka", "compilers", "helping processes", "all ÷ main",
)  # fmt: skip
INTRODUCTION = f"""\
Seconds of processor time of a run, by thread, on a machine with {os.cpu_count()} cores. `python3 bootstrap.py python -m
tests.bench.jobs --markdown reports/jobs.md` writes this page. *all* covers {len(RELEASES)} releases. *unchanged* is
Java as in every run: the first compiler only, and the serial collector. *all ÷ main* is the largest possible gain from
more processors, because the main thread is not divided. [Testing the harness](../docs/testing-the-harness.md#speed)
explains the numbers."""


def apart(given: argparse.Namespace) -> bool:
    """With ``--one``, print the seconds of one run, and end."""
    if given.one is not None:
        print(json.dumps(measure(runs(given.examples)[given.one])), flush=True)  # noqa: T201
        os._exit(0)
    return False


def rows(given: argparse.Namespace) -> Rows:
    """Yield a row for each run, which has its own process."""
    for number, run in enumerate(runs(given.examples)):
        command = [sys.executable, "-m", "tests.bench.jobs", "--examples", str(given.examples), "--one", str(number)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        yield row(run, json.loads(done.stdout))


if __name__ == "__main__":
    bench(__doc__, HEADS, rows, "Jobs", INTRODUCTION, apart=apart, examples=100, one=(int, argparse.SUPPRESS))
