"""What a broker makes of a log's answer before a client sees it (``Partition``, ``KafkaApis``; LO-12 – LO-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kidx.log.errors import OffsetNotAvailableError, UnsupportedTargetError
from kidx.log.lookup import EARLIEST, EARLIEST_LOCAL, LATEST, knows
from kidx.records.record import NO_TIMESTAMP
from kidx.segment import TimestampAndOffset

if TYPE_CHECKING:
    from kidx.log.unified_log import UnifiedLog

IsolationLevel = Literal["read_uncommitted", "read_committed"]


def list_offset(
    log: UnifiedLog,
    target: int,
    *,
    isolation_level: IsolationLevel | None = "read_uncommitted",
    leader_epoch: int,
    epoch_start_offset: int | None = None,
) -> TimestampAndOffset | None:
    """A partition leader's answer to ``ListOffsets``; None is "unknown" (timestamp, offset and epoch -1 on the wire).

    Args:
        log: with its high watermark set.
        target: a timestamp in milliseconds, or one of the special targets.
        isolation_level: of a consumer; None for a replica or a debugging client, which may see everything.
        leader_epoch: of this leader.
        epoch_start_offset: where this leader's epoch began; None if that is not to be checked.

    Raises:
        OffsetNotAvailableError: the high watermark has not reached this leader's epoch yet, and the answer would
            depend on it (a client below version 5 of the request is told that the leader is not available).
        UnsupportedTargetError: 3.9 and later, a negative target that the release does not know (LO-15).
        KidxError, OSError: as :meth:`UnifiedLog.fetch_offset_by_timestamp`.
    """
    if target < 0 and log.dialect.refuses_unknown_targets and not knows(log.dialect, target):
        raise UnsupportedTargetError(f"Kafka {log.dialect.release} has no target {target}")
    last_fetchable = _last_fetchable(log, isolation_level)
    lags = isolation_level is not None and epoch_start_offset is not None and epoch_start_offset > log.high_watermark
    if target == LATEST:
        if lags:
            raise _not_available(log, epoch_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, last_fetchable, leader_epoch)
    answer = log.fetch_offset_by_timestamp(target)
    always = target == EARLIEST or (target == EARLIEST_LOCAL and knows(log.dialect, target))
    if always or (answer is not None and answer.offset < last_fetchable):
        return answer
    if lags:
        raise _not_available(log, epoch_start_offset)
    return None


def _last_fetchable(log: UnifiedLog, isolation_level: IsolationLevel | None) -> int:
    if isolation_level is None:
        return log.end_offset
    return log.last_stable_offset if isolation_level == "read_committed" else log.high_watermark


def _not_available(log: UnifiedLog, epoch_start_offset: int | None) -> OffsetNotAvailableError:
    return OffsetNotAvailableError(
        f"the high watermark {log.high_watermark} is before the start of the leader's epoch, {epoch_start_offset}"
    )
