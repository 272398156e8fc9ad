"""Mutation testing: many searches in parallel, the mutation scores, and a stream of events with them.

A mutant is kidx with a planted defect. A search runs examples of a state machine until one detects the mutant, and says
how many that took. A detected mutant is killed, any other survives. ``conformance report`` combines the stream with the
streams of runs.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.errors import ToolError
from conformance.events import Measured, RunFinished, RunStarted
from conformance.implementations.mutants import MUTANTS, Mutant, implementation_of
from conformance.implementations.mutants.choices import CHOICES
from conformance.lockstep.watchdog import STEP_TIMEOUT_S, exit_process, watch_steps
from conformance.machines import MACHINES
from conformance.report.stream import NdjsonWriter
from conformance.runs.chunks import chunks_of, run_chunk
from conformance.runs.hangs import WorkerHangError, load_hang, save_hang
from conformance.runs.profiles import PROFILES
from conformance.runs.shrinking.divergence import shrink_divergence
from conformance.runs.shrinking.search import SHRINK_SECONDS
from conformance.scratch import scratch_directory
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.lockstep import Divergence
    from conformance.lockstep.watchdog import Hang
    from conformance.operations import Json

ResultT = TypeVar("ResultT")

MAX_EXAMPLES: Final = 2_000
"""Number of examples in which every mutant must be killed."""


@dataclass(frozen=True)
class KillResult:
    """Result of the search for one mutant with one seed.

    Attributes:
        seed: random seed of the run.
        examples: number of the example that killed the mutant, from 1; None if it survived.
        seconds: duration of the search.
        steps: operations up to the divergence, as text; only the necessary ones if they were shrunk.
        aspects: parts of the last step's result that differ, such as ``outcome``.
        clauses: clauses that the last step exercises.
        expected: value of the first aspect for the reference.
        actual: value of the first aspect for the mutant.
    """

    mutant: str
    seed: int
    examples: int | None
    seconds: float
    steps: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""


def search_kill(
    mutant: Mutant, seed: int, *, profile: str = "ci", limit: int = MAX_EXAMPLES, shrink: bool = False
) -> KillResult:
    """Run the state machine that has to detect a mutant until it does.

    Args:
        seed: random seed, as ``conformance run --seed``.
        profile: profile that sets the steps per example.
        limit: maximum number of examples.
        shrink: True to shrink the trace; otherwise ``steps`` are all operations up to the divergence.

    Raises:
        DivergenceError: the reference itself diverges from the model.
    """
    started = time.monotonic()
    machine = MACHINES[mutant.machine]
    settings = PROFILES[profile].settings(limit)
    found: list[int] = []

    def note(_: Divergence) -> bool:
        found.append(lockstep.statistics.examples)
        return False

    with scratch_directory() as scratch:
        lockstep = machine.new_lockstep([implementation_of(mutant, mutant.release)], scratch, on_divergence=note)

        def perform() -> None:
            for chunk in chunks_of(mutant.machine, limit, seed):
                run_chunk(machine.bind(lockstep), settings, chunk.seed, chunk.examples)

        failure = lockstep.first_failure(perform)
        seconds = time.monotonic() - started
        if failure is None:
            return KillResult(mutant.name, seed, None, seconds)
        if not found:
            raise failure
        examples = found[0]
        if shrink:
            # The trace is to be short on a busy machine, too.
            failure = shrink_divergence(lockstep, failure, seconds=5 * SHRINK_SECONDS)
    steps = tuple(str(operation) for operation in failure.operations)
    divergence = failure.divergence
    return KillResult(
        mutant.name,
        seed,
        examples,
        seconds,
        steps,
        divergence.aspects,
        divergence.clauses,
        str(divergence.expected),
        str(divergence.actual),
    )


@dataclass(frozen=True)
class MutantScore:
    """Results of the searches for one mutant.

    Attributes:
        searches: one result for each seed, in the order of the seeds.
    """

    mutant: Mutant
    searches: tuple[KillResult, ...]

    @property
    def survived(self) -> bool:
        """True if the mutant survived with at least one seed."""
        return any(search.examples is None for search in self.searches)

    @property
    def median(self) -> float | None:
        """Median, over the seeds, of the examples until the mutant was killed; None if it survived."""
        return None if self.survived else median(search.examples or 0 for search in self.searches)

    @property
    def worst(self) -> int | None:
        """Maximum, over the seeds, of the examples until the mutant was killed; None if it survived."""
        return None if self.survived else max(search.examples or 0 for search in self.searches)

    @property
    def figures(self) -> dict[str, int | float | str]:
        """Machine, examples until the kill (or ``survived``) for each seed, and their median and maximum."""
        seeds = {f"seed {search.seed}": search.examples or "survived" for search in self.searches}
        middle = "survived" if self.median is None else f"{self.median:g}"
        return {"machine": self.mutant.machine, **seeds, "median": middle, "worst": self.worst or "survived"}

    def to_json(self) -> Json:
        """Return the JSON that the command prints."""
        mutant = self.mutant
        return {
            "mutant": mutant.name,
            "title": mutant.title,
            "machine": mutant.machine,
            "clause": mutant.clause,
            "release": mutant.release,
            "survived": self.survived,
            "median": self.median,
            "worst": self.worst,
            "hunts": [asdict(search) for search in self.searches],
        }


def chosen_mutants(
    patterns: Sequence[str] = ("*",), machines: Sequence[str] = (), *, choices: bool = False
) -> tuple[Mutant, ...]:
    """Return the mutants of these machines whose names match one of the patterns.

    Args:
        patterns: patterns with ``*`` and ``?``.
        machines: names of state machines; empty for the default ones.
        choices: True for choices instead of defects.

    Raises:
        ToolError: no mutant matches.
    """
    chosen = tuple(
        mutant
        for mutant in (CHOICES if choices else MUTANTS).values()
        if mutant.machine in (machines or DEFAULT_MACHINES) and any(fnmatchcase(mutant.name, p) for p in patterns)
    )
    if not chosen:
        of = f" of the {' or '.join(machines)} machine" if machines else ""
        raise ToolError(f"no mutant{of} is called {' or '.join(patterns)}; `conformance mutate --list` lists all")
    return chosen


def measure(
    mutants: Iterable[Mutant],
    seeds: Sequence[int],
    *,
    profile: str = "ci",
    limit: int = MAX_EXAMPLES,
    jobs: int | None = None,
    on_result: Callable[[KillResult], None] = lambda _: None,
    step_timeout: float = STEP_TIMEOUT_S,
) -> list[MutantScore]:
    """Search for every mutant with every seed, in worker processes.

    Args:
        profile: profile that sets the steps per example.
        limit: maximum number of examples, for each mutant and seed.
        jobs: number of worker processes; the number of processors if None.
        on_result: callback that receives each result.
        step_timeout: maximum duration of a step in seconds.

    Raises:
        WorkerHangError: a step of a mutant hangs; the message contains the mutant.
    """
    mutants = list(mutants)
    found: dict[tuple[str, int], KillResult] = {}

    def note(ended: KillResult) -> None:
        found[ended.mutant, ended.seed] = ended
        on_result(ended)

    tasks = [(mutant, seed) for seed in seeds for mutant in mutants]
    run_watched(_search_by_name, tasks, note, jobs=jobs, step_timeout=step_timeout, profile=profile, limit=limit)
    return [MutantScore(mutant, tuple(found[mutant.name, seed] for seed in seeds)) for mutant in mutants]


def _search_by_name(name: str, seed: int, **options: Any) -> KillResult:
    return search_kill(MUTANTS[name], seed, **options)


def run_watched(
    work: Callable[..., ResultT],
    tasks: Iterable[tuple[Mutant, int]],
    on_result: Callable[[ResultT], None],
    *,
    jobs: int | None,
    step_timeout: float,
    **options: Any,
) -> None:
    """Call a function with the name of a mutant, a seed and the options, for each task, in worker processes.

    Args:
        work: function of a module.
        tasks: mutants, or choices, and seeds.
        on_result: callback that receives each result.
        jobs: number of worker processes; the number of processors if None.
        step_timeout: maximum duration of a step in seconds.

    Raises:
        WorkerHangError: a step of a mutant hangs; the message contains the mutant.
    """
    workers = jobs or os.cpu_count() or 1
    # The workers must not inherit the state of this process, for instance a running Java virtual machine.
    context = multiprocessing.get_context("spawn" if workers > 1 else None)
    # A scratch directory is unsuitable, because a forked process would remove it at its end.
    with TemporaryDirectory(prefix="kidx-") as directory, WorkerPool(workers, context) as pool:
        messages = Path(directory)
        limits = step_timeout, messages
        running = [
            pool.submit(_watched, work, mutant.name, seed, mutant.machine, limits, options) for mutant, seed in tasks
        ]
        for future in as_completed(running):
            try:
                ended = future.result()
            except BrokenProcessPool:
                for message in messages.iterdir():
                    if (report := load_hang(message)) is not None:
                        raise WorkerHangError(message.name, report[1]) from None
                raise
            on_result(ended)


def _watched(
    work: Callable[..., ResultT],
    name: str,
    seed: int,
    machine: str,
    limits: tuple[float, Path],
    options: dict[str, Any],
) -> ResultT:
    """Do the work in a worker. A step that hangs is written to a file and ends the process."""
    step_timeout, messages = limits

    def give_up(hang: Hang) -> None:
        save_hang(hang, machine, messages / name)
        exit_process(1)

    with watch_steps(step_timeout, give_up):
        return work(name, seed, **options)


@contextmanager
def metrics_writer(
    directory: Path | None, machines: Sequence[str], *, profile: str, seed: int = 0
) -> Iterator[Callable[[Measured], None]]:
    """Provide a function that writes rows to a stream of events. Without a directory, the function discards them.

    The header contains neither implementations nor releases, because the metrics are about the harness.

    Args:
        directory: directory of the stream, or None.
        machines: names of the measured state machines.
        profile: profile that sets the steps per example, or another description of the choice of examples.
        seed: the first random seed.

    Raises:
        ToolError: the directory cannot be written.
    """
    if directory is None:
        yield lambda _: None
        return
    started = time.monotonic()
    failing: list[Measured] = []
    with NdjsonWriter(directory) as write:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        versions = {"kidx": version("kidx")}
        write(RunStarted((), (), tuple(dict.fromkeys(machines)), profile, "observed", seed, versions, now))

        def on_result(row: Measured) -> None:
            write(row)
            if row.passed is False:
                failing.append(row)

        yield on_result
        write(RunFinished("diverges" if failing else "conforms", 0, time.monotonic() - started))
