"""Expected responses of a Kafka release to ListOffsets, for each version of the request, from the reference's log.

Files that retention may delete count as either deleted or not, because no client knows when retention runs. With tiered
storage, a lookup by timestamp searches the remote segments first, and the local ones if these have no result (LO-19).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from conformance.implementations.wire.contract import EPOCHS_SINCE, SINCE
from kidx.errors import KidxError
from kidx.log import UnifiedLog, list_offset
from kidx.log.lookup import fetch_offset, supports_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.implementations.broker.reference import ReferencePartition
    from conformance.implementations.wire.contract import View
    from conformance.kafka.client import Isolation
    from kidx.segment import LogSegment, TimestampAndOffset

UNSUPPORTED: Final = "UNSUPPORTED_VERSION"
_ISOLATION: Final[dict[View, Isolation | None]] = {
    "read_uncommitted": "read_uncommitted",
    "read_committed": "read_committed",
    "replica": None,
}


class Row(NamedTuple):
    """Response to a target; a missing offset, timestamp or leader epoch is -1."""

    error: str | None
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1

    def __str__(self) -> str:
        if self[1:] == NONE[1:]:
            return self.error or "nothing"
        answer = f"offset {self.offset}, timestamp {self.timestamp}, leader epoch {self.leader_epoch}"
        return answer if self.error is None else f"{self.error}, {answer}"


NONE: Final = Row(None)
"""Response without a result and without an error."""


class ExpectedRows:
    """Responses of the reference, valid until its log changes.

    Args:
        reference: The reference's partition.
        local_starts: The offsets at which the local segments may begin, the most likely first; the segments before are
            only in the remote tier.
    """

    def __init__(self, reference: ReferencePartition, local_starts: Sequence[int] = (0,)) -> None:
        self.reference = reference
        self._local_starts = local_starts
        self._found: dict[tuple[int, View, int, int], Row] = {}

    def rows(self, target: int, version: int, view: View) -> Iterator[Row]:
        """Yield every correct response, the most likely first; later ones apply if retention has deleted segments."""
        dialect = self.reference.dialect
        if dialect.rejects_unknown_targets and target < 0 and version < SINCE.get(target, 1 << 15):
            yield Row(UNSUPPORTED)
            return
        for dropped in range(self._count_below(self.reference.log.start_offset) + 1):
            for remote in dict.fromkeys(map(self._count_below, self._local_starts)):
                row = self._row(target, view, dropped, remote)
                yield row if version >= EPOCHS_SINCE else row._replace(leader_epoch=-1)

    def _row(self, target: int, view: View, dropped: int, remote: int) -> Row:
        key = target, view, dropped, remote
        if key not in self._found:
            self._found[key] = self._answer(*key)
        return self._found[key]

    def _answer(self, target: int, view: View, dropped: int, remote: int) -> Row:
        reference, log = self.reference, self.reference.log
        if reference.dialect.rejects_unknown_targets and target < 0 and not supports_target(reference.dialect, target):
            return NONE  # a target of a later release, which has no result without tiered storage
        left = cast("UnifiedLog", _PartlyRemoteLog(log, dropped, remote)) if dropped or remote else log
        try:
            found = list_offset(left, target, isolation_level=_ISOLATION[view], leader_epoch=reference.epoch)
        except KidxError as error:
            return Row(f"kidx: {error}")
        if found is None or found.offset < 0:
            return NONE
        epoch = -1 if found.leader_epoch is None else found.leader_epoch
        return Row(None, found.offset, found.timestamp, epoch)

    def _count_below(self, offset: int) -> int:
        """Return the number of segments that end at or before an offset."""
        bases = [segment.base_offset for segment in self.reference.log.segments]
        return sum(base <= offset for base in bases[1:])


class _LogOf:
    """View of a log with a part of its segments."""

    def __init__(self, log: UnifiedLog, segments: list[LogSegment]) -> None:
        self._log = log
        self.segments = segments

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class _PartlyRemoteLog(_LogOf):
    """View of a log without its first segments, whose next segments are only in the remote tier."""

    def __init__(self, log: UnifiedLog, dropped: int, remote: int) -> None:
        segments = list(log.segments)
        super().__init__(log, segments[dropped:])
        self._parts = segments[dropped:remote], segments[max(dropped, remote) :]

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the offset for a timestamp in the remote segments, or else in the local ones (LO-19)."""
        parts = (self.segments,) if supports_target(self._log.dialect, target) else self._parts
        found = (fetch_offset(cast("UnifiedLog", _LogOf(self._log, part)), target) for part in parts)
        return next((each for each in found if each is not None), None)
