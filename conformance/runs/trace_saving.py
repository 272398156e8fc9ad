"""Saving of a divergence's trace: on a full disk the trace is lost, but never the divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.errors import ToolError
from conformance.quoting import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.operations.trace import Trace


class Kept(NamedTuple):
    """Location of a trace.

    Attributes:
        path: The path of its file; empty if it could not be written.
        note: The reason why it could not be written; empty if it was.
    """

    path: str
    note: str = ""


def keep(trace: Trace, directory: Path) -> Kept:
    """Save a trace, and return the reason if that fails."""
    try:
        return Kept(str(trace.save(directory)))
    except ToolError as error:
        return Kept("", str(error))
    except Exception as error:  # noqa: BLE001 -- the divergence is reported in any case
        return Kept("", f"cannot write its trace: {in_one_line(error)}")


def in_one_line(error: Exception) -> str:
    """Return the message of an unexpected error on one line."""
    return quoted(repr(error))
