"""A process that a step has killed: which participant, and which steps.

A Java that crashes takes its process along, and nothing is left to say at which step. So the chunk is performed again
in a process that writes each step down before it performs it, and then the steps by each participant alone.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.kafka.releases import know_releases
from conformance.operations import Operation
from conformance.runs.machine_run import machine_run
from conformance.runs.shrinking.hanging import Candidates
from conformance.scratch import scratch_directory
from kidx.workers import begin_worker, start_quietly

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.expectations import ExpectationTracker
    from conformance.lockstep.watchdog import Hang
    from conformance.runs.chunks import Chunk
    from conformance.runs.plan import Plan

_PATIENCE: Final = 600.0
"""Seconds that a chunk may take when it is performed again."""


def death_of(
    plan: Plan,
    ledger: ExpectationTracker,
    machine: str,
    chunks: Iterable[Chunk],
    participants: Sequence[tuple[str, str, str]],
) -> Hang | None:
    """Return the step that kills the process that performs it, behind the steps of its example.

    Args:
        plan: of the run.
        ledger: the known differences.
        machine: whose chunks they are.
        chunks: those of which one has killed a process.
        participants: for each of them how it was asked for, its name and its release.

    Returns:
        The step with the participant that dies of it; None if no process dies again.
    """
    for chunk in chunks:
        operations = _steps_before_death(plan, ledger, machine, chunk)
        for specification, name, release in participants if operations else ():
            candidates = Candidates(machine, release, (specification,), plan.step_timeout)
            try:
                found = _first_death(candidates, operations)
            finally:
                candidates.end()
            if found is not None:
                return replace(found, divergence=replace(found.divergence, participant=name))
    return None


def _first_death(candidates: Candidates, operations: Sequence[Operation]) -> Hang | None:
    """Return the first step that kills; steps are handed over in batches, so that later ones may be noted, too."""
    found = candidates.perform(operations)
    lives, dies = 0, len(operations)
    while found is not None and dies - lives > 1:
        middle = (lives + dies) // 2
        earlier = candidates.perform(operations[:middle])
        if earlier is None:
            lives = middle
        else:
            found, dies = earlier, middle
    return found


def _steps_before_death(plan: Plan, ledger: ExpectationTracker, machine: str, chunk: Chunk) -> tuple[Operation, ...]:
    """Perform a chunk in another process; return the steps of the example that has killed it, none if it lives."""
    context = multiprocessing.get_context("spawn")
    with scratch_directory() as scratch:
        journal = scratch / "journal"
        process = context.Process(target=_perform, args=(plan, ledger, machine, chunk, journal), daemon=True)
        start_quietly(process)
        process.join(_PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
            return ()
        if process.exitcode >= 0:
            return ()
        lines = journal.read_text("utf-8").splitlines() if journal.exists() else []
        return tuple(Operation.from_json(json.loads(line)) for line in lines)


def _perform(plan: Plan, ledger: ExpectationTracker, machine: str, chunk: Chunk, path: Path) -> None:
    """In the other process."""
    begin_worker()
    know_releases(plan.releases)
    directory = path.with_name("run")
    directory.mkdir()
    with path.open("w", encoding="utf-8", buffering=1) as file, machine_run(plan, machine, directory, ledger) as run:

        def note(operation: Operation | None) -> None:
            if operation is None:
                file.seek(0)
                file.truncate()
            else:
                file.write(json.dumps(operation.to_json()) + "\n")

        run.lockstep.journal = note
        run.perform_chunk(chunk)
