"""Steps in which a release's classes differ from a dialect: drawn by the machines, shrunk, as traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.events import Diverged
from conformance.operations.trace import Trace
from conformance.runs.campaign import Plan, run
from conformance.runs.profiles import PROFILES
from kidx.dialect import override_dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.events import Event
    from conformance.kafka.jar_fetch import Progress
    from kidx.dialect import Dialect


def hunt(
    dialect: Dialect,
    machines: Sequence[str],
    traces: Path,
    examples: int | None,
    *,
    first: bool = False,
    progress: Progress | None = None,
) -> list[Trace]:
    """Runs machines against a release that is held to a dialect.

    Args:
        dialect: of the release.
        machines: their names.
        traces: where traces are written.
        examples: for each machine; the profile's by default.
        first: end with the first difference.
        progress: called while jars are fetched.

    Returns:
        A trace of each difference.
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
