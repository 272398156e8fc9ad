"""Log of a partition, read in place: the lookups of :class:`kidx.UnifiedLog` without its writes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import discover
from kidx.errors import ToolError
from kidx.log.epochs import LeaderEpochs, read_epochs
from kidx.log.errors import UnsupportedTargetError
from kidx.log.lookup import EARLIEST, EARLIEST_LOCAL, LATEST, fetch_offset, supports_target
from kidx.lookup.file_segment import FileSegment
from kidx.scan.entries import read_index

if TYPE_CHECKING:
    from kidx.discovery import Partition
    from kidx.segment import TimestampAndOffset

_MAX_OPEN: Final = 64
"""Maximum number of segments that remain open between lookups; each has three open files."""


class ReadOnlyLog:
    """Log in a partition directory; a context manager. A broker may be writing to it.

    Args:
        directory: directory of the partition, e.g. ``/data/orders-0``.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Attributes:
        segments: the segments, oldest first.
        all_segments: the segments of all tiers, oldest first.
        start_offset: start offset from the log directory's checkpoint, or the first segment's base offset.
        search_start: the same offset, by the name that :mod:`kidx.log.lookup` uses.
        epochs: the leader epochs in the checkpoint.
        checkpointed_start: start offset from the log directory's checkpoint, or None if it has none.
        begins_before: start of the log if earlier segments are in the remote tier; None if no segment is.

    Raises:
        ToolError: the directory is not a partition, or has no segment.
        OSError: a checkpoint cannot be read.
    """

    def __init__(self, directory: str | os.PathLike[str], dialect: str | Dialect | None = None) -> None:
        self.directory = Path(directory)
        self.dialect = dialect_of(dialect)
        partition = _partition(self.directory)
        self._scratch = tempfile.TemporaryDirectory(prefix="kidx-lookup-")
        self.scratch = Path(self._scratch.name)
        self.segments = [FileSegment(segment, self.dialect, self.scratch) for segment in partition.segments]
        self.all_segments = self.segments
        self._used: set[FileSegment] = set()
        self.checkpointed_start = partition.start_offset
        self.start_offset = max(partition.start_offset or 0, self.segments[0].base_offset)
        self.search_start = self.start_offset
        self.epochs = LeaderEpochs(read_epochs(partition.epochs) if partition.epochs else [])
        first = self.epochs.earliest_entry
        begins = [each for each in (partition.start_offset, first and first.start_offset) if each is not None]
        earlier = min(begins, default=self.start_offset)
        self.begins_before = earlier if earlier < self.segments[0].base_offset else None

    is_tiered = False
    recovered_end: int | None = None
    """End of the log after a start that recovers it; None if it is not recovered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for segment in self.all_segments:
            segment.close()
        self._scratch.cleanup()

    @property
    def end_offset(self) -> int:
        """Offset of the next record.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        if self.recovered_end is not None:
            return self.recovered_end
        return self.segments[-1].reader.read_next_offset()

    @property
    def lacks_end(self) -> bool:
        """True if the index of the last segment points past the end of its log, so that a log with batches has no end.

        Raises:
            KidxError, OSError: the last segment cannot be read.
        """
        last = self.segments[-1]
        return last.log_size > 0 and self.end_offset == last.base_offset

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """Return the result of a broker with these files, if the whole log is on all replicas.

        Args:
            target: milliseconds, or one of :data:`kidx.log.lookup.TARGETS`.

        Raises:
            UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
            KidxError, OSError: an index or a log cannot be read.
        """
        self.check_target(target)
        try:
            result = self._fetch(target)
        finally:
            self._close_oldest()
        # A time index may name a record that the log no longer has; clients do not get its offset (LO-12).
        is_start_or_end = target in (LATEST, EARLIEST, EARLIEST_LOCAL) and supports_target(self.dialect, target)
        return result if result is None or is_start_or_end or result.offset < self.end_offset else None

    def _fetch(self, target: int) -> TimestampAndOffset | None:
        return fetch_offset(self, target)

    def check_target(self, target: int) -> None:
        """Reject a target that a broker of the release rejects.

        Raises:
            UnsupportedTargetError: 3.9 and later, a negative target that the release does not support (LO-15).
        """
        if target < 0 and self.dialect.rejects_unknown_targets and not supports_target(self.dialect, target):
            raise UnsupportedTargetError(f"Kafka {self.dialect.release} does not support target {target}")

    def _close_oldest(self) -> None:
        opened = [segment for segment in self.all_segments if segment.is_open]
        self._used.update(opened)
        for segment in opened[:-_MAX_OPEN]:
            segment.close()

    def indexes_past_log_end(self) -> list[Path]:
        """Return the offset indexes, among the segments read so far, with an entry at or past the log end.

        Raises:
            OSError: an index cannot be read.
        """
        wrong = []
        for segment in self.all_segments:
            path = segment.files.path(".index")
            if (segment in self._used or segment.is_open) and path.exists():
                positions = read_index(path, segment.base_offset).entries["position"]
                if len(positions) and int(positions.max()) >= segment.files.log.stat().st_size:
                    wrong.append(path)
        return wrong

    def segments_from(self, offset: int) -> Iterator[FileSegment]:
        """Yield the segment that contains ``offset``, and all after it."""
        segments = self.all_segments
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if following is None or following.base_offset > offset:
                yield segment


def _partition(directory: Path) -> Partition:
    if not directory.is_dir():
        raise ToolError(f"{directory} is {'not a directory' if directory.exists() else 'missing'}")
    found = discover([directory])
    if found.problems:
        problem = found.problems[0]
        raise ToolError(f"{problem.path}: {problem.message.removeprefix(f'{problem.path}: ')}")
    if len(found.partitions) != 1 or found.partitions[0].directory.resolve() != directory.resolve():
        raise ToolError(f"{directory} is not the directory of one partition, such as /data/orders-0")
    if not found.partitions[0].segments:
        raise ToolError(f"{directory} has no segment: it contains no .log file")
    return found.partitions[0]
