"""Mutation testing: many searches in parallel, and the mutation scores.

A mutant is kidx with a planted defect. A search runs examples of a state machine until one detects (kills) the mutant.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from conformance.clauses.machines import DEFAULT_MACHINES
from conformance.errors import ToolError
from conformance.experiments.mutation.kill_search import MAX_EXAMPLES, KillResult, search_kill
from conformance.implementations.mutants import MUTANTS, Mutant
from conformance.implementations.mutants.choices import CHOICES
from conformance.lockstep.watchdog import STEP_TIMEOUT_S, exit_process, watch_steps
from conformance.runs.hangs import WorkerHangError, load_hang, save_hang
from kidx.workers import WorkerPool

if TYPE_CHECKING:
    from conformance.lockstep.watchdog import Hang
    from conformance.operations import Json


@dataclass(frozen=True)
class MutantScore:
    """Results of the searches for one mutant.

    Attributes:
        mutant: the mutant.
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
        mutants: the mutants.
        seeds: random seeds.
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
    options: dict[str, Any] = {"profile": profile, "limit": limit}
    workers = jobs or os.cpu_count() or 1
    # The workers must not inherit the state of this process, for instance a running Java virtual machine.
    context = multiprocessing.get_context("spawn" if workers > 1 else None)
    # A scratch directory is unsuitable, because a forked process would remove it at its end.
    with TemporaryDirectory(prefix="kidx-") as directory, WorkerPool(workers, context) as pool:
        messages = Path(directory)
        options |= {"step_timeout": step_timeout, "messages": messages}
        searches = [pool.submit(_search_by_name, mutant.name, seed, options) for seed in seeds for mutant in mutants]
        for future in as_completed(searches):
            try:
                ended = future.result()
            except BrokenProcessPool:
                for message in messages.iterdir():
                    if (report := load_hang(message)) is not None:
                        raise WorkerHangError(message.name, report[1]) from None
                raise
            found[ended.mutant, ended.seed] = ended
            on_result(ended)
    return [MutantScore(mutant, tuple(found[mutant.name, seed] for seed in seeds)) for mutant in mutants]


def _search_by_name(name: str, seed: int, options: dict[str, Any]) -> KillResult:
    """Search for a mutant in a worker. A step that hangs is written to a file and ends the process."""
    mutant, own = MUTANTS[name], dict(options)
    messages, step_timeout = own.pop("messages"), own.pop("step_timeout")

    def give_up(hang: Hang) -> None:
        save_hang(hang, mutant.machine, messages / name)
        exit_process(1)

    with watch_steps(step_timeout, give_up):
        return search_kill(mutant, seed, **own)
