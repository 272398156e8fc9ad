"""``ListOffsets`` of a partition's leader: the log's result, limited for clients (``Partition``; LO-12 – LO-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kidx.log.errors import OffsetNotAvailableError, UnsupportedTargetError
from kidx.log.lookup import EARLIEST, EARLIEST_LOCAL, LATEST, supports_target
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
    """Return a partition leader's result of ``ListOffsets``; None is "unknown" (-1 in all three fields on the wire).

    Args:
        log: the log with its high watermark set.
        target: a timestamp in milliseconds, or one of the special targets.
        isolation_level: isolation level of a consumer; None for a replica or a debugging client, which may see
            everything.
        leader_epoch: epoch of this leader.
        epoch_start_offset: start offset of this leader's epoch; None to skip the check.

    Raises:
        OffsetNotAvailableError: the high watermark has not reached this leader's epoch yet, and the result would depend
            on it (a client below version 5 of the request gets LEADER_NOT_AVAILABLE).
        UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
        KidxError, OSError: as :meth:`UnifiedLog.fetch_offset_by_timestamp`.
    """
    if target < 0 and log.dialect.rejects_unknown_targets and not supports_target(log.dialect, target):
        raise UnsupportedTargetError(f"Kafka {log.dialect.release} does not support target {target}")
    last_fetchable = _last_fetchable(log, isolation_level)
    lags = isolation_level is not None and epoch_start_offset is not None and epoch_start_offset > log.high_watermark
    if target == LATEST:
        if lags:
            raise _not_available(log, epoch_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, last_fetchable, leader_epoch)
    result = log.fetch_offset_by_timestamp(target)
    always = target == EARLIEST or (target == EARLIEST_LOCAL and supports_target(log.dialect, target))
    if always or (result is not None and result.offset < last_fetchable):
        return result
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
