"""Comparison of two directories of one partition: from which offset on they differ, and which would be truncated.

A follower's log has the batches of its leader, byte for byte except for the leader epoch. Segments may begin at other
offsets, old ones may be gone, and the end may not be replicated yet. A cleaner removes records on each broker on its
own: then the directories differ without harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from kidx.discovery import discover
from kidx.errors import ToolError
from kidx.log.epochs import EpochEntry, read_epochs
from kidx.printable import counted, encodable, shell_word
from kidx.scan.blocks import LogBlocks

if TYPE_CHECKING:
    import os

    from kidx.discovery import Partition

_COLUMNS: Final = ("base_offset", "last_offset", "count", "crc", "leader_epoch", "magic", "position", "crc_ok")
_RANGE_KEPT: Final = 2
"""Format from which on a cleaner keeps the first and the last offset of a batch that it rewrites."""


class _Batch(NamedTuple):
    base_offset: int
    last_offset: int
    records: int
    crc: int
    leader_epoch: int
    magic: int
    position: int
    is_valid: bool

    def overlaps(self, later: _Batch) -> bool:
        """Return True if a batch that begins later has offsets of this one, which no cleaner explains."""
        return self.last_offset >= later.base_offset and min(self.magic, later.magic) >= _RANGE_KEPT

    def __str__(self) -> str:
        epoch = f", leader epoch {self.leader_epoch}" if self.leader_epoch >= 0 else ""
        fails = "" if self.is_valid else ", which it fails"
        return f"offsets {self.base_offset} to {self.last_offset}, checksum {self.crc}{fails}{epoch}"


@dataclass(slots=True)
class Replica:
    """Directory of a partition.

    Attributes:
        start, end: offsets of its first record and after its last one.
        epochs: leader epochs in its checkpoint, each with its first offset.
        is_cleaned: True if batches have fewer records than offsets.
        overlaps: number of batches that have offsets of earlier batches of this replica.
        first_overlap: the first of them, as text; empty without one.
    """

    directory: Path
    start: int = 0
    end: int = 0
    epochs: tuple[EpochEntry, ...] = ()
    is_cleaned: bool = False
    overlaps: int = 0
    first_overlap: str = ""

    @property
    def latest_epoch(self) -> int:
        """Latest leader epoch; -1 without one."""
        return max((each.epoch for each in self.epochs), default=-1)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the latest own epoch up to another, and its end, as a leader answers OffsetForLeaderEpoch."""
        own = [each for each in self.epochs if each.epoch <= epoch]
        later = [each.start_offset for each in self.epochs if each.epoch > epoch]
        return (own[-1].epoch if own else -1), min([*later, self.end])

    def to_json(self) -> dict[str, Any]:
        """Return an object of ``kidx compare-replicas --json``."""
        return {
            "directory": encodable(str(self.directory)),
            "start_offset": self.start,
            "end_offset": self.end,
            "leader_epochs": [list(each) for each in self.epochs],
            "compacted": self.is_cleaned,
            "overlapping_batches": self.overlaps,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two replicas.

    Attributes:
        compared: number of batches that both have.
        first: first offset at which they differ with harm; None if they do not.
        batches: the batches at that offset, as text; "no batch" for a replica without one.
        only: number of batches that only one replica has, because a cleaner has removed them on the other broker.
    """

    one: Replica
    two: Replica
    compared: int = 0
    first: int | None = None
    batches: tuple[str, str] = ("", "")
    only: int = 0

    @property
    def exit_code(self) -> int:
        """Exit code. 0: all batches that both should have are the same; 1: they differ, or batches of one overlap."""
        return int(self.first is not None or any(each.overlaps for each in (self.one, self.two)))

    @property
    def favoured(self) -> Replica | None:
        """Replica with the later leader epoch at its end, which was written by the later leader; None if both have it.

        Of two replicas with the same last epoch, the longer one has all records of the other.
        """
        one, two = self.one, self.two
        if one.latest_epoch == two.latest_epoch:
            return None if self.first is not None or one.end == two.end else max(one, two, key=lambda each: each.end)
        return max(one, two, key=lambda each: each.latest_epoch)

    def truncation(self, leader: Replica) -> int:
        """Return the offset to which the other replica truncates its log if one becomes the leader.

        It asks the leader where its latest epoch ends (KIP-101, KIP-279), until both know the epoch.
        """
        follower = self.two if leader is self.one else self.one
        epoch = follower.latest_epoch
        if epoch < 0:
            return follower.end  # without epochs, a follower goes by its high watermark
        while epoch >= 0:
            known, end = leader.end_of(epoch)
            own, own_end = follower.end_of(known)
            if own == known >= 0:
                return min(end, own_end)
            epoch = own
        return min(leader.start, follower.end)

    def lines(self) -> list[str]:
        """Return the comparison as text."""
        names = {id(each): shell_word(each.directory) for each in (self.one, self.two)}
        lines = [
            f"{names[id(each)]}: offsets {each.start} to {each.end}, latest leader epoch {each.latest_epoch}"
            f"{', compacted' if each.is_cleaned else ''}"
            for each in (self.one, self.two)
        ]
        both = counted(self.compared, "batch")
        if self.first is not None:
            lines.append(f"they differ from offset {self.first} on, after {both} that both have")
            lines += [f"  {name}: {batch}" for name, batch in zip(names.values(), self.batches, strict=True)]
        elif self.only:
            lines.append(f"{both} are the same; {counted(self.only, 'batch')} only in one, which compaction explains")
        else:
            lines.append(f"{both} are the same, up to offset {min(self.one.end, self.two.end)}")
        lines += [
            f"{names[id(each)]}: {counted(each.overlaps, 'batch')} with offsets of earlier batches, first "
            f"{each.first_overlap}"
            for each in (self.one, self.two)
            if each.overlaps
        ]
        best = self.favoured
        if best is not None:
            why = "a later leader epoch" if self.one.latest_epoch != self.two.latest_epoch else "more records"
            lines.append(f"{names[id(best)]} is favoured: it has {why}")
        for leader, follower in ((self.one, self.two), (self.two, self.one)):
            if (target := self.truncation(leader)) < follower.end:
                lines.append(
                    f"if {names[id(leader)]} leads, {names[id(follower)]} is truncated from {follower.end} to {target}"
                )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``kidx compare-replicas --json``."""
        return {
            "replicas": [self.one.to_json(), self.two.to_json()],
            "same": self.first is None,
            "compared_batches": self.compared,
            "first_difference": self.first,
            "batches": list(self.batches),
            "only_in_one": self.only,
            "favoured": None if self.favoured is None else encodable(str(self.favoured.directory)),
            "truncated_to": [self.truncation(self.two), self.truncation(self.one)],
        }


def compare_replicas(one: str | os.PathLike[str], two: str | os.PathLike[str]) -> Comparison:
    """Return the comparison of two directories of one partition.

    Raises:
        ToolError: a path is not the directory of one partition.
        OSError: a log cannot be read.
    """
    readers = [_Reader(_partition(Path(path))) for path in (one, two)]
    left, right = readers
    start = max(each.replica.start for each in readers)
    compared = only = 0
    gap: tuple[int, str, str] | None = None
    other: tuple[int, str, str] | None = None
    furthest: _Batch | None = None
    for mine, yours in in_step(*(_reaching(each, start) for each in readers)):
        if mine.base_offset == yours.base_offset:
            is_same = (mine.crc, mine.is_valid) == (yours.crc, yours.is_valid)
            if mine.last_offset != yours.last_offset or (mine.records == yours.records and not is_same):
                other = mine.base_offset, str(mine), str(yours)
                break
            compared += 1
            furthest = mine if furthest is None else max(furthest, mine, key=lambda each: each.last_offset)
            continue
        earlier, later = sorted((mine, yours))
        if earlier.overlaps(later) or (furthest is not None and furthest.overlaps(earlier)):
            other = earlier.base_offset, str(mine), str(yours)
            break
        only += 1
        if mine.base_offset < yours.base_offset:
            gap = gap or (mine.base_offset, str(mine), f"no batch before offset {yours.base_offset}")
        else:
            gap = gap or (yours.base_offset, f"no batch before offset {mine.base_offset}", str(yours))
    for each in readers:
        each.finish()
    is_cleaned = any(each.replica.is_cleaned for each in readers) or all(each.has_gaps for each in readers)
    found = gap if gap is not None and not is_cleaned else other
    first, *batches = found or (None, "", "")
    return Comparison(left.replica, right.replica, compared, first, (batches[0], batches[1]), only)


class HasBaseOffset(Protocol):
    """Batch of a log."""

    @property
    def base_offset(self) -> int:
        """Offset of its first record."""


BatchT = TypeVar("BatchT", bound=HasBaseOffset)


def in_step(one: Iterable[BatchT], two: Iterable[BatchT]) -> Iterator[tuple[BatchT, BatchT]]:
    """Yield the next batch of each of two logs, until a log ends; then pass the batch that begins first, or both."""
    left, right = iter(one), iter(two)
    mine, yours = next(left, None), next(right, None)
    while mine is not None and yours is not None:
        yield mine, yours
        first, second = mine.base_offset, yours.base_offset
        if first <= second:
            mine = next(left, None)
        if second <= first:
            yours = next(right, None)


def _reaching(batches: Iterator[_Batch], offset: int) -> Iterator[_Batch]:
    return dropwhile(lambda batch: batch.last_offset < offset, batches)


def _partition(path: Path) -> Partition:
    partitions = discover([path]).partitions
    if len(partitions) != 1 or not partitions[0].complete or not partitions[0].segments:
        raise ToolError(f"{shell_word(path)} is not the directory of one partition with segments")
    return partitions[0]


class _Reader(Iterator[_Batch]):
    """Reader of a partition's batches, which learns what the whole directory is like."""

    def __init__(self, partition: Partition) -> None:
        start = max(partition.segments[0].base_offset, partition.start_offset or 0)
        epochs = read_epochs(partition.epochs) if partition.epochs is not None else []
        self.replica = Replica(partition.directory, start, start, tuple(epochs))
        self.has_gaps = False
        self._batches = self._read([segment.log for segment in partition.segments])

    def __next__(self) -> _Batch:
        return next(self._batches)

    def finish(self) -> None:
        """Read the rest."""
        for _ in self:
            pass

    def _read(self, logs: Sequence[Path]) -> Iterator[_Batch]:
        replica, following = self.replica, None
        for log in logs:
            with LogBlocks(log) as blocks:
                for rows in blocks:
                    for row in zip(*(rows[name].tolist() for name in _COLUMNS), strict=True):
                        batch = _Batch(*row)
                        length = batch.last_offset - batch.base_offset + 1
                        replica.is_cleaned |= 0 <= batch.records < length
                        if following is not None and batch.base_offset < following:
                            place = f"{shell_word(log.name)} at byte {batch.position}"
                            replica.first_overlap = replica.first_overlap or f"{batch}, {place}"
                            replica.overlaps += 1
                        self.has_gaps |= following is not None and batch.base_offset > following
                        following = max(following or 0, batch.last_offset + 1)
                        replica.end = max(replica.end, following)
                        yield batch
