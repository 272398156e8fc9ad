"""Generator of ``cases.ndjson``: ``python -m conformance.experiments.vectors.choosing``.

State machines execute examples with kidx as each release, from a fixed seed. A step is new if it is the first to
exercise a clause in some release. Each example is saved up to its last new step; examples without a new step are not
saved. So a few steps exercise every clause that the machines reach, in every release to which it applies.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.clauses.machines import driven_releases
from conformance.kafka.releases import RELEASES
from conformance.lockstep.lockstep import Observer
from conformance.machines import MACHINES
from conformance.operations.trace import Trace
from conformance.operations.trace_file import save_traces
from conformance.runs.chunks import CHUNK, SEED_OF_CHUNK, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.operations import Operation

CASES: Final = Path(__file__).with_name("cases.ndjson")
EXAMPLES: Final = {"offset": 2000, "time": 2000, "transaction": 1000, "cache": 200, "tiered": 60}
"""Number of examples of each machine."""


class _Chooser(Observer):
    """Observer of a lockstep that saves the steps of each example up to the last new one."""

    def __init__(self, lockstep: Any) -> None:
        self._groups = lockstep.groups
        self._steps: list[Operation] = []
        self._needed = 0
        self._seen: set[tuple[int, str]] = set()
        self.kept: list[tuple[Operation, ...]] = []
        lockstep.observers.append(self)

    def performs(self, operation: Operation) -> bool:
        """Check if the last step was new, and record the next one."""
        self._note_last()
        self._steps.append(operation)
        return True

    def begins(self) -> Collection[str]:
        """Keep the last example up to its last new step."""
        self._note_last()
        if self._needed:
            self.kept.append(tuple(self._steps[: self._needed]))
        self._steps, self._needed = [], 0
        return ()

    def _note_last(self) -> None:
        now = {(number, clause) for number, group in enumerate(self._groups) for clause in group.exercised}
        if now - self._seen:
            self._seen, self._needed = now, len(self._steps)


def choose(kind: str, examples: int) -> Iterator[Trace]:
    """Yield the saved examples of a machine."""
    machine, releases = MACHINES[kind], driven_releases(kind, RELEASES)
    with scratch_directory() as scratch:
        lockstep: Any = machine.new_lockstep([], scratch, releases=releases)
        chooser = _Chooser(lockstep)
        for number in range(examples // CHUNK):
            run_chunk(machine.bind(lockstep), PROFILES["dev"].settings(CHUNK), number * SEED_OF_CHUNK, CHUNK)
        chooser.begins()
    for steps in chooser.kept:
        yield Trace(kind, RELEASES[-1], steps)


if __name__ == "__main__":
    chosen = [trace for kind in sys.argv[1:] or EXAMPLES for trace in choose(kind, EXAMPLES[kind])]
    save_traces(CASES, chosen)
