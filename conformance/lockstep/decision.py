"""Decision about a divergence, and about the diverging participant's part in the rest of the example."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence


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

    At level must, differences that only callers of Kafka's classes can notice do not matter.

    If only one of participant and reference failed to open or release files, their states differ. A comparison of the
    states does not always show this, because a closed index need not report its state.
    """
    if level == "must" and divergence.is_unnoticed:
        return True
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    if divergence.operation.effect is None or divergence.aspects[0] != "outcome":
        return True
    return bool(error_of(divergence.expected)) == bool(error_of(divergence.actual))
