"""Recorder of ``cases.ndjson``: ``python -m conformance.experiments.vectors.choosing`` writes it again.

The machines run against the reference of every release, from a fixed seed. An example is kept up to its last step that
is the first one to exercise a clause under the rules of a release. So a file of few steps shows every clause that the
machines come to, in all releases where it holds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.kafka.releases import RELEASES
from conformance.machines import MACHINES
from conformance.operations.trace import Trace
from conformance.operations.trace_file import save_traces
from conformance.runs.chunks import CHUNK, SEED_OF_CHUNK, run_chunk
from conformance.runs.profiles import PROFILES
from conformance.scratch import scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.operations import Operation

CASES: Final = Path(__file__).with_name("cases.ndjson")
EXAMPLES: Final = {"offset": 2000, "time": 2000, "transaction": 1000}
"""Number of examples of each machine."""


class _Chooser:
    """Listener of a lockstep that keeps the steps with new clauses.

    Args:
        lockstep: the lockstep, which calls it before each step.
    """

    def __init__(self, lockstep: Any) -> None:
        self._groups = lockstep.groups
        self._steps: list[Operation] = []
        self._needed = 0
        self._seen: set[tuple[int, str]] = set()
        self.kept: list[tuple[Operation, ...]] = []
        lockstep.journal = self

    def __call__(self, operation: Operation | None) -> None:
        """Take note of what the step before has exercised."""
        now = {(number, clause) for number, group in enumerate(self._groups) for clause in group.exercised}
        if now - self._seen:
            self._seen, self._needed = now, len(self._steps)
        if operation is None:
            if self._needed:
                self.kept.append(tuple(self._steps[: self._needed]))
            self._steps, self._needed = [], 0
        else:
            self._steps.append(operation)


def choose(kind: str, examples: int) -> Iterator[Trace]:
    """Yield the kept examples of a machine."""
    machine = MACHINES[kind]
    with scratch_directory() as scratch:
        lockstep: Any = machine.new_lockstep([], scratch, releases=RELEASES)
        chooser = _Chooser(lockstep)
        for number in range(examples // CHUNK):
            run_chunk(machine.bind(lockstep), PROFILES["dev"].settings(CHUNK), number * SEED_OF_CHUNK, CHUNK)
        chooser(None)
    for steps in chooser.kept:
        yield Trace(kind, RELEASES[-1], steps)


if __name__ == "__main__":
    chosen = [trace for kind in sys.argv[1:] or EXAMPLES for trace in choose(kind, EXAMPLES[kind])]
    save_traces(CASES, chosen)
