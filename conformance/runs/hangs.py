"""Hangs: the events that report a hang in a run, and the message from a worker to its parent process.

In an experiment, the steps of a hang are shrunk, saved and reported, and the process ends.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.lockstep.divergence import failure_json
from conformance.lockstep.watchdog import Hang, exit_process, hang_from_json, watch_steps
from conformance.operations import KINDS
from conformance.operations.trace import Trace, TraceError
from conformance.runs.divergence_event import replay_command
from conformance.runs.divergence_reporter import as_event
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.shrinking.hang import shrink_hang
from conformance.runs.shrinking.search import SHRINK_SECONDS
from conformance.runs.verdicts import results_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.events import Event
    from conformance.operations import Json
    from conformance.runs.chunks import ChunkResult
    from conformance.runs.machine_run import MachineRun

GRACE: Final = 5.0
"""The minimum time limit of a step in seconds, even in a very short run."""


class WorkerHangError(Exception):
    """Hang or crash of a worker, which has ended.

    Attributes:
        task: What the worker ran: the name of a machine, or of a mutant in a measurement.
    """

    def __init__(self, task: str, hang: Hang) -> None:
        super().__init__(str(hang.failure))
        self.task = task
        self.hang = hang


def step_limit(step_timeout: float, max_time: float | None) -> float:
    """Return the time limit of a step in seconds, in a run that may take ``max_time`` seconds."""
    return step_timeout if max_time is None else min(step_timeout, max(max_time, GRACE))


def events_of(run: MachineRun, hang: Hang, evidence: ChunkResult, seed: int, machine: str = "") -> list[Event]:
    """Return the events after a hang: the other divergences of its machine, not shrunk, and a result per participant.

    Args:
        evidence: The result of the chunks before the hang.
        machine: The machine of the step, if the worker has continued with another machine.
    """
    participant = hang.divergence.participant
    specification = run.specification(participant)
    reference = participant not in {subject.name for _, subject in run.subjects}
    machine = machine or run.name
    event = as_event(run, hang.failure, seed, "" if reference else specification, machine)
    events: list[Event] = [replace(event, signature=hang.shape)]
    found = deduplicate(run.name, evidence.buckets, run.specification, evidence.credited)
    for one in found:
        bucket = one.representative
        failure = Hang(bucket.divergence, bucket.operations).failure
        event = as_event(run, failure, seed, run.specification(bucket.divergence.participant))
        events.append(replace(event, clause=one.clause, releases=one.releases, occurrences=one.count))
    for result in results_of(run, evidence, found, time.monotonic() - run.started):
        mine = result.implementation == specification and result.release == hang.divergence.release
        mine = mine and machine == run.name
        events.append(replace(result, divergences=result.divergences + 1) if mine else result)
    return events


def save_hang(hang: Hang, machine: str, directory: Path) -> None:
    """Save a hang for the parent process."""
    trace = Trace(machine, hang.divergence.release, hang.operations, failure_json(hang.divergence))
    trace.save(directory)


def load_hang(directory: Path) -> tuple[str, Hang] | None:
    """Return the machine and the hang that a worker has saved, or None."""
    for path in sorted(directory.glob("*.json")):
        try:
            trace = Trace.load(path)
        except TraceError:
            continue
        return trace.machine, hang_from_json(trace.failure or {}, trace.operations)
    return None


@dataclass(frozen=True)
class HangReport:
    """Report of a hang.

    Attributes:
        hang: The step that hangs, and the steps before it.
        specification: The ``-i`` argument of the participant; empty for the reference.
        release: The release of the participant's classes or dialect.
    """

    machine: str
    hang: Hang
    trace: Path
    specification: str
    release: str

    @property
    def replay(self) -> str:
        """The command that replays the steps."""
        return replay_command(self.trace, self.release, self.specification)

    def to_json(self) -> Json:
        """Return the report as one document."""
        return {
            "verdict": "no answer",
            "machine": self.machine,
            "failure": failure_json(self.hang.divergence),
            "steps": [operation.to_json() for operation in self.hang.operations],
            "shrinking": self.hang.shrinking,
            "trace": str(self.trace),
            "replay": self.replay,
        }

    def __str__(self) -> str:
        divergence = self.hang.divergence
        return "\n".join(
            (
                f"{divergence.participant} timed out ({self.machine} machine), step {divergence.step + 1}",
                f"  expected     {divergence.expected}",
                *(f"  {line}" for line in str(divergence.actual).splitlines()),
                f"  steps        {self.hang.shrinking}",
                *(f"  {number:>3}  {step}" for number, step in enumerate(self.hang.operations, start=1)),
                f"  trace        {self.trace}",
                f"  replay       {self.replay}",
            )
        )


def report_hang(
    hang: Hang,
    traces: Path,
    limit: float,
    shrink_time: float = SHRINK_SECONDS,
    implementation: tuple[str, str] | None = None,
) -> HangReport:
    """Shrink the steps to a hang, and save them.

    Args:
        traces: The directory for the trace.
        limit: The time in seconds that the step has taken.
        shrink_time: The maximum time in seconds for shrinking.
        implementation: The ``-i`` argument of the participant and its release; by default derived from its name.
    """
    specification, release = implementation or (_specification(hang), hang.divergence.release)
    machine = machine_of(hang)
    short = shrink_hang(hang, machine, specification, limit, shrink_time, release)
    provenance = {"shrinking": short.shrinking}
    failure = failure_json(short.divergence)
    trace = Trace(machine, release, short.operations, failure, "a step hangs", provenance)
    return HangReport(machine, short, trace.save(traces), specification, release)


@contextmanager
def exit_on_hang(
    traces: Path, on_report: Callable[[HangReport], None], limit: float, shrink_time: float = SHRINK_SECONDS
) -> Iterator[None]:
    """Watch the steps of an experiment. A hang is reported, and ends the process with exit code 1.

    Args:
        traces: The directory for traces.
        on_report: A callback that receives the report; it is called in another thread.
        limit: The maximum duration of a step in seconds.
        shrink_time: The maximum time in seconds for shrinking.
    """

    def give_up(hang: Hang) -> None:
        try:
            on_report(report_hang(hang, traces, limit, shrink_time))
        finally:
            exit_process(1)

    with watch_steps(limit, give_up):
        yield


def machine_of(hang: Hang) -> str:
    """Return the machine of the operations; for an index file, it is the kind of the index."""
    first = hang.operations[0]
    if first.name == "open" and first.args[0] in KINDS:
        return str(first.args[0])
    return "log" if any(operation.name.endswith("_log") for operation in hang.operations) else "segment"


def _specification(hang: Hang) -> str:
    """Return the ``-i`` argument of the participant, whose name is this argument followed by the release."""
    name = hang.divergence.participant.removesuffix(f" {hang.divergence.release}")
    return "" if name == "kidx" else name
