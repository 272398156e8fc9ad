"""Queries of a partition: all targets, request versions, isolation levels, readers and epochs, and duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.kafka.client import (
    CONSUMER_REPLICA_ID,
    DEBUG_REPLICA_ID,
    LARGEST_TARGET,
    OffsetsRequest,
    PartitionQuery,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.implementations.wire.contract import View
    from conformance.kafka.client import Isolation

SPECIAL: Final = (-1, -2, -3, -4, -5, -6)
UNKNOWN_TARGETS: Final = (-7, -(1 << 63))
"""Targets that have no meaning in any version."""
TIMESTAMPLESS_TARGETS: Final = (-1, -2)
"""Targets that need no timestamps of records, in any version."""
NEWEST: Final = 3
"""Number of the newest timestamps around which targets are requested, unless all are requested."""
SPREAD: Final = 3
"""Approximate number of other timestamps around which targets are requested."""
_DAY_MS: Final = 86_400_000
_ISOLATION_SINCE: Final = 2  # the first version of the request with an isolation level
_EPOCHS_SINCE: Final = 4  # the first version with a leader epoch
_NO_SUCH_PARTITION: Final = 1 << 20


class Query(NamedTuple):
    """Query: the request, the target, and the records that the reader may read."""

    request: OffsetsRequest
    target: int
    view: View

    def __str__(self) -> str:
        request = self.request
        reader = "" if request.replica_id == CONSUMER_REPLICA_ID else f", replica {request.replica_id}"
        return f"ListOffsets version {request.version}, {request.isolation}{reader}, target {self.target}"


class ExpectedError(NamedTuple):
    """Request that must fail: the request, the expected error, and the clause."""

    request: OffsetsRequest
    error: str
    clause: str

    def __str__(self) -> str:
        questions = ", ".join(
            f"{q.topic!r} partition {q.partition} target {q.target} leader epoch {q.leader_epoch}"
            for q in self.request.queries
        )
        return f"ListOffsets version {self.request.version}: {questions}"


def targets(timestamps: Sequence[int], *, every: bool = False) -> list[int]:
    """Return the special targets, unknown targets, and targets around the timestamps.

    With ``every`` these are around all timestamps, otherwise around the newest ones and some spread over the others.
    """
    stamps = sorted(set(timestamps))
    if not every and len(stamps) > NEWEST + SPREAD:
        stamps = sorted({*stamps[:: max(1, len(stamps) // SPREAD)], *timestamps[-NEWEST:], stamps[-1]})
    around = {stamp + step for stamp in stamps for step in (-1, 0, 1)}
    outside = {0, 1, max(stamps, default=0) + _DAY_MS, LARGEST_TARGET}
    return [*SPECIAL, *UNKNOWN_TARGETS, *sorted(target for target in around | outside if target >= 0)]


def queries(topic: str, wanted: Iterable[int], versions: Iterable[int]) -> Iterator[Query]:
    """Yield each target in each version, with each isolation level and each kind of reader that the version supports.

    Version 0 searches by the modification times of the segment files: only the latest and earliest offset are
    requested.
    """
    for version in versions:
        for target in wanted:
            if version == 0 and target not in SPECIAL[:2]:
                continue
            for isolation, replica_id, view in _readers(version):
                request = OffsetsRequest((PartitionQuery(topic, target),), version, isolation, replica_id)
                yield Query(request, target, view)


def _readers(version: int) -> Iterator[tuple[Isolation, int, View]]:
    yield "read_uncommitted", CONSUMER_REPLICA_ID, "read_uncommitted"
    if version >= _ISOLATION_SINCE:
        yield "read_committed", CONSUMER_REPLICA_ID, "read_committed"
        yield "read_committed", DEBUG_REPLICA_ID, "replica"


def leader_epoch_queries(topic: str, leader_epoch: int, versions: Iterable[int]) -> Iterator[Query]:
    """Yield the queries of readers that send the current leader epoch."""
    for version in versions:
        if version >= _EPOCHS_SINCE:
            for target in SPECIAL[:2]:
                request = OffsetsRequest((PartitionQuery(topic, target, leader_epoch=leader_epoch),), version)
                yield Query(request, target, "read_uncommitted")


def error_queries(topic: str, leader_epoch: int, versions: Iterable[int]) -> Iterator[ExpectedError]:
    """Yield requests that must fail: a duplicate partition, unknown partitions, and wrong leader epochs."""
    for version in versions:
        if version == 0:
            continue
        twice = (PartitionQuery(topic, -1), PartitionQuery(topic, 0))
        yield ExpectedError(OffsetsRequest(twice, version), "INVALID_REQUEST", "LO-24")
        for unknown in (PartitionQuery(topic, -1, _NO_SUCH_PARTITION), PartitionQuery(f"{topic}-unknown", -1)):
            yield ExpectedError(OffsetsRequest((unknown,), version), "UNKNOWN_TOPIC_OR_PARTITION", "LO-25")
        if version >= _EPOCHS_SINCE:
            newer = PartitionQuery(topic, -1, leader_epoch=leader_epoch + 1)
            yield ExpectedError(OffsetsRequest((newer,), version), "UNKNOWN_LEADER_EPOCH", "LO-26")
            if leader_epoch > 0:
                older = PartitionQuery(topic, -1, leader_epoch=leader_epoch - 1)
                yield ExpectedError(OffsetsRequest((older,), version), "FENCED_LEADER_EPOCH", "LO-26")
