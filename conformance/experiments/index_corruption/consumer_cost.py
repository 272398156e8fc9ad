"""Cost of wrong results of ``offsetsForTimes`` for a consumer that seeks to the returned offset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.kafka.client import OffsetResult


class OffsetTimestamp(NamedTuple):
    """Offset and timestamp of a record."""

    offset: int
    timestamp: int


class ConsumerCost(NamedTuple):
    """Cost of all lookups of a case.

    Attributes:
        lookups: The number of lookups.
        wrong: The number of wrong results.
        missed: The number of records at or after the target's time that the consumer never reads; all of them if there
            is no result or an error.
        reread: The number of records before the correct position that the consumer reads although it need not.
    """

    lookups: int
    wrong: int
    missed: int
    reread: int


NOTHING: Final = ConsumerCost(0, 0, 0, 0)


def oracle_offset(records: Iterable[OffsetTimestamp], target: int) -> int | None:
    """Return the offset of the first record, in log order, whose timestamp is not below the target, or None."""
    return next((record.offset for record in records if record.timestamp >= target), None)


def cost_of(records: Sequence[OffsetTimestamp], answers: Sequence[OffsetResult]) -> ConsumerCost:
    """Return the cost of the results, which are compared with a scan of the whole log."""
    end = records[-1].offset + 1 if records else 0
    wrong = missed = reread = 0
    for answer in answers:
        right = oracle_offset(records, answer.target)
        found = answer.offset
        if found == right and answer.error is None:
            continue
        wrong += 1
        begins = end if found is None else found
        should_begin = end if right is None else right
        missed = max(missed, begins - should_begin)
        reread = max(reread, should_begin - begins)
    return ConsumerCost(len(answers), wrong, missed, reread)


def targets_of(records: Iterable[OffsetTimestamp]) -> list[int]:
    """Return every timestamp of the log, and the timestamps one millisecond before and after it, in order."""
    return sorted({record.timestamp + step for record in records for step in (-1, 0, 1)})
