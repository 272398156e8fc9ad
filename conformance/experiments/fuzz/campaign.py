"""A fuzzing run: every bit of a small file, then mutations until the time is over.

Findings are traces in a directory of the run; the same difference is kept once. The corpus survives, so that the next
run goes on where this one ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.experiments.fuzz.batches import Batches
from conformance.experiments.fuzz.corpus import Corpus
from conformance.experiments.fuzz.examiner import Examiner
from conformance.experiments.fuzz.plan import FuzzPlan, FuzzResult, Tell, peak_bytes
from conformance.experiments.fuzz.running import BatchedRun, Drive, Run
from conformance.experiments.fuzz.scripts import MACHINE_OF
from conformance.experiments.fuzz.seeds import SEEDS
from conformance.implementations.spec import parse_spec
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress


def fuzz(plan: FuzzPlan, tell: Tell = lambda _: None, progress: Progress | None = None) -> list[FuzzResult]:
    """Runs a plan, its formats one after another, each with its share of the time.

    Args:
        plan: what to do.
        tell: called with every finding, in words.
        progress: called while jars are fetched.

    Raises:
        ToolError: an implementation cannot be had, or a directory not be used.
    """
    started = time.monotonic()
    results = []
    for number, format_name in enumerate(plan.formats):
        left = plan.max_time - (time.monotonic() - started)
        share = left / (len(plan.formats) - number)
        results.append(fuzz_format(plan, format_name, share, tell, progress))
    return results


def fuzz_format(
    plan: FuzzPlan,
    format_name: str,
    seconds: float,
    tell: Tell = lambda _: None,
    progress: Progress | None = None,
    drive: Drive | None = None,
    watch: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:
    """Runs one format for some seconds.

    Args:
        plan: as :func:`fuzz` takes it.
        format_name: which.
        seconds: for everything.
        tell: as :func:`fuzz` takes it.
        progress: likewise.
        drive: chooses the buffers; random ones if None.
        watch: given the result before it begins to fill.

    Raises:
        ToolError: as :func:`fuzz`.
    """
    from conformance.machines import MACHINES  # noqa: PLC0415 -- the machines are heavy, --help is not

    started, processor = time.monotonic(), time.process_time()
    machine = MACHINES.get(MACHINE_OF[format_name])
    if machine is None:
        raise ToolError(f"there is no machine for the format {format_name!r}")
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory())
        seeds = SEEDS[format_name](scratch)
        corpus = Corpus(plan.corpus / format_name, seeds)

        def examiner() -> Examiner:
            pairs = [(name, release) for name in plan.implementations for release in plan.releases]
            subjects = [machine.subject(name, release, progress) for name, release in pairs]
            lockstep = machine.new_lockstep(subjects, scratch / "participants", releases=plan.releases)
            return Examiner(format_name, lockstep)

        run: Run
        if drive is None and all(parse_spec(text).form == "jvm" for text in plan.implementations):
            (scratch / "batches").mkdir()
            batches = Batches(format_name, plan.releases, plan.implementations, scratch / "batches", progress)
            stack.callback(batches.close)
            run = BatchedRun(plan, format_name, examiner, corpus, tell, batches)
        else:
            run = Run(plan, format_name, examiner, corpus, tell, drive)
        watch(run.result)
        run.flip_every_bit(seeds[0], started + seconds)
        run.mutate(started + seconds)
        run.finish()
    run.result.kept = len(corpus.contents)
    run.result.seconds = time.monotonic() - started
    run.result.processor_seconds = time.process_time() - processor
    run.result.peak_bytes = peak_bytes()
    return run.result
