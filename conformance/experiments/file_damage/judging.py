"""The cost of wrong answers for a consumer that seeks to the answered offset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from conformance.kafka.client import OffsetResult


class Stamp(NamedTuple):
    """A record as far as it matters here."""

    offset: int
    timestamp: int


class Cost(NamedTuple):
    """Of all look-ups: how many were asked, how many are wrong, and what the worst of them costs.

    Attributes:
        missed: records at or after the target's time that the consumer never reads; all of them where the
            answer is none or an error.
        reread: records before the right place that it reads (again).
    """

    asked: int
    wrong: int
    missed: int
    reread: int


NOTHING: Final = Cost(0, 0, 0, 0)


def right_offset(records: Iterable[Stamp], target: int) -> int | None:
    """The offset of the first record, in the order of the log, that is not earlier than the target."""
    return next((record.offset for record in records if record.timestamp >= target), None)


def cost_of(records: Sequence[Stamp], answers: Sequence[OffsetResult]) -> Cost:
    """Holds answers to what a scan of the whole log finds."""
    end = records[-1].offset + 1 if records else 0
    wrong = missed = reread = 0
    for answer in answers:
        right = right_offset(records, answer.target)
        told = answer.offset
        if told == right and answer.error is None:
            continue
        wrong += 1
        starts = end if told is None else told
        should = end if right is None else right
        missed = max(missed, starts - should)
        reread = max(reread, should - starts)
    return Cost(len(answers), wrong, missed, reread)


def targets_of(records: Iterable[Stamp]) -> list[int]:
    """Every timestamp of the log, and the moments around it."""
    return sorted({record.timestamp + step for record in records for step in (-1, 0, 1)})
