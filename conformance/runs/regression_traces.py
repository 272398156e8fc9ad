"""The traces that the package keeps: what once told a wrong index from a right one is asked first, in every run.

They are files in ``conformance/traces/<machine>``, small and without Hypothesis, so they cost milliseconds. Their steps
are performed in the dialect of every release of the run, whichever they were recorded for.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from conformance.operations.trace import Trace


@cache
def kept_traces(machine: str) -> tuple[Trace, ...]:
    """The traces of a machine, in the order of their file names.

    Raises:
        TraceError: one cannot be read.
    """
    with as_file(files("conformance") / "traces" / machine) as directory:
        return tuple(map(Trace.load, sorted(directory.glob("*.json"))))
