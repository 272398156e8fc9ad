"""The work of a fleet in portions: what one task verifies, and what it leaves behind.

A portion is a list of segments, many where they are small. Of a partition that is whole in its portion everything is
known at once; of one that is too big for that, the verdicts on its segments are kept until all are there.
"""

from __future__ import annotations

import hashlib
import pickle
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kidx import __version__
from kidx.discovery import LOG, SEGMENT_SUFFIXES, Partition, Segment
from kidx.spark.fleet.replicas import compare_replicas
from kidx.verify.guarded import guarded_partition, guarded_segment

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.verify import PartitionVerdict, SegmentVerdict

SEGMENT_COST: Final = 256 << 10
"""What looking at a segment costs besides its bytes, in bytes."""
LARGEST: Final = 2 << 30
"""Bytes of a portion, about: what a task loses when it dies."""
MOST: Final = 100_000
"""Portions at most, about: what a driver can keep track of. Those of a petabyte are larger instead."""


@dataclass(frozen=True)
class Share:
    """Some segments of a partition, or all.

    Attributes:
        partition: as discovered, without the segments of other shares.
        broker: that it was found on.
        whole: these are all its segments.
    """

    partition: Partition
    broker: str
    whole: bool = True


@dataclass(frozen=True)
class Portion:
    """The work of one task.

    Attributes:
        shares: what to look at.
        release, interval: as for :func:`kidx.verify.verify_segment`.
    """

    shares: tuple[Share, ...]
    release: Dialect | None
    interval: int | None

    @cached_property
    def id(self) -> str:
        """A name that changes whenever the files, the rules or kidx do."""
        digest = hashlib.sha256(f"{__version__} {self.release and self.release.release} {self.interval}".encode())
        for share in self.shares:
            digest.update(f"{share.partition.directory} {share.whole} {share.partition.orphans}".encode())
            for segment in share.partition.segments:
                digest.update(repr((str(segment.log), signature(segment))).encode())
        return digest.hexdigest()[:32]

    @property
    def segments(self) -> int:
        """How many there are to look at."""
        return sum(len(share.partition.segments) for share in self.shares)


@dataclass(frozen=True)
class Outcome:
    """What came of a share: of a whole partition its verdict, else the verdicts on its segments."""

    share: Share
    partition: PartitionVerdict | None = None
    segments: tuple[SegmentVerdict, ...] = ()


def signature(segment: Segment) -> tuple[tuple[str, int, int], ...]:
    """Size and time of each file of a segment."""
    found = []
    for suffix in SEGMENT_SUFFIXES:
        if suffix in segment.existing:
            try:
                status = segment.path(suffix).stat()
            except OSError:
                continue
            found.append((suffix, status.st_size, status.st_mtime_ns))
    return tuple(found)


def portions(
    partitions: Iterable[tuple[Partition, str]], tasks: int, release: Dialect | None, interval: int | None
) -> list[Portion]:
    """The work in about equal portions: at least ``tasks`` of them, and none much larger than :data:`LARGEST`.

    Args:
        partitions: with the broker of each.
        tasks: that can run at once, or a small multiple.
        release: as for :func:`kidx.verify.verify_segment`.
        interval: likewise.
    """
    costs = [
        (partition, broker, [_cost(segment) for segment in partition.segments]) for partition, broker in partitions
    ]
    total = sum(sum(each) for _, _, each in costs)
    target = max(min(LARGEST, total // max(tasks, 1)), total // MOST, SEGMENT_COST)
    found: list[list[Share]] = []
    room = 0
    for partition, broker, each in costs:
        for share, cost in _shares(partition, broker, each, target):
            # Shares of one partition are put together again later, and for that must not drag others along.
            if not found or cost > room or not share.whole or not found[-1][-1].whole:
                found.append([])
                room = target
            found[-1].append(share)
            room -= cost
    return [Portion(tuple(shares), release, interval) for shares in found]


def _cost(segment: Segment) -> int:
    try:
        return segment.path(LOG).stat().st_size + SEGMENT_COST
    except OSError:
        return SEGMENT_COST


def _shares(partition: Partition, broker: str, costs: list[int], target: int) -> Iterator[tuple[Share, int]]:
    if sum(costs) <= 2 * target or len(costs) == 1:
        yield Share(partition, broker), sum(costs)
        return
    start, cost = 0, 0
    for number, each in enumerate(costs):
        if number > start and cost + each > target:
            yield Share(replace(partition, segments=partition.segments[start:number]), broker, whole=False), cost
            start, cost = number, 0
        cost += each
    yield Share(replace(partition, segments=partition.segments[start:]), broker, whole=False), cost


def perform(portion: Portion) -> list[Outcome]:
    """Looks at every segment of a portion. A file that breaks the verifier itself is a finding, and nothing more."""
    return [_outcome(share, portion) for share in portion.shares]


def _outcome(share: Share, portion: Portion) -> Outcome:
    verdicts = tuple(
        guarded_segment(segment, release=portion.release, index_interval_bytes=portion.interval)
        for segment in share.partition.segments
    )
    if not share.whole:
        return Outcome(share, segments=verdicts)
    return Outcome(share, partition=_settled(share.partition, verdicts, portion.release, portion.interval))


def settle_shared(outcomes: Sequence[Outcome], release: Dialect | None, interval: int | None) -> Outcome:
    """The outcome of a partition from those of all its shares."""
    shares = [outcome.share for outcome in outcomes]
    partition = replace(
        shares[0].partition, segments=tuple(segment for share in shares for segment in share.partition.segments)
    )
    verdicts = [verdict for outcome in outcomes for verdict in outcome.segments]
    return Outcome(Share(partition, shares[0].broker), _settled(partition, verdicts, release, interval))


def _settled(
    partition: Partition, verdicts: Sequence[SegmentVerdict], release: Dialect | None, interval: int | None
) -> PartitionVerdict:
    return guarded_partition(partition, verdicts, release=release, index_interval_bytes=interval)


class Kept:
    """Work and outcomes in a directory that driver and workers share: one file each, there or not there.

    Args:
        directory: made if it is missing.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def has(self, name: str) -> bool:
        """Whether the outcomes of a piece of work are there."""
        return self._path(name, "done").exists()

    def lay_down(self, name: str, work: object) -> None:
        """Leaves work for a task."""
        self._write(self._path(name, "work"), work)

    def laid_down(self, name: str) -> Any:
        """The work that was left under a name."""
        return _load(self._path(name, "work"))

    def keep(self, name: str, outcomes: object) -> None:
        """Leaves the outcomes of a piece of work, and takes the work away."""
        self._write(self._path(name, "done"), outcomes)
        self._path(name, "work").unlink(missing_ok=True)

    def forget(self, name: str) -> None:
        """Takes the outcomes of a piece of work away, if they are there."""
        self._path(name, "done").unlink(missing_ok=True)

    def kept(self, name: str) -> Any:
        """The outcomes of a piece of work."""
        return _load(self._path(name, "done"))

    def _path(self, name: str, kind: str) -> Path:
        return self.directory / f"{name}.{kind}"

    def _write(self, path: Path, content: object) -> None:
        # In one step: a worker that dies leaves nothing, and two that do the same do no harm.
        self.directory.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        partial.write_bytes(pickle.dumps(content, protocol=5))
        partial.replace(path)


def _load(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 -- our own, in our own directory


def perform_named(kept: Kept, name: str) -> None:
    """What a task does: performs the portion that the driver has laid down under a name, and keeps the outcomes."""
    if not kept.has(name):  # a task that Spark starts once more, or twice
        kept.keep(name, perform(kept.laid_down(name)))


def compare_named(kept: Kept, name: str) -> None:
    """The same for groups of replicas."""
    if not kept.has(name):
        groups = kept.laid_down(name)
        kept.keep(name, [found for group in groups for found in compare_replicas(group)])
