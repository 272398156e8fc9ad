"""Hangs in a run: the events that report a hang, and the message from a worker to its parent process."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.lockstep.divergence import failure_json
from conformance.lockstep.watchdog import Hang, hang_from_json
from conformance.operations.trace import Trace, TraceError
from conformance.runs.divergence_reporter import as_event
from conformance.runs.divergences.deduplication import deduplicate
from conformance.runs.verdicts import results_of

if TYPE_CHECKING:
    from conformance.events import Event
    from conformance.runs.chunk_result import ChunkResult
    from conformance.runs.machine_run import MachineRun

GRACE: Final = 5.0
"""The minimum time limit of a step in seconds, even in a very short run."""


class WorkerHangError(Exception):
    """Hang or crash of a worker, which has ended."""

    def __init__(self, machine: str, hang: Hang) -> None:
        super().__init__(str(hang.failure))
        self.machine = machine
        self.hang = hang


def step_limit(step_timeout: float, max_time: float | None) -> float:
    """Return the time limit of a step in seconds, in a run that may take ``max_time`` seconds."""
    return step_timeout if max_time is None else min(step_timeout, max(max_time, GRACE))


def events_of(run: MachineRun, hang: Hang, evidence: ChunkResult, seed: int, machine: str = "") -> list[Event]:
    """Return the events after a hang: the other divergences of its machine, not shrunk, and a result per participant.

    Args:
        run: The machine run.
        hang: The hang.
        evidence: The result of the chunks before the hang.
        seed: The seed of the run.
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
