"""Expected responses of a Kafka release to ListOffsets, for each version of the request, from the reference's log.

Files that retention may delete count as either deleted or not, because no client knows when retention runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from conformance.implementations.wire.contract import EPOCHS_SINCE, SINCE
from kidx.errors import KidxError
from kidx.log import UnifiedLog, list_offset
from kidx.log.lookup import fetch_offset, supports_target

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """

    def __init__(self, reference: ReferencePartition) -> None:
        self.reference = reference
        self._found: dict[tuple[int, View, int], Row] = {}

    def rows(self, target: int, version: int, view: View) -> Iterator[Row]:
        """Yield every correct response, the most likely first; later ones apply if retention has deleted segments."""
        dialect = self.reference.dialect
        if dialect.rejects_unknown_targets and target < 0 and version < SINCE.get(target, 1 << 15):
            yield Row(UNSUPPORTED)
            return
        for dropped in range(self._deletable() + 1):
            row = self._row(target, view, dropped)
            yield row if version >= EPOCHS_SINCE else row._replace(leader_epoch=-1)

    def _row(self, target: int, view: View, dropped: int) -> Row:
        key = target, view, dropped
        if key not in self._found:
            self._found[key] = self._answer(target, view, dropped)
        return self._found[key]

    def _answer(self, target: int, view: View, dropped: int) -> Row:
        reference, log = self.reference, self.reference.log
        if reference.dialect.rejects_unknown_targets and target < 0 and not supports_target(reference.dialect, target):
            return NONE  # a target of a later release, which has no result without tiered storage
        left = cast("UnifiedLog", _TruncatedLogView(log, dropped)) if dropped else log
        try:
            found = list_offset(left, target, isolation_level=_ISOLATION[view], leader_epoch=reference.epoch)
        except KidxError as error:
            return Row(f"kidx: {error}")
        if found is None or found.offset < 0:
            return NONE
        epoch = -1 if found.leader_epoch is None else found.leader_epoch
        return Row(None, found.offset, found.timestamp, epoch)

    def _deletable(self) -> int:
        """Return the number of segments that end at or before the log start offset."""
        log = self.reference.log
        bases = [segment.base_offset for segment in log.segments]
        return sum(base <= log.start_offset for base in bases[1:])


class _TruncatedLogView:
    """View of a log without its first segments."""

    def __init__(self, log: UnifiedLog, dropped: int) -> None:
        self._log = log
        self.segments: list[LogSegment] = list(log.segments)[dropped:]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the offset for a timestamp, as the whole log does."""
        return fetch_offset(cast("UnifiedLog", self), target)
