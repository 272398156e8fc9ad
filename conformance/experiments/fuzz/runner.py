"""Fuzzing run: every bit of a small file is flipped, then file contents are mutated until the time limit.

A finding is a divergence or a crash. The first finding of each operation and differing aspect is saved as a trace.
Contents with new outcomes are added to a corpus, which the next run also uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from conformance.errors import ToolError
from conformance.experiments.fuzz.batches import BatchedExecutor
from conformance.experiments.fuzz.corpus import Corpus
from conformance.experiments.fuzz.executor import CaseExecutor
from conformance.experiments.fuzz.format_run import BatchedRun, InputChooser, Run
from conformance.experiments.fuzz.plan import FindingCallback, FuzzPlan, FuzzResult, peak_bytes
from conformance.experiments.fuzz.probes import MACHINE_OF
from conformance.experiments.fuzz.seed_files import SEEDS
from conformance.implementations.spec import parse_spec
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress


def fuzz(
    plan: FuzzPlan, on_finding: FindingCallback = lambda _: None, progress: Progress | None = None
) -> list[FuzzResult]:
    """Run a plan, its formats one after another, each with an equal share of the time.

    Args:
        plan: The plan.
        on_finding: A callback that receives a description of every finding.
        progress: A callback that is called while jars are downloaded.

    Raises:
        ToolError: An implementation is not available, or a directory cannot be used.
    """
    started = time.monotonic()
    results = []
    for number, format_name in enumerate(plan.formats):
        left = plan.max_time - (time.monotonic() - started)
        seconds = left / (len(plan.formats) - number)
        results.append(fuzz_format(plan, format_name, seconds, on_finding, progress))
    return results


def fuzz_format(
    plan: FuzzPlan,
    format_name: str,
    seconds: float,
    on_finding: FindingCallback = lambda _: None,
    progress: Progress | None = None,
    choose_inputs: InputChooser | None = None,
    on_start: Callable[[FuzzResult], None] = lambda _: None,
) -> FuzzResult:
    """Fuzz files of one format for some seconds.

    Args:
        plan: The plan, as for :func:`fuzz`.
        format_name: The format: ``offset``, ``time``, ``txn`` or ``log``.
        seconds: The time limit.
        on_finding: A callback, as for :func:`fuzz`.
        progress: A callback, as for :func:`fuzz`.
        choose_inputs: A function that chooses the inputs, such as a coverage-guided fuzzer, or None for random
            mutations.
        on_start: A callback that receives the result object before the run, which updates the object.

    Raises:
        ToolError: As :func:`fuzz`.
    """
    from conformance.machines import MACHINES  # noqa: PLC0415 -- --help has to be fast

    started, processor = time.monotonic(), time.process_time()
    machine = MACHINES.get(MACHINE_OF[format_name])  # the state machine that tests files of the format
    if machine is None:
        raise ToolError(f"the format {format_name!r} cannot be fuzzed: no machine reads it")
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory())
        seeds = SEEDS[format_name](scratch)
        corpus = Corpus(plan.corpus / format_name, seeds)

        def executor() -> CaseExecutor:
            pairs = [(name, release) for name in plan.implementations for release in plan.releases]
            subjects = [machine.subject(name, release, progress) for name, release in pairs]
            lockstep = machine.new_lockstep(subjects, scratch / "participants", releases=plan.releases)
            return CaseExecutor(format_name, lockstep)

        run: Run
        if choose_inputs is None and all(parse_spec(text).form == "jvm" for text in plan.implementations):
            (scratch / "batches").mkdir()
            batches = BatchedExecutor(format_name, plan.releases, plan.implementations, scratch / "batches", progress)
            stack.callback(batches.close)
            run = BatchedRun(plan, format_name, executor, corpus, on_finding, batches)
        else:
            run = Run(plan, format_name, executor, corpus, on_finding, choose_inputs)
        on_start(run.result)
        run.flip_every_bit(seeds[0], started + seconds)
        run.mutate(started + seconds)
        run.finish()
    run.result.kept = len(corpus.contents)
    run.result.seconds = time.monotonic() - started
    run.result.processor_seconds = time.process_time() - processor
    run.result.peak_bytes = peak_bytes()
    return run.result
