"""Long fuzzing of the newest release of each dialect: ``python -m tests.bench.long_fuzz DIR``.

Each release has a turn of some minutes with each format: one ``conformance fuzz`` with its own seed. Results of turns
are stored in ``DIR/turns.ndjson``, so the same command continues where it was stopped. The traces of findings are
printed at the end, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

from rich.console import Console

from conformance.kafka.releases import RELEASES
from conformance.studies.fuzz.probes import MACHINE_OF
from kidx.dialect import dialect_of
from tests.bench.frame import machine, print_table

_CONFORMANCE = "from conformance.cli import main; main()"
HEADS = ("format", "releases", "cases", "cases per second and processor", "settled", "findings")


def newest_of_each_dialect(format_name: str) -> list[str]:
    """Return a release for each set of rules of a format, the newest first."""
    sections = ("index", "segment") if MACHINE_OF[format_name] == "segment" else ("index",)
    return list({dialect_of(release).rules(*sections): release for release in RELEASES}.values())[::-1]


def pairs(formats: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield formats and releases forever: a release of each format, then the next release of each."""
    of_each = [cycle(list(product([name], newest_of_each_dialect(name)))) for name in formats]
    while True:
        yield from map(next, of_each)


def commit() -> str:
    """Return the commit that is checked out; marked if the work tree has changes."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def turn(directory: Path, format_name: str, seconds: float, seed: int, release: str) -> dict[str, Any]:
    """Run the fuzzer once, and return its counts."""
    command = [sys.executable, "-c", _CONFORMANCE, "fuzz", "--format", format_name, "--json"]
    command += ["--kafka", release, "--max-time", str(seconds), "--seed", str(seed)]
    command += ["--corpus", str(directory / "corpus"), "--report", str(directory / f"{format_name}-{seed}")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 2 or not done.stdout:
        raise SystemExit(done.stderr or f"the turn ended with {done.returncode} and said nothing")
    told = json.loads(done.stdout.splitlines()[-1])
    if isinstance(told, dict):  # a hang
        raise SystemExit(json.dumps(told, indent=1))
    return dict(told[0], release=release, seed=seed, commit=commit())


def sums(turns: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row for each format, and one for all."""
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    releases = defaultdict(set)
    for each in turns:
        numbers = each["cases"], each["processor_seconds"], each["settled"], len(each["findings"])
        for name in (each["format"], "all"):
            releases[name].add(each["release"])
            totals[name] = [a + b for a, b in zip(totals[name], numbers, strict=True)]
    rows = []
    for name, (cases, seconds, settled, findings) in sorted(totals.items(), key=lambda one: one[0] == "all"):
        figures = [f"{figure:,.0f}" for figure in (cases, cases / max(seconds, 0.001), settled, findings)]
        rows.append((name, str(len(releases[name])), *figures))
    return rows


def main() -> None:
    """Take turns until enough cases have run, or the time is over; print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cases", type=int, default=10_000_000, help="number of cases of all formats together")
    parser.add_argument("--max-time", type=float, default=3600.0, help="seconds for this call")
    parser.add_argument("--turn", type=float, default=120.0, help="seconds of one release and format at a time")
    parser.add_argument("--format", action="append", choices=list(MACHINE_OF))
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    kept = options.directory / "turns.ndjson"
    turns = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    turns = [each for each in turns if each["commit"] == commit()]
    until = time.monotonic() + options.max_time
    # Finished turns are not repeated: the next turn has the next pair.
    for name, release in islice(pairs(options.format or list(MACHINE_OF)), len(turns), None):
        left = until - time.monotonic()
        enough = sum(each["cases"] for each in turns) >= options.cases
        if enough or left < 1:
            break
        turns.append(turn(options.directory, name, min(options.turn, left), len(turns), release))
        with kept.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(turns[-1])}\n")
    console = Console(width=120)
    console.print(machine("numba", "jpype1"), commit(), highlight=False)
    print_table(console, HEADS, sums(turns))
    for each in turns:
        for kind, path in each["findings"].items():
            console.print(f"{each['format']}: {kind}: {path}", highlight=False)
    raise SystemExit(any(each["findings"] for each in turns))


if __name__ == "__main__":
    main()
