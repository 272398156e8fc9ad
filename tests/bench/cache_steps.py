"""Long run of a machine of remote storage: ``python -m tests.bench.cache_steps DIR --markdown reports/cache.md``.

All releases that the machine drives execute the steps in lockstep with kidx. The run goes in chunks of
examples, each with its own seed. Results of chunks are stored in ``DIR/chunks.ndjson``, so the same command continues
where it was stopped. A divergence ends its chunk; its trace is in ``DIR``, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis.errors import FlakyFailure
from rich.console import Console

from conformance.implementations.jvm.tiered import STORAGE_OF
from conformance.kafka.releases import RELEASES, newest
from conformance.lockstep.divergence import DivergenceError, failure_json
from conformance.machines import CacheMachine, TieredMachine
from conformance.runs.chunks import run_chunk
from conformance.runs.divergence_event import new_trace
from conformance.runs.profiles import Profile
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of
from tests.bench.long_fuzz import commit
from tests.bench.table_report import machine, write_page

if TYPE_CHECKING:
    from conformance.machines.files import FilesMachine


class Bench(NamedTuple):
    """Machine with its releases, profile, and the introduction of its page."""

    machine: type[FilesMachine]
    releases: tuple[str, ...]
    profile: Profile
    title: str
    introduction: str


BENCHES = {
    "cache": Bench(
        CacheMachine,
        tuple(release for release in RELEASES if dialect_of(release).has_remote_index_cache),
        Profile("cache", examples=40, steps=60, seed=None),
        "Cache of remote index files",
        "The cache machine fetches, looks up, evicts, removes, corrupts and reopens caches of remote index files.\n"
        "Kafka's own `RemoteIndexCache` executed each step in lockstep with kidx. Compared are outcome, entries and\n"
        "every file, after every step.",
    ),
    "tiered": Bench(
        TieredMachine,
        tuple(STORAGE_OF),
        Profile("tiered", examples=10, steps=30, seed=None),
        "Log of two tiers",
        "The tiered machine appends, copies, deletes locally and remotely, truncates and reopens logs with remote\n"
        "storage. Kafka's own `UnifiedLog` and `RemoteLogManager` executed each step in lockstep with kidx, over\n"
        "`LocalTieredStorage`. Compared are outcome, local files, offsets of both tiers, and metadata and files of\n"
        "every remote segment. The targets -1 to -6 and the timestamps at every boundary are listed after every rule.",
    ),
}
HEADS = ("clause", "steps that exercised it, in the rules of {release}")


def chunk(bench: Bench, lockstep: Any, number: int, directory: Path, tree: str) -> dict[str, Any]:
    """Run one chunk of examples, and return its counts."""
    before = lockstep.statistics
    examples, steps, clauses = before.examples, before.steps, Counter(before.exercised(newest()))
    started, traces, examples_each = time.monotonic(), [], bench.profile.examples
    try:
        run_chunk(bench.machine.bind(lockstep), bench.profile.settings(examples_each), number, examples_each)
    except (DivergenceError, FlakyFailure) as failed:
        # A divergence that does not occur again is one, too.
        error = failed if isinstance(failed, DivergenceError) else failed.exceptions[0]
        if not isinstance(error, DivergenceError):
            raise
        lockstep.failure = None
        failure = failure_json(error.divergence)
        trace = new_trace(bench.machine.kind, error.divergence.release, error.operations, failure, seed=number)
        traces.append(str(trace.save(directory)))
    after = lockstep.statistics
    return {
        "seed": number,
        "commit": tree,
        "releases": bench.releases,
        "examples": after.examples - examples,
        "steps": (after.steps - steps) * len(bench.releases),
        "seconds": round(time.monotonic() - started, 1),
        "clauses": Counter(after.exercised(newest())) - clauses,
        "traces": traces,
    }


def page(bench: Bench, path: Path, chunks: Sequence[dict[str, Any]], drawn: int) -> None:
    """Write the sums of the chunks as a page."""
    total = {name: sum(each[name] for each in chunks) for name in ("examples", "steps", "seconds")}
    diverged = sum(bool(each["traces"]) for each in chunks)
    clauses: Counter[str] = Counter()
    for each in chunks:
        clauses.update(each["clauses"])
    made_by = f"python3 bootstrap.py python -m tests.bench.cache_steps DIR --machine {bench.machine.kind}"
    made_by += f" --seed {drawn} --markdown {path}"
    count = len(bench.releases)
    traces = "".join(f"; {trace}" for each in chunks for trace in each["traces"])
    introduction = f"""Made by `{made_by}`.

{bench.introduction}

{count} releases: {", ".join(bench.releases)}.

{total["steps"]:,} steps in all ({total["steps"] // count:,} in each release) of {total["examples"]:,} examples in
{len(chunks):,} chunks, whose seeds begin at {drawn}; {total["seconds"]:,.0f} seconds; commit
{", ".join(sorted({each["commit"] for each in chunks}))}. Chunks with a divergence: {diverged}{traces}.

{machine("hypothesis", "jpype1")}."""
    heads = [head.format(release=newest()) for head in HEADS]
    rows = [(clause, f"{count:,}") for clause, count in sorted(clauses.items())]
    write_page(path, bench.title, introduction, heads, rows)


def main() -> None:
    """Run chunks until enough steps have been executed, or the time is over; write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--machine", choices=BENCHES, default="cache")
    parser.add_argument("--steps", type=int, default=1_000_000, help="number of steps of all releases together")
    parser.add_argument("--max-time", type=float, default=7200.0, help="seconds for this call")
    parser.add_argument("--seed", type=int, help="seed of the first chunk; drawn and printed by default")
    parser.add_argument("--markdown", type=Path, help="page that is written")
    options = parser.parse_args()
    bench = BENCHES[options.machine]
    options.directory.mkdir(parents=True, exist_ok=True)
    kept = options.directory / "chunks.ndjson"
    chunks = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    drawn = chunks[0]["seed"] if chunks else options.seed
    if drawn is None:
        drawn = secrets.randbelow(1 << 30)
    console = Console(width=120)
    console.print(f"seed {drawn}, {len(bench.releases)} releases", highlight=False)
    tree = commit()
    until = time.monotonic() + options.max_time
    with scratch_directory() as scratch:
        lockstep = bench.machine.new_lockstep([bench.machine.jvm(release) for release in bench.releases], scratch)
        while sum(each["steps"] for each in chunks) < options.steps and time.monotonic() < until:
            chunks.append(chunk(bench, lockstep, drawn + len(chunks), options.directory, tree))
            with kept.open("a", encoding="utf-8") as stream:
                stream.write(f"{json.dumps(chunks[-1])}\n")
            steps = sum(each["steps"] for each in chunks)
            console.print(len(chunks), f"{steps:,} steps", *chunks[-1]["traces"], highlight=False)
    if options.markdown:
        page(bench, options.markdown, chunks, drawn)
    raise SystemExit(any(each["traces"] for each in chunks))


if __name__ == "__main__":
    main()
