"""Search for the step that has killed a worker process, and for its participant.

A crash of Java ends its process, which can then not report the step. The chunk is therefore run again in a process that
writes each step to a journal before the step is executed. Then each participant executes the steps alone.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TextIO

from conformance.kafka.releases import register_releases
from conformance.lockstep.lockstep import Observer
from conformance.operations import Operation
from conformance.runs.machine_run import machine_run
from conformance.runs.shrinking.hang import Candidates
from conformance.scratch import scratch_directory
from kidx.workers import begin_worker, start_quietly

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.expectations import ExpectationTracker
    from conformance.lockstep.watchdog import Hang
    from conformance.runs.chunks import Chunk
    from conformance.runs.plan import Plan

_PATIENCE: Final = 600.0
"""The maximum time in seconds for running a chunk again."""


def find_crash(
    plan: Plan,
    ledger: ExpectationTracker,
    machine: str,
    chunks: Iterable[Chunk],
    participants: Sequence[tuple[str, str, str]],
) -> Hang | None:
    """Return the step that kills the process, with the steps of its example and the participant that executed it.

    Args:
        machine: The machine of the chunks.
        chunks: The chunks, one of which has killed a process.
        participants: For each participant, its ``-i`` argument, its name and its release.

    Returns:
        The step, or None if no process dies again.
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
    """Return the first step that kills the process in which ``candidates`` executes operations, or None.

    Steps are sent in batches, so the journal may have later ones.
    """
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
    """Run a chunk in another process; return the steps of the example that killed it, or none if it does not die."""
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
    """Run a chunk with a journal, in the other process."""
    begin_worker()
    register_releases(plan.releases)
    directory = path.with_name("run")
    directory.mkdir()
    with path.open("w", encoding="utf-8", buffering=1) as file, machine_run(plan, machine, directory, ledger) as run:
        run.lockstep.observers.append(_Journal(file))
        run.run_chunk(chunk)


class _Journal(Observer):
    """Writer of the steps of the current example to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def begins(self) -> Collection[str]:
        self._file.seek(0)
        self._file.truncate()
        return ()

    def performs(self, operation: Operation) -> bool:
        self._file.write(json.dumps(operation.to_json()) + "\n")
        return True
