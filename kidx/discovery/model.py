"""Partitions and segments as they were found: plain, picklable values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kidx.discovery.names import DELETE, SEGMENT_SUFFIXES, STRAY


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of one segment, whether they exist or not; picklable.

    Attributes:
        log: path of the ``.log`` file.
        base_offset: that it is named after.
        topic: None outside a partition directory.
        partition: likewise.
        existing: which of the four suffixes were there.
        is_last: no later segment follows: the broker may be writing to it.
        next_base_offset: base offset of the segment behind it; None of the last.
        clean: the log directory says that its broker shut down cleanly, so that nothing is being written.
        mark: behind the suffix of each file: ``.swap`` of what compaction is to put in the place of others.
    """

    log: Path
    base_offset: int
    topic: str | None = None
    partition: int | None = None
    existing: frozenset[str] = frozenset()
    is_last: bool = True
    next_base_offset: int | None = None
    clean: bool = False
    mark: str = ""

    def path(self, suffix: str) -> Path:
        """One of its files."""
        if self.mark:
            return self.log.with_name(f"{self.base_offset:020d}{suffix}{self.mark}")
        return self.log.with_suffix(suffix)

    @property
    def paths(self) -> list[Path]:
        """All its files, whether they exist or not."""
        return [self.path(suffix) for suffix in SEGMENT_SUFFIXES]


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that a broker renames before it deletes or replaces: ``mark`` is .deleted, .cleaned or .swap."""

    path: Path
    mark: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory; picklable.

    Attributes:
        directory: its path.
        topic: by the directory's name; None if it is not named ``topic-partition``.
        partition: likewise.
        state: ``delete``, ``future`` or ``stray`` if the directory is marked so; empty otherwise.
        segments: with a ``.log``, by base offset.
        orphans: index files without a ``.log``.
        leftovers: of deletion and compaction.
        epochs: the leader-epoch checkpoint; None if there is none.
        start_offset: from the log directory's checkpoint, or KRaft's oldest snapshot; None if there is neither.
        recovery_point: likewise.
        cleaned_to: likewise, of compaction's: what is below has been cleaned.
        complete: all segments were asked for, not some files of them.
        swaps: segments among the leftovers that a start puts in the place of those of the same offsets.
    """

    directory: Path
    topic: str | None = None
    partition: int | None = None
    state: str = ""
    segments: tuple[Segment, ...] = ()
    orphans: tuple[Path, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    epochs: Path | None = None
    start_offset: int | None = None
    recovery_point: int | None = None
    cleaned_to: int | None = None
    complete: bool = True
    swaps: tuple[Segment, ...] = ()

    @property
    def name(self) -> str:
        """``topic-partition``, or the directory's name."""
        return self.directory.name if self.topic is None else f"{self.topic}-{self.partition}"

    @property
    def is_marked(self) -> bool:
        """Whether it is of a deleted topic, or a stray: no broker serves it, and the first goes by itself."""
        return self.state in {DELETE, STRAY}


@dataclass(slots=True)
class Problem:
    """A path that was not looked at, and why; ``clause``: what it is needed for."""

    path: Path
    message: str
    clause: str = "SEG-35"


@dataclass(slots=True)
class Found:
    """What lies under some paths.

    Attributes:
        partitions: by directory.
        problems: what could not be read; the rest was.
        left_out: what was passed over, and is no fault.
    """

    partitions: list[Partition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)

    @property
    def segments(self) -> Iterator[Segment]:
        """All segments of all partitions."""
        return (segment for partition in self.partitions for segment in partition.segments)
