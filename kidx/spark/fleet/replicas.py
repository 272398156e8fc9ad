"""Comparison of the replicas of a partition on several brokers, batch by batch.

A follower's log contains the batches of its leader; the checksum does not cover the leader epoch. Replicas may differ:
segments begin at other offsets, old segments are deleted, the end is not replicated yet, or a cleaner on one broker has
removed records. It is an error if two batches with the same offsets, size and count have different bytes, or if one
replica lacks a batch although no cleaner ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kidx.printable import counted
from kidx.spark.fleet.listing import Request, Row, place_of
from kidx.storage import Store
from kidx.tables.batch_walk import BatchWalk
from kidx.verify.replicas import in_step

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.spark.fleet.places import Place


@dataclass(frozen=True)
class Replica:
    """Partition's directory on one broker.

    Attributes:
        topic, partition: topic and number of the partition.
        place: location of the directory.
        logs: base offset and file name of each segment, in order.
        start_offset: log start in the log directory's checkpoint; None without an entry.
        cluster: id of the broker's cluster; empty if unknown.
        topic_id: id of the topic; None if unknown.
    """

    topic: str
    partition: int
    place: Place
    logs: tuple[tuple[int, str], ...]
    start_offset: int | None = None
    cluster: str = ""
    topic_id: str | None = None

    @property
    def start(self) -> int:
        """First visible offset."""
        return max(self.logs[0][0] if self.logs else 0, self.start_offset or 0)


def compare_listed(request: Request, listed: Iterable[Row]) -> Iterator[Difference]:
    """Return the differences between the replicas of one partition, by their rows of the listing."""
    replicas = [
        Replica(
            row["topic"],
            row["partition"],
            place_of(row, request),
            tuple((each["base_offset"], each["log"]) for each in row["segments"]),
            row["start_offset"],
            row["cluster"],
            row["topic_id"],
        )
        for row in listed
    ]
    return compare_replicas(replicas)


@dataclass(frozen=True)
class Difference:
    """Difference between two replicas.

    Attributes:
        topic, partition: topic and number of the partition.
        path: directory of the replica.
        other: directory of the other replica, the first by path.
        offset: base offset of the batch; -1 if a log cannot be read.
        expected: content of the other replica.
        actual: content of this replica.
        message: full description.
    """

    topic: str
    partition: int
    path: str
    other: str
    offset: int
    expected: str
    actual: str
    message: str


class _Batch(NamedTuple):
    """Header of a batch, as far as it is compared; ``records`` is None in an old format."""

    base_offset: int
    last_offset: int
    size: int
    records: int | None
    crc: int

    def __str__(self) -> str:
        return f"offsets {self.base_offset} to {self.last_offset}, {counted(self.size, 'byte')}, checksum {self.crc}"


def compare_replicas(replicas: Sequence[Replica]) -> Iterator[Difference]:
    """Compare every replica with the first one of its cluster by path; return the first difference of each.

    Args:
        replicas: replicas of one partition, at least one. A replica of an unknown cluster may belong to any cluster.
    """
    clusters = sorted({replica.cluster for replica in replicas if replica.cluster}) or [""]
    for cluster in clusters:
        known = (replica for replica in replicas if (replica.cluster or clusters[0]) == cluster)
        first, *others = sorted(known, key=lambda replica: replica.place.name)
        for other in others:
            difference = _first_difference(first, other)
            if difference is not None:
                yield difference


def _first_difference(one: Replica, two: Replica) -> Difference | None:
    try:
        found = _first_fault(one, two, max(one.start, two.start))
    except Exception as error:  # noqa: BLE001 -- each store has different errors
        found = _Fault(-1, "", "", f"cannot be compared: {str(error) or type(error).__name__}")
    if found is None:
        return None
    name, other = two.place.name, one.place.name
    message = f"{name}: {found.message}"
    return Difference(
        two.topic, two.partition, name, other, found.offset, str(found.expected), str(found.actual), message
    )


class _Fault(NamedTuple):
    """Fields of a :class:`Difference` that do not name the replicas."""

    offset: int
    expected: object
    actual: object
    message: str


def _first_fault(one: Replica, two: Replica, start: int) -> _Fault | None:
    if None not in (one.topic_id, two.topic_id) and one.topic_id != two.topic_id:
        message = f"another topic: topic id {two.topic_id}, and {one.place.name} has {one.topic_id}"
        return _Fault(-1, one.topic_id, two.topic_id, message)
    cleaned: bool | None = None
    for mine, yours in in_step(_from(one, start), _from(two, start)):
        if mine.base_offset == yours.base_offset:
            offset = mine.base_offset
            if mine.last_offset != yours.last_offset:  # a cleaner does not change it (RB-2)
                return _Fault(offset, mine, yours, f"the batch at offset {offset} ends at another offset")
            if (mine.size, mine.records) == (yours.size, yours.records) and mine.crc != yours.crc:
                return _Fault(offset, mine, yours, f"the batch at offset {offset} has other bytes")
            continue
        first, second = sorted((mine, yours))
        if second.base_offset <= first.last_offset:
            return _Fault(first.base_offset, mine, yours, f"batches overlap at offset {second.base_offset}")
        cleaned = _are_cleaned(one, two) if cleaned is None else cleaned
        if not cleaned:
            lacks = (one if first is yours else two).place.name
            return _Fault(first.base_offset, mine, yours, f"{lacks} lacks the batch at offset {first.base_offset}")
    return None


def _are_cleaned(one: Replica, two: Replica) -> bool:
    """Return True if a cleaner ran: a batch has fewer records than offsets, or both replicas have gaps."""
    gaps = []
    for replica in (one, two):
        following, gap = None, False
        for batch in _from(replica, replica.start):
            if batch.records is not None and batch.records <= batch.last_offset - batch.base_offset:
                return True
            gap = gap or (following is not None and batch.base_offset > following)
            following = batch.last_offset + 1
        gaps.append(gap)
    return all(gaps)


def _from(replica: Replica, offset: int) -> Iterator[_Batch]:
    """Yield the batches of a replica whose offsets are all at least an offset."""
    store = replica.place.store or Store("/")
    for (_, log), following in pairwise([*replica.logs, (None, "")]):
        if following[0] is not None and following[0] <= offset:
            continue
        with store.open(f"{replica.place.path}/{log}") as reader:
            for _, batch, _ in BatchWalk(reader, 0, reader.size, source=f"{replica.place.name}/{log}", wanted=_nothing):
                if batch.base_offset >= offset:
                    yield _Batch(batch.base_offset, batch.last_offset, batch.size_in_bytes, batch.count, batch.crc)


def _nothing(_: RecordBatch) -> bool:
    return False
