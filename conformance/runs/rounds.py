"""All examples of one machine, from the traces that are kept to the last chunk, added up in the order of the seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from conformance.events import Progressed, Replayed
from conformance.runs.chunks import chunks_of
from conformance.runs.evidence import Evidence, is_over

if TYPE_CHECKING:
    from conformance.events import Sink
    from conformance.runs.chunks import Chunk
    from conformance.runs.crew import Crew
    from conformance.runs.machine_run import MachineRun


def play(
    run: MachineRun,
    seed: int,
    limit: float | None,
    sink: Sink,
    crew: Crew | None = None,
    departed: Callable[[Evidence], None] = lambda _: None,
) -> Evidence:
    """Performs the kept traces, then chunks until the examples or the seconds are used up; at least one example.

    Args:
        run: the machine's, in this process.
        seed: of the run.
        limit: seconds; None for no limit.
        sink: told of progress.
        crew: processes that share the chunks; None for this one alone.
        departed: told after every chunk, in which a participant may have left the run.
    """
    started = time.monotonic()
    deadline = None if limit is None else started + limit
    wanted = run.plan.examples_of(run.name)
    names = [subject.name for _, subject in run.subjects]
    total = run.total = Evidence()
    if not names and run.unsupported:
        return total
    if run.plan.kept:
        kept, traces, diverged = run.perform_kept()
        total.add(kept, run.patience)
        departed(total)
        if traces:
            sink(Replayed(run.name, traces, diverged))
    before = total.examples
    for chunk, evidence in _evidence_of(run, seed, wanted, crew, deadline, total):
        total.add(evidence, run.patience)
        departed(total)
        late = deadline is not None and time.monotonic() >= deadline
        total.cut = (total.cut or late) and total.examples - before < wanted
        over = is_over(total, names, run.patience)
        if chunk.ends_round or over:
            used = (time.monotonic() - started) / limit if limit else 0.0
            share = 1.0 if total.cut else max(chunk.done / wanted, min(1.0, used))
            sink(Progressed(run.name, total.examples, total.steps, share))
        if over:
            break
    return total


def _evidence_of(
    run: MachineRun, seed: int, wanted: int, crew: Crew | None, deadline: float | None, total: Evidence
) -> Iterator[tuple[Chunk, Evidence]]:
    """The chunks of a seed with their evidence, in order, whichever process has performed them; none if all is over."""
    if is_over(total, [subject.name for _, subject in run.subjects], run.patience):
        return
    chunks = chunks_of(run.name, wanted, seed)
    if crew is not None:
        yield from crew.perform(run, chunks, deadline)
        return
    for chunk in chunks:
        yield chunk, run.perform_chunk(chunk, lambda: deadline is not None and time.monotonic() >= deadline)
