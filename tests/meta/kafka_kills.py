"""Recorder of the traces that kill the broken builds of Kafka: ``python -m tests.meta.kafka_kills [NAME ...]``.

``python -m tests.meta.kafka_kills --table`` prints the table of ``reports/broken_kafkas.md``: every build is searched
for without the regression traces.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from broken_kafka import broken
from kafka_builds import build_at
from kafka_changes import BROKEN, ENDLESS, RELEASE, Broken
from kill_file import keep_kill, load_kills

from conformance.events import Diverged, Event, Result
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run
from kidx.commands.line import say

KILLS = Path(__file__).with_suffix(".ndjson")
EXAMPLES = 2_000


def hunt(
    build: Path, machine: str, traces: Path, *, seconds: float = 120.0, shrink: float = 5.0, replays: bool = True
) -> list[Event]:
    """Return the events of a run of one machine against a build that ends with the first divergence.

    Args:
        build: The directory of the build.
        machine: The machine that drives it.
        traces: The directory for the trace.
        seconds: The time limit; ``EXAMPLES`` is a limit, too.
        shrink: Seconds for shrinking.
        replays: True if the regression traces come first, as in every run.
    """
    events: list[Event] = []
    plan = Plan(
        (RELEASE,),
        (f"jvm:{build}",),
        (machine,),
        PROFILES["ci"],
        traces,
        seed=0,
        max_examples=EXAMPLES,
        max_time=seconds,
        replays=replays,
        shrink_time=shrink,
        stop_at_first=True,
    )
    run(plan, events.append)
    return events


def found_in(events: list[Event]) -> tuple[Diverged | None, int, int]:
    """Return the first divergence, and the examples and steps until it was found."""
    first = next((event for event in events if isinstance(event, Diverged)), None)
    rows = [event for event in events if isinstance(event, Result)]
    return first, sum(row.examples for row in rows), sum(row.steps for row in rows)


def main(names: list[str]) -> int:
    missing = 0
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        sound = build_at(scratch / "sound", RELEASE)
        for name, (machine, change) in _wanted(names).items():
            build = broken(sound, change, scratch / name)
            first, examples, steps = found_in(hunt(build, machine, scratch / "traces"))
            shutil.rmtree(build)
            if first is None:
                missing += 1
                say(f"{name}: NOT FOUND by the {machine} machine in {examples} examples, {steps} steps")
                continue
            trace = Trace.load(first.trace)
            failure = {**(trace.failure or {}), "participant": f"jvm:{name} {RELEASE}"}
            keep_kill(KILLS, name, replace(trace, failure=failure))
            what = first.clause or first.signature
            say(f"{name} | {machine} | {examples} examples, {steps} steps | {len(first.steps)} steps | {what}")
            sys.stdout.flush()
    return 1 if missing else 0


def table() -> int:
    """Print which machine finds each build unaided, after how many examples and steps."""
    say(f"# Broken builds of Kafka {RELEASE}")
    say("")
    say("Each build differs from Kafka in one instruction. `python -m tests.meta.kafka_kills --table`")
    say("prints this page: seed 0, no regression traces, and chunks of examples as in a run.")
    say("The last chunk is counted in full.")
    say("")
    say("| build | class and method | instruction | machine | examples | steps | found by |")
    say("|---|---|---|---|---|---|---|")
    missing = 0
    with tempfile.TemporaryDirectory() as directory:
        sound = build_at(Path(directory) / "sound", RELEASE)
        for name, (machine, change) in BROKEN.items():
            build = broken(sound, change, Path(directory) / name)
            first, examples, steps = found_in(hunt(build, machine, Path(directory) / "traces", shrink=0, replays=False))
            shutil.rmtree(build)
            missing += first is None
            where = f"`{change.class_name.rpartition('/')[2]}.{change.method}`"
            what = f"`{change.old}` number {change.number} is {f'`{change.new}`' if change.new else 'omitted'}"
            by = "NOT FOUND" if first is None else first.clause or first.signature
            say(f"| `{name}` | {where} | {what} | {machine} | {examples} | {steps} | {by} |")
            sys.stdout.flush()
    for name, (machine, change) in ENDLESS.items():
        where = f"`{change.class_name.rpartition('/')[2]}.{change.method}`"
        say("")
        say(f"`{name}` ({where}, {machine} machine) hangs. The watchdog detects it (`tests/cli/test_watchdog.py`).")
    return 1 if missing else 0


def _wanted(names: list[str]) -> dict[str, Broken]:
    if names:
        return {name: BROKEN[name] for name in names}
    return {name: one for name, one in BROKEN.items() if name not in load_kills(KILLS)}


if __name__ == "__main__":
    sys.exit(table() if sys.argv[1:] == ["--table"] else main(sys.argv[1:]))
