"""Regression traces of the package: steps that once showed a divergence, which every run replays first.

They are the lines of ``conformance/traces/<machine>.ndjson``. They are short and do not need Hypothesis, so a replay
takes milliseconds. Their steps are executed in the dialect of every release of the run, not only of the release for
which they were recorded.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.operations.trace_file import load_traces

if TYPE_CHECKING:
    from conformance.operations.trace import Trace


@cache
def load_regression_traces(machine: str) -> tuple[Trace, ...]:
    """Return the traces of a machine, in the order of their ids; a machine without traces has no file.

    Raises:
        TraceError: A trace cannot be read.
    """
    file = files("conformance") / "traces" / f"{machine}.ndjson"
    return load_traces(file) if file.is_file() else ()
