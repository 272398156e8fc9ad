"""Runs for a board: each implementation by itself, without expectations, so that what is known is shown, too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.report.ndjson import NdjsonWriter
from conformance.report.stream import Stream, read_stream
from conformance.runs.campaign import run
from conformance.runs.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.kafka.fetch import Progress
    from conformance.runs.profiles import Profile
    from conformance.runs.seeds import Wish
    from conformance.runs.wire_options import WireOptions


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is done with each implementation; as of a run."""

    profile: Profile
    seed: Wish = None
    max_examples: int | None = None
    max_time: float | None = None


def perform(
    implementation: str,
    releases: tuple[str, ...],
    machines: tuple[str, ...],
    extent: Extent,
    directory: Path,
    *,
    wire: WireOptions | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Stream:
    """Hold one implementation to its releases, and keep events and traces in a directory of its own.

    Args:
        implementation: as ``-i`` takes it.
        releases: of Kafka, oldest first.
        machines: that drive it.
        extent: how much.
        directory: has one directory for each implementation.
        wire: how a broker is reached.
        progress: told while jars are being fetched.
        announce: told what is about to be done to brokers that are not the harness's own.

    Raises:
        ToolError: the work cannot be done.
    """
    place = directory / (re.sub(r"[^A-Za-z0-9.]+", "-", implementation).strip("-")[:80] or "it")
    with NdjsonWriter(place) as writer:
        nothing_expected = place / "nothing-expected"
        nothing_expected.mkdir(exist_ok=True)
        plan = Plan(
            releases,
            (implementation,),
            machines,
            extent.profile,
            place / "traces",
            extent.seed,
            extent.max_examples,
            extent.max_time,
            expectations=nothing_expected,
            wire=wire,
        )
        run(plan, writer, progress, announce)
    return read_stream(writer.path)
