"""The traces that the package keeps: what once told a wrong index from a right one is asked first, in every run.

They are the lines of ``conformance/traces/<machine>.ndjson``, small and without Hypothesis, so they cost milliseconds.
Their steps are performed in the dialect of every release of the run, whichever they were recorded for.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.operations.trace_file import load_traces

if TYPE_CHECKING:
    from conformance.operations.trace import Trace


@cache
def kept_traces(machine: str) -> tuple[Trace, ...]:
    """The traces of a machine, in the order of their ids; a machine without any has no file.

    Raises:
        TraceError: one cannot be read.
    """
    file = files("conformance") / "traces" / f"{machine}.ndjson"
    return load_traces(file) if file.is_file() else ()
