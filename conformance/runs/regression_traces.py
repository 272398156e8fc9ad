"""The traces that the package keeps: what once told a wrong index from a right one is asked first, in every run.

They are files in ``conformance/traces/<machine>``, small and without Hypothesis, so they cost milliseconds. Their steps
are performed in the dialect of every release of the run, whichever they were recorded for.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from conformance.lockstep import DivergenceError
from conformance.operations.trace import Trace
from conformance.runs.replay import perform_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lockstep import Lockstep


@cache
def kept_traces(machine: str) -> tuple[Trace, ...]:
    """The traces of a machine, in the order of their file names.

    Raises:
        TraceError: one cannot be read.
    """
    with as_file(files("conformance") / "traces" / machine) as directory:
        return tuple(map(Trace.load, sorted(directory.glob("*.json"))))


def replay_kept(
    machine: str, lockstep: Lockstep, diverged: Callable[[DivergenceError], bool]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Performs every kept trace of a machine; after a difference, again without the one who differed.

    Args:
        machine: whose traces.
        lockstep: who performs them.
        diverged: told of a difference that counts; takes the party out and says whether to go on.

    Returns:
        The ids of the traces that were performed, of those that came to a difference, and whether to go on.
    """
    performed: list[str] = []
    differing: list[str] = []
    for trace in kept_traces(machine):
        performed.append(trace.id)
        while True:
            lockstep.failure = None
            try:
                perform_all(lockstep, trace.operations)
                break
            except DivergenceError as error:
                differing.append(trace.id)
                if not diverged(error):
                    return tuple(performed), tuple(dict.fromkeys(differing)), False
    return tuple(performed), tuple(dict.fromkeys(differing)), True
