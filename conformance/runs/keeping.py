"""The trace of a difference, written where it can be: a full disk costs the trace, never the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.quoting import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations.trace import Trace


class Kept(NamedTuple):
    """Where a trace is.

    Attributes:
        path: of its file; empty if it could not be written.
        note: why it could not be written; empty if it was.
    """

    path: str
    note: str = ""


def keep(trace: Trace, directory: Path) -> Kept:
    """Write a trace, and say so if that fails."""
    try:
        return Kept(str(trace.save(directory)))
    except ToolError as error:
        return Kept("", str(error))
    except Exception as error:  # noqa: BLE001 -- whatever it is, the difference is reported all the same
        return Kept("", f"its trace cannot be written: {in_one_line(error)}")


def in_one_line(error: Exception) -> str:
    """Return an unexpected error in words for a report."""
    return quoted(repr(error))
