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


def row(run: Run, used: dict[str, float]) -> str:
    words = " ".join(word for word in run.words if word != "--machine")
    options = " ".join(run.options) or "unchanged"
    seconds = [used.get(name, 0.0) for name in ("all", "main", "Kafka", "compilers", "helpers")]
    busy = f"{(used['all'] - used.get('helpers', 0.0)) / used['main']:.2f}"
    figures = " | ".join(f"{each:.1f}" for each in seconds)
    return f"| {words.removeprefix('--kafka ')} | {run.examples} | {run.jobs} | {options} | {figures} | {busy} |"


PAGE = """\
# Jobs

Seconds of processor time of a run, by thread, on a machine with {cores} cores. `python3 bootstrap.py python -m
tests.bench.jobs --markdown reports/jobs.md` writes this page. *all* covers {releases} releases. *unchanged* is Java
as in every run: the first compiler only, and the serial collector. *all ÷ main* is the largest possible gain from
more processors, because the main thread is not divided. [Testing the harness](../docs/testing-the-harness.md#speed)
explains the numbers.

| run | examples | jobs | Java | all | main thread | Kafka | compilers | helping processes | all ÷ main |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    wanted = runs(given.examples)
    if given.one is not None:
        print(json.dumps(measure(wanted[given.one])), flush=True)  # noqa: T201
        os._exit(0)
    table = PAGE.format(cores=os.cpu_count(), releases=len(RELEASES))
    for number, run in enumerate(wanted):
        command = [sys.executable, "-m", "tests.bench.jobs", "--examples", str(given.examples), "--one", str(number)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        table += row(run, json.loads(done.stdout)) + "\n"
        print(table.splitlines()[-1], flush=True)  # noqa: T201
    if given.markdown is not None:
        given.markdown.write_text(table, "utf-8")


if __name__ == "__main__":
    main()
