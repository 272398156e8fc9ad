"""Test runs for the scoreboard: each implementation alone. Known divergences count, too: no expectations are used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.report.ndjson import NdjsonWriter
from conformance.report.stream import Stream, read_stream
from conformance.runs.plan import Plan
from conformance.runs.runner import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.kafka.jar_fetch import Progress
    from conformance.runs.profiles import Profile
    from conformance.runs.seeds import SeedRequest
    from conformance.runs.wire_options import WireOptions


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Amount of work for each implementation: options of ``conformance run``."""

    profile: Profile
    seed: SeedRequest = None
    max_examples: int | None = None
    max_time: float | None = None


def run_implementation(
    implementation: str,
    releases: tuple[str, ...],
    machines: tuple[str, ...],
    budget: RunBudget,
    directory: Path,
    *,
    wire: WireOptions | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Stream:
    """Run one implementation, and write events and traces to a separate directory.

    Args:
        implementation: argument of ``-i``.
        releases: releases of Kafka, oldest first.
        machines: state machines to run.
        budget: amount of work.
        directory: parent of each implementation's directory.
        wire: options for the connection to a broker, or None.
        progress: called while jars are fetched.
        announce: called with the actions that the run will take on brokers that the harness did not start.

    Raises:
        ToolError: the run is not possible.
    """
    own = directory / (re.sub(r"[^A-Za-z0-9.]+", "-", implementation).strip("-")[:80] or "it")
    with NdjsonWriter(own) as writer:
        nothing_expected = own / "nothing-expected"
        nothing_expected.mkdir(exist_ok=True)
        plan = Plan(
            releases,
            (implementation,),
            machines,
            budget.profile,
            own / "traces",
            budget.seed,
            budget.max_examples,
            budget.max_time,
            expectations=nothing_expected,
            wire=wire,
        )
        run(plan, writer, progress, announce)
    return read_stream(writer.path)
