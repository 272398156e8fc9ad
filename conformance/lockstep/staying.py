"""What becomes of a participant after a difference: whether it goes on with the example."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from conformance.lockstep.divergence import error_of

if TYPE_CHECKING:
    from conformance.lockstep.divergence import Divergence


class Ruling(IntEnum):
    """What is decided about a difference. A function that answers with a boolean raises, or lets it leave."""

    RAISES = False
    LEAVES = True
    STAYS = 2


def ruling(divergence: Divergence, level: str = "observed", *, excused: bool) -> Ruling:
    """Return what becomes of a difference: one that is excused lets the participant go on if it can.

    Args:
        divergence: the difference.
        level: of the verdict.
        excused: whether it does not end the example.
    """
    if not excused:
        return Ruling.RAISES
    return Ruling.STAYS if can_stay(divergence, level) else Ruling.LEAVES


def can_stay(divergence: Divergence, level: str = "observed") -> bool:
    """Whether a participant can go on with an example after a difference: its state and its files are right.

    At level must, so are those that differ in what nobody notices but a caller of Kafka's classes.

    What it has opened or released while the reference refused to, or the other way round, is not the same any more; the
    state does not tell, because a closed index need not have any.
    """
    if level == "must" and divergence.is_unnoticed:
        return True
    if divergence.is_failure or {"state", "bytes"} & set(divergence.aspects):
        return False
    if divergence.operation.effect is None or divergence.aspects[0] != "outcome":
        return True
    return bool(error_of(divergence.expected)) == bool(error_of(divergence.actual))
