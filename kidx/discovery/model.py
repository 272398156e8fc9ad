"""Results of a discovery: partitions, segments and problems as plain, picklable values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kidx.discovery.names import DELETE, SEGMENT_SUFFIXES, STRAY


@dataclass(frozen=True, slots=True)
class Segment:
    """Files of one segment, whether they exist or not; picklable.

    Attributes:
        log: path of the ``.log`` file.
        base_offset: base offset in the names of the files.
        topic: name of the topic; None outside a partition directory.
        partition: number of the partition; None outside a partition directory.
        existing: suffixes of the files that exist: ``.log``, ``.index``, ``.timeindex``, ``.txnindex``.
        is_last: True if no later segment exists, so that the broker may be writing to this one.
        next_base_offset: base offset of the next segment; None for the last one.
        clean: True if the broker of the log directory shut down cleanly, so that nothing is being written, and the next
            start loads the segment unchanged; KRaft's own log is recovered after every stop.
        mark: last suffix of each file: ``.swap`` for a result of compaction that replaces other segments.
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
        """Return the path of the file with a suffix."""
        if self.mark:
            return self.log.with_name(f"{self.base_offset:020d}{suffix}{self.mark}")
        return self.log.with_suffix(suffix)

    @property
    def paths(self) -> list[Path]:
        """Paths of the four files of the segment, whether they exist or not."""
        return [self.path(suffix) for suffix in SEGMENT_SUFFIXES]


@dataclass(frozen=True, slots=True)
class Leftover:
    """File that a broker has renamed to delete it or to replace others; ``mark`` is .deleted, .cleaned or .swap."""

    path: Path
    mark: str


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition directory; picklable.

    Attributes:
        topic: name of the topic; None if the directory is not named ``topic-partition``.
        partition: number of the partition; None as for ``topic``.
        state: ``delete``, ``future`` or ``stray`` if the directory is marked so; empty otherwise.
        segments: segments with a ``.log``, by base offset.
        orphans: index files without a ``.log``.
        leftovers: files that deletion or compaction has renamed.
        epochs: path of the leader-epoch checkpoint; None if it does not exist.
        start_offset: log start in the log directory's checkpoint, or in KRaft's oldest snapshot; None without either.
        recovery_point: recovery point in the log directory's checkpoint; None without one.
        cleaned_to: offset in the checkpoint of compaction, below which the log has been cleaned; None without one.
        high_watermark: high watermark in the log directory's checkpoint; None without one.
        complete: True if the whole partition was requested, False if only some of its files were.
        swaps: segments among the leftovers that replace segments of the same offsets at the next start.
        earlier: checkpoints that were written before the topic was created, each with the offset of the earlier topic.
        may_have_gaps: True if its topic is compacted, and no checkpoint says how far.
        is_tiered: True if its topic has remote storage.
        may_have_moved: True unless it has always been in this log directory, as far as KRaft's metadata say.
        is_replicated: True if other brokers have it, too, according to KRaft's metadata.
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
    high_watermark: int | None = None
    complete: bool = True
    swaps: tuple[Segment, ...] = ()
    earlier: tuple[tuple[str, int], ...] = ()
    may_have_gaps: bool = False
    is_tiered: bool = False
    is_replicated: bool = False
    may_have_moved: bool = False

    @property
    def name(self) -> str:
        """``topic-partition``, or the directory's name."""
        return self.directory.name if self.topic is None else f"{self.topic}-{self.partition}"

    @property
    def is_marked(self) -> bool:
        """True if the topic was deleted or the partition is a stray, so that no broker serves it."""
        return self.state in {DELETE, STRAY}


@dataclass(slots=True)
class Problem:
    """Path that was skipped, with the reason; ``clause`` is the clause that requires a readable path."""

    path: Path
    message: str
    clause: str = "SEG-35"


@dataclass(slots=True)
class Found:
    """Contents of some paths.

    Attributes:
        partitions: partitions, by directory.
        problems: paths that cannot be read.
        left_out: paths that were skipped, which is not a fault.
    """

    partitions: list[Partition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)

    @property
    def segments(self) -> Iterator[Segment]:
        """Segments of all partitions."""
        return (segment for partition in self.partitions for segment in partition.segments)
