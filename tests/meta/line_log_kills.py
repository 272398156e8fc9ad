"""Recorder of the traces that kill defects of a log over pipes: ``python -m tests.meta.line_log_kills [NAME ...]``."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "adapters"))

from log_defects import DEFECTS

from conformance.events import Diverged, Event
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run
from kidx.commands.line import say
from tests.support.kill_file import keep_kill, load_kills

ADAPTERS = Path(__file__).parents[1] / "adapters"
KILLS = Path(__file__).with_suffix(".ndjson")
RELEASE = "4.4.0"
EXAMPLES = 600


def command() -> list[str]:
    """Return the command of the adapter, without its release."""
    return [sys.executable, str(ADAPTERS / "line_log.py")]


def implementation(*arguments: str) -> str:
    """Return the adapter, as a specification."""
    return f"exec:{shlex.join([*command(), RELEASE, *arguments])}"


def hunt(name: str, traces: Path, *, shrink: float = 10.0) -> Diverged | None:
    """Return the first divergence of a run of the log machine from seed 0, with only Python, or None."""
    events: list[Event] = []
    plan = Plan(
        (RELEASE,),
        (implementation("--defect", name),),
        ("log",),
        PROFILES["ci"],
        traces,
        seed=0,
        max_examples=EXAMPLES,
        max_time=120.0,
        replays=False,
        shrink_time=shrink,
        stop_at_first=True,
    )
    run(plan, events.append)
    return next((event for event in events if isinstance(event, Diverged)), None)


def main() -> None:
    """Record traces of the named defects, or of those without a trace."""
    for name in sys.argv[1:] or [name for name in DEFECTS if name not in load_kills(KILLS)]:
        with tempfile.TemporaryDirectory() as directory:
            found = hunt(name, Path(directory))
            if found is None:
                say(f"{name}: not found within {EXAMPLES} examples")
                continue
            keep_kill(KILLS, name, Trace.load(found.trace))
            say(f"{name}: {len(found.steps)} steps, {found.signature}")


if __name__ == "__main__":
    main()
