"""Every question that a partition is asked: targets, request versions, isolation levels, readers, epochs, doubles."""

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

    from conformance.implementations.wire.promises import View
    from conformance.kafka.client import Isolation

SPECIAL: Final = (-1, -2, -3, -4, -5, -6)
BEYOND: Final = (-7, -(1 << 63))
"""Targets that no version gives a meaning."""
UNTIMED: Final = (-1, -2)
"""Targets that need no record's timestamp, in every version."""
NEWEST: Final = 3
SPREAD: Final = 3
_DAY_MS: Final = 86_400_000
_ISOLATION_SINCE: Final = 2
_EPOCHS_SINCE: Final = 4
_NO_SUCH_PARTITION: Final = 1 << 20


class Asked(NamedTuple):
    """One question: its request, what it is about, and what its reader may see."""

    request: OffsetsRequest
    target: int
    view: View

    def __str__(self) -> str:
        request = self.request
        reader = "" if request.replica_id == CONSUMER_REPLICA_ID else f", replica {request.replica_id}"
        return f"ListOffsets version {request.version}, {request.isolation}{reader}, target {self.target}"


class Refusal(NamedTuple):
    """A question that has to be refused: with which error, by which clause."""

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
    """The special targets, some beyond them, and a grid around timestamps: all of them, or new and spread ones."""
    stamps = sorted(set(timestamps))
    if not every and len(stamps) > NEWEST + SPREAD:
        stamps = sorted({*stamps[:: max(1, len(stamps) // SPREAD)], *timestamps[-NEWEST:], stamps[-1]})
    around = {stamp + step for stamp in stamps for step in (-1, 0, 1)}
    outside = {0, 1, max(stamps, default=0) + _DAY_MS, LARGEST_TARGET}
    return [*SPECIAL, *BEYOND, *sorted(target for target in around | outside if target >= 0)]


def questions(topic: str, wanted: Iterable[int], versions: Iterable[int]) -> Iterator[Asked]:
    """Each target in each version, with each isolation level and as each kind of reader that the version knows.

    Version 0 has modification times of files for an answer, but for the latest and the earliest offset.
    """
    for version in versions:
        for target in wanted:
            if version == 0 and target not in SPECIAL[:2]:
                continue
            for isolation, replica_id, view in _readers(version):
                request = OffsetsRequest((PartitionQuery(topic, target),), version, isolation, replica_id)
                yield Asked(request, target, view)


def _readers(version: int) -> Iterator[tuple[Isolation, int, View]]:
    yield "read_uncommitted", CONSUMER_REPLICA_ID, "read_uncommitted"
    if version >= _ISOLATION_SINCE:
        yield "read_committed", CONSUMER_REPLICA_ID, "read_committed"
        yield "read_committed", DEBUG_REPLICA_ID, "replica"


def believing(topic: str, leader_epoch: int, versions: Iterable[int]) -> Iterator[Asked]:
    """The questions of readers that know the right leader epoch."""
    for version in versions:
        if version >= _EPOCHS_SINCE:
            for target in SPECIAL[:2]:
                request = OffsetsRequest((PartitionQuery(topic, target, leader_epoch=leader_epoch),), version)
                yield Asked(request, target, "read_uncommitted")


def refusals(topic: str, leader_epoch: int, versions: Iterable[int]) -> Iterator[Refusal]:
    """A partition asked for twice, partitions that are not there, and leader epochs that are not this leader's."""
    for version in versions:
        if version == 0:
            continue
        twice = (PartitionQuery(topic, -1), PartitionQuery(topic, 0))
        yield Refusal(OffsetsRequest(twice, version), "INVALID_REQUEST", "LO-24")
        for unknown in (PartitionQuery(topic, -1, _NO_SUCH_PARTITION), PartitionQuery(f"{topic}-unknown", -1)):
            yield Refusal(OffsetsRequest((unknown,), version), "UNKNOWN_TOPIC_OR_PARTITION", "LO-25")
        if version >= _EPOCHS_SINCE:
            newer = PartitionQuery(topic, -1, leader_epoch=leader_epoch + 1)
            yield Refusal(OffsetsRequest((newer,), version), "UNKNOWN_LEADER_EPOCH", "LO-26")
            if leader_epoch > 0:
                older = PartitionQuery(topic, -1, leader_epoch=leader_epoch - 1)
                yield Refusal(OffsetsRequest((older,), version), "FENCED_LEADER_EPOCH", "LO-26")
