"""Decision about a divergence, and about the diverging participant's part in the rest of the example."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence


_RENAMING: Final = frozenset({"rename", "rename_segment"})
"""The operations after which the files have other names."""


class Decision(IntEnum):
    """Decision about a divergence; a callback may return False for ``RAISE`` and True for ``SKIP_EXAMPLE``.

    ``RAISE`` raises DivergenceError. With ``SKIP_EXAMPLE``, the participant takes no part in the rest of the example.
    With ``CONTINUE``, it does.
    """

    RAISE = False
    SKIP_EXAMPLE = True
    CONTINUE = 2


def decide(divergence: Divergence, level: str = "observed", *, tolerated: bool) -> Decision:
    """Return the decision about a divergence: after a tolerated divergence, a participant continues if it can.

    Args:
        divergence: The divergence.
        level: The level of the verdict.
        tolerated: True if the divergence does not end the example.
    """
    if not tolerated:
        return Decision.RAISE
    return Decision.CONTINUE if can_continue(divergence, level) else Decision.SKIP_EXAMPLE


def can_continue(divergence: Divergence, level: str = "observed") -> bool:
    """Return True if a participant can continue with an example after a divergence, since state and files are right.

    At level must, differences that only callers of Kafka's classes can notice do not matter, and the length of an index
    file matters to steps that depend on it (:mod:`conformance.attribution.history`).

    If only one of participant and reference failed to open, release or rename files, their states differ. A comparison
    of the states does not always show this, because a closed index need not report its state.
    """
    if level == "must" and (divergence.is_unnoticed or divergence.is_of_length):
        return not divergence.creates_other_files
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    operation = divergence.operation
    if divergence.aspects[0] != "outcome" or (operation.effect is None and operation.name not in _RENAMING):
        return True
    return bool(error_of(divergence.expected)) == bool(error_of(divergence.actual))
