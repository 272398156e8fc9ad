"""Mutation testing: many hunts at once, and their figures."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.experiments.mutation.hunting import LIMIT, Hunt, hunt
from conformance.implementations.mutants import MUTANTS, Mutant
from conformance.lockstep.step_watch import LIMIT as STEP_LIMIT
from conformance.lockstep.step_watch import end_process, watched_steps
from conformance.machines import MACHINES
from conformance.runs.stuck import StuckError, read_stuck, write_stuck

if TYPE_CHECKING:
    from conformance.lockstep.step_watch import Stuck
    from conformance.operations import Json


@dataclass(frozen=True)
class Measured:
    """The results of the hunts for one mutant.

    Attributes:
        mutant: which.
        hunts: one for each seed, in the order of the seeds.
    """

    mutant: Mutant
    hunts: tuple[Hunt, ...]

    @property
    def survived(self) -> bool:
        """Whether it was not found from one seed at least."""
        return any(hunt.examples is None for hunt in self.hunts)

    @property
    def median(self) -> float | None:
        """Examples to kill, in the middle of the seeds; None if it survived."""
        return None if self.survived else median(hunt.examples or 0 for hunt in self.hunts)

    @property
    def worst(self) -> int | None:
        """Examples to kill from the worst seed; None if it survived."""
        return None if self.survived else max(hunt.examples or 0 for hunt in self.hunts)

    @property
    def figures(self) -> dict[str, int | float | str]:
        """The machine, examples to kill from each seed, ``survived`` where it was not found, and their figures."""
        seeds = {f"seed {hunt.seed}": hunt.examples or "survived" for hunt in self.hunts}
        middle = "survived" if self.median is None else f"{self.median:g}"
        return {"machine": self.mutant.machine, **seeds, "median": middle, "worst": self.worst or "survived"}

    def to_json(self) -> Json:
        """As the command prints it."""
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
            "hunts": [asdict(hunt) for hunt in self.hunts],
        }


def chosen_mutants(patterns: Sequence[str] = ("*",), machines: Sequence[str] = ()) -> tuple[Mutant, ...]:
    """The mutants whose names match one of the patterns, of these machines (of all if none is named).

    Raises:
        ToolError: nothing matches.
    """
    chosen = tuple(
        mutant
        for mutant in MUTANTS.values()
        if mutant.machine in (machines or MACHINES) and any(fnmatchcase(mutant.name, p) for p in patterns)
    )
    if not chosen:
        of = f" of the {' or '.join(machines)} machine" if machines else ""
        raise ToolError(f"no mutant{of} is called {' or '.join(patterns)}; `conformance power --list` names them all")
    return chosen


def measure(
    mutants: Iterable[Mutant],
    seeds: Sequence[int],
    *,
    profile: str = "ci",
    limit: int = LIMIT,
    jobs: int | None = None,
    tell: Callable[[Hunt], None] = lambda _: None,
    step_timeout: float = STEP_LIMIT,
) -> list[Measured]:
    """Looks for every mutant from every seed, in processes of their own.

    Args:
        mutants: what to look for.
        seeds: where to start.
        profile: of which the steps of an example are taken.
        limit: examples at most, for each mutant and seed.
        jobs: processes; as many as there are processors if None.
        tell: called with each hunt as it ends.
        step_timeout: seconds that a step may take.

    Raises:
        StuckError: a step of a mutant has not come back; it names the mutant.
    """
    mutants = list(mutants)
    found: dict[tuple[str, int], Hunt] = {}
    options: dict[str, Any] = {"profile": profile, "limit": limit}
    workers = jobs or os.cpu_count() or 1
    # Nothing of this process, a running virtual machine for instance, should be in the others.
    context = multiprocessing.get_context("spawn" if workers > 1 else None)
    # No scratch directory: a forked process that ends would remove it.
    with TemporaryDirectory(prefix="kidx-") as directory, ProcessPoolExecutor(workers, mp_context=context) as pool:
        messages = Path(directory)
        options |= {"step_timeout": step_timeout, "messages": messages}
        hunts = [pool.submit(_hunt_by_name, mutant.name, seed, options) for seed in seeds for mutant in mutants]
        for future in as_completed(hunts):
            try:
                ended = future.result()
            except BrokenProcessPool:
                for message in messages.iterdir():
                    if (told := read_stuck(message)) is not None:
                        raise StuckError(message.name, told[1]) from None
                raise
            found[ended.mutant, ended.seed] = ended
            tell(ended)
    return [Measured(mutant, tuple(found[mutant.name, seed] for seed in seeds)) for mutant in mutants]


def _hunt_by_name(name: str, seed: int, options: dict[str, Any]) -> Hunt:
    """In the other process: a step that does not come back is told in a file, and ends the process."""
    mutant, own = MUTANTS[name], dict(options)
    messages, step_timeout = own.pop("messages"), own.pop("step_timeout")

    def give_up(stuck: Stuck) -> None:
        write_stuck(stuck, mutant.machine, messages / name)
        end_process(1)

    with watched_steps(step_timeout, give_up):
        return hunt(mutant, seed, **own)
