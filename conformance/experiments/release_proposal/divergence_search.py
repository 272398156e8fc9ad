"""Search for differences between a release's classes and a dialect of kidx, by Hypothesis state machines.

A dialect has the value of every behaviour that differs between releases. Differences are saved as traces.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.events import Diverged
from conformance.operations.trace import Trace
from conformance.runs.profiles import PROFILES
from conformance.runs.runner import Plan, run
from kidx.dialect import override_dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.events import Event
    from conformance.kafka.jar_fetch import Progress
    from kidx.dialect import Dialect


def search_divergences(
    dialect: Dialect,
    machines: Sequence[str],
    traces: Path,
    examples: int | None,
    *,
    first: bool = False,
    progress: Progress | None = None,
) -> list[Trace]:
    """Compare a release's classes with a dialect, and return a trace of each difference.

    Args:
        dialect: The dialect, with the name of the release.
        machines: The names of the state machines.
        traces: The directory of the traces.
        examples: The number of examples for each machine; by default the profile's number.
        first: True to stop at the first difference.
        progress: A callback that is called while jars are downloaded.
    """
    found: list[Trace] = []

    def note(event: Event) -> None:
        if isinstance(event, Diverged) and event.implementation:
            found.append(Trace.load(Path(event.trace)))

    plan = Plan(
        (dialect.release,),
        ("jvm",),
        tuple(machines),
        PROFILES["dev"],
        traces,
        max_examples=examples,
        kept=False,
        stop_at_first=first,
        model=False,
    )
    with override_dialect(dialect):
        run(plan, note, progress)
    return found
