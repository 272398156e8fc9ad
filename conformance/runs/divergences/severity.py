"""Severity of a divergence, which selects the representative and is preserved when steps are shrunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from typing import Any

    from conformance.lockstep.divergence import Divergence

_WRONG, _ONE_SIDED, _STATE, _MESSAGE = 3, 2, 1, 0
"""The ranks of a difference; see :func:`severity`."""


def severity(divergence: Divergence) -> tuple[bool, int]:
    """Return the severity of a divergence; larger is more severe.

    The first element is True if a guarantee (a MUST clause) is violated. The second ranks the difference: wrong bytes
    or a wrong result are the most severe, then an error or no result on one side only, then the state, then the kind or
    message of an error. All crashes are equally severe.
    """
    return divergence.counts("must"), _rank(divergence)


def _rank(divergence: Divergence) -> int:
    if divergence.is_failure or "bytes" in divergence.aspects:
        return _WRONG
    if divergence.aspects[0] == "outcome":
        expected, actual = divergence.expected, divergence.actual
        if error_of(expected) and error_of(actual):
            return _STATE if "state" in divergence.aspects else _MESSAGE
        return _ONE_SIDED if is_empty(expected) or is_empty(actual) else _WRONG
    return _STATE if divergence.aspects[0] == "state" else _MESSAGE


def is_empty(outcome: Any) -> bool:
    """Return True if an outcome, or the first two elements of an outcome, is an error or no result."""
    return bool(error_of(outcome)) or (isinstance(outcome, tuple) and len(outcome) > 1 and outcome[1] is None)
