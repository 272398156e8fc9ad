"""Rows for section 8 of the catalogue and the parts of section 6 that only a whole log shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.log_operations import LogObservation, LogState
    from conformance.operations import Operation
    from kidx.dialect import Dialect


def clauses_of_log_step(
    operation: Operation, dialect: Dialect, before: LogState | None, observation: LogObservation
) -> tuple[str, ...]:
    """The clauses that a step on a log exercises."""
    return ()
