"""Decision about a participant after a divergence: whether it continues with the example."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence


class Decision(IntEnum):
    """Decision about a divergence. A callback that returns a boolean raises an error, or excludes the participant."""

    RAISE = False
    SKIP_EXAMPLE = True
    CONTINUE = 2


def decide(divergence: Divergence, level: str = "observed", *, tolerated: bool) -> Decision:
    """Return the decision about a divergence: a participant continues after a tolerated one if it can.

    Args:
        divergence: The divergence.
        level: The level of the verdict.
        tolerated: True if the divergence does not end the example.
    """
    if not tolerated:
        return Decision.RAISE
    return Decision.CONTINUE if can_continue(divergence, level) else Decision.SKIP_EXAMPLE


def can_continue(divergence: Divergence, level: str = "observed") -> bool:
    """Return True if a participant can continue with an example after a divergence: its state and files are right.

    At level must, they are also right if they differ only in what callers of Kafka's classes can notice.

    If it opened or released files where the reference failed, or the reverse, its state is not the same any more. The
    state itself does not show this, because a closed index need not have one.
    """
    if level == "must" and divergence.is_unnoticed:
        return True
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    if divergence.operation.effect is None or divergence.aspects[0] != "outcome":
        return True
    return bool(error_of(divergence.expected)) == bool(error_of(divergence.actual))
