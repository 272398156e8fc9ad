"""Loop over all examples of one machine: first the regression traces, then chunks, whose results are added in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from conformance.events import Progressed, Replayed
from conformance.runs.chunk_result import ChunkResult, is_over
from conformance.runs.chunks import chunks_of

if TYPE_CHECKING:
    from conformance.events import Sink
    from conformance.runs.chunk_workers import ChunkWorkers
    from conformance.runs.chunks import Chunk
    from conformance.runs.machine_run import MachineRun


def run_examples(
    run: MachineRun,
    seed: int,
    limit: float | None,
    sink: Sink,
    workers: ChunkWorkers | None = None,
    on_dropout: Callable[[ChunkResult], None] = lambda _: None,
) -> ChunkResult:
    """Replay the regression traces, then run chunks of examples, until the time is up; at least one of each.

    If the plan has a trace, execute it instead.

    Args:
        run: The machine run of this process.
        seed: The seed of the run.
        limit: The maximum time in seconds; None for no limit.
        sink: A callback that receives progress events.
        workers: The worker pool; None to use only this process.
        on_dropout: A callback that receives the total after every chunk, in which a participant may have dropped out.
    """
    started = time.monotonic()
    deadline = None if limit is None else started + limit

    def is_late() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    wanted = run.plan.examples_of(run.name)
    names = [subject.name for _, subject in run.subjects]
    total = run.total = ChunkResult()
    if not names and run.unsupported:
        return total
    if run.plan.trace is not None:
        total.add(run.replay_trace(run.plan.trace), run.max_failures)
        return total
    if run.plan.kept:
        result, traces, diverged = run.replay_regression_traces(is_late)
        total.add(result, run.max_failures)
        on_dropout(total)
        if traces:
            sink(Replayed(run.name, traces, diverged))
    before = total.examples
    for chunk, evidence in _chunk_results(run, seed, wanted, workers, deadline, total):
        total.add(evidence, run.max_failures)
        on_dropout(total)
        total.cut = (total.cut or is_late()) and total.examples - before < wanted
        over = is_over(total, names, run.max_failures)
        if chunk.ends_round or over:
            used = (time.monotonic() - started) / limit if limit else 0.0
            finished = 1.0 if total.cut else max(chunk.done / wanted, min(1.0, used))
            sink(Progressed(run.name, total.examples, total.steps, finished))
        if over:
            break
    return total


def _chunk_results(
    run: MachineRun, seed: int, wanted: int, workers: ChunkWorkers | None, deadline: float | None, total: ChunkResult
) -> Iterator[tuple[Chunk, ChunkResult]]:
    """Yield the chunks of a seed with their results, in order; stop early if the run must stop."""
    if is_over(total, [subject.name for _, subject in run.subjects], run.max_failures):
        return
    chunks = chunks_of(run.name, wanted, seed)
    if workers is not None:
        yield from workers.perform(run, chunks, deadline)
        return
    for chunk in chunks:
        yield chunk, run.run_chunk(chunk, lambda: deadline is not None and time.monotonic() >= deadline)
