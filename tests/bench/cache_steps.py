"""Long run of the cache machine: ``python -m tests.bench.cache_steps DIR --markdown reports/cache.md``.

All releases with a cache of remote index files execute the steps in lockstep with kidx. The run goes in chunks of
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
from typing import Any

from hypothesis.errors import FlakyFailure
from rich.console import Console

from conformance.implementations.jvm.cache import JvmCache
from conformance.kafka.releases import RELEASES, newest
from conformance.lockstep.divergence import DivergenceError, failure_json
from conformance.lockstep.scopes.cache import CacheLockstep
from conformance.machines.cache import CacheMachine
from conformance.runs.chunks import run_chunk
from conformance.runs.divergence_event import new_trace
from conformance.runs.profiles import Profile
from conformance.scratch import scratch_directory
from kidx.dialect import dialect_of
from tests.bench.long_fuzz import commit
from tests.bench.table_report import machine, write_page

HAVING = [release for release in RELEASES if dialect_of(release).has_remote_index_cache]
PROFILE = Profile("cache", examples=40, steps=60, seed=None)
HEADS = ("clause", "steps that exercised it, in the rules of {release}")


def chunk(lockstep: CacheLockstep, number: int, directory: Path, tree: str) -> dict[str, Any]:
    """Run one chunk of examples, and return its counts."""
    before = lockstep.statistics
    examples, steps, clauses = before.examples, before.steps, Counter(before.exercised(newest()))
    started, traces = time.monotonic(), []
    try:
        run_chunk(CacheMachine.bind(lockstep), PROFILE.settings(PROFILE.examples), number, PROFILE.examples)
    except (DivergenceError, FlakyFailure) as failed:
        # A divergence that does not occur again is one, too.
        error = failed if isinstance(failed, DivergenceError) else failed.exceptions[0]
        if not isinstance(error, DivergenceError):
            raise
        lockstep.failure = None
        failure = failure_json(error.divergence)
        trace = new_trace("cache", error.divergence.release, error.operations, failure, seed=number)
        traces.append(str(trace.save(directory)))
    after = lockstep.statistics
    return {
        "seed": number,
        "commit": tree,
        "releases": HAVING,
        "examples": after.examples - examples,
        "steps": (after.steps - steps) * len(HAVING),
        "seconds": round(time.monotonic() - started, 1),
        "clauses": Counter(after.exercised(newest())) - clauses,
        "traces": traces,
    }


def page(path: Path, chunks: Sequence[dict[str, Any]], drawn: int) -> None:
    """Write the sums of the chunks as a page."""
    total = {name: sum(each[name] for each in chunks) for name in ("examples", "steps", "seconds")}
    diverged = sum(bool(each["traces"]) for each in chunks)
    clauses: Counter[str] = Counter()
    for each in chunks:
        clauses.update(each["clauses"])
    made_by = f"python3 bootstrap.py python -m tests.bench.cache_steps DIR --seed {drawn} --markdown {path}"
    traces = "".join(f"; {trace}" for each in chunks for trace in each["traces"])
    introduction = f"""Made by `{made_by}`.

The cache machine fetches, looks up, evicts, removes, corrupts and reopens caches of remote index files. Kafka's own
`RemoteIndexCache` of {len(HAVING)} releases ({", ".join(HAVING)}) executed each step in lockstep with kidx. Compared
are outcome, entries and every file, after every step.

{total["steps"]:,} steps in all ({total["steps"] // len(HAVING):,} in each release) of {total["examples"]:,} examples in
{len(chunks):,} chunks, whose seeds begin at {drawn}; {total["seconds"]:,.0f} seconds; commit
{", ".join(sorted({each["commit"] for each in chunks}))}. Chunks with a divergence: {diverged}{traces}.

{machine("hypothesis", "jpype1")}."""
    heads = [head.format(release=newest()) for head in HEADS]
    rows = [(clause, f"{count:,}") for clause, count in sorted(clauses.items())]
    write_page(path, "Cache of remote index files", introduction, heads, rows)


def main() -> None:
    """Run chunks until enough steps have been executed, or the time is over; write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000, help="number of steps of all releases together")
    parser.add_argument("--max-time", type=float, default=7200.0, help="seconds for this call")
    parser.add_argument("--seed", type=int, help="seed of the first chunk; drawn and printed by default")
    parser.add_argument("--markdown", type=Path, help="page that is written")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    kept = options.directory / "chunks.ndjson"
    chunks = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    drawn = chunks[0]["seed"] if chunks else options.seed
    if drawn is None:
        drawn = secrets.randbelow(1 << 30)
    console = Console(width=120)
    console.print(f"seed {drawn}, {len(HAVING)} releases", highlight=False)
    tree = commit()
    until = time.monotonic() + options.max_time
    with scratch_directory() as scratch:
        lockstep = CacheLockstep([JvmCache(release) for release in HAVING], scratch)
        while sum(each["steps"] for each in chunks) < options.steps and time.monotonic() < until:
            chunks.append(chunk(lockstep, drawn + len(chunks), options.directory, tree))
            with kept.open("a", encoding="utf-8") as stream:
                stream.write(f"{json.dumps(chunks[-1])}\n")
            steps = sum(each["steps"] for each in chunks)
            console.print(len(chunks), f"{steps:,} steps", *chunks[-1]["traces"], highlight=False)
    if options.markdown:
        page(options.markdown, chunks, drawn)
    raise SystemExit(any(each["traces"] for each in chunks))


if __name__ == "__main__":
    main()
