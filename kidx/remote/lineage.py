"""Selection of the remote segments that belong to a log, by their leader epochs (``RemoteLogManager``).

After an unclean election, remote storage can have segments from which the log has diverged. After any election,
segments can overlap. A *lineage* is the start offset of each leader epoch of a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.dialect import Dialect, dialect_of
from kidx.errors import InvalidArgumentError
from kidx.java_numbers import LONG_MAX

if TYPE_CHECKING:
    from kidx.remote.stored import StoredSegment

METADATA: Final = "partition.metadata"
"""File of a local partition with the id of its topic."""


def with_records(epochs: Mapping[int, int]) -> dict[int, int]:
    """Return the epochs that have records, oldest first. Of epochs with the same start offset, only the newest has."""
    ordered = sorted(epochs.items())
    kept = [one for one, other in pairwise(ordered) if one[1] != other[1]]
    return dict([*kept, *ordered[-1:]])


def is_within(
    segment_epochs: Mapping[int, int],
    end_offset: int,
    lineage: Mapping[int, int],
    log_end: int,
    dialect: Dialect | None = None,
) -> bool:
    """Return True if a remote segment belongs to a log (``isRemoteSegmentWithinLeaderEpochs``).

    Args:
        segment_epochs: start offset of each leader epoch of the segment.
        end_offset: offset after the last record of the segment.
        lineage: start offset of each leader epoch of the log that has records.
        log_end: end offset of the log.
        dialect: behaviour of a release; None for the newest one.
    """
    oldest = min(lineage, default=0)
    may_begin_before = dialect_of(dialect).remote_segments_may_begin_before_epochs
    own = with_records(segment_epochs)
    if may_begin_before:
        own = {epoch: start for epoch, start in own.items() if epoch >= oldest}
    if not own or not own.keys() <= lineage.keys() or end_offset > log_end:
        return False
    first, *later = own
    if (first != oldest or not may_begin_before) and own[first] < lineage[first]:
        return False
    # The epochs of the segment follow each other as the epochs of the log do.
    of_log = [epoch for epoch in lineage if epoch > first]
    if of_log[: len(later)] != later or any(own[epoch] != lineage[epoch] for epoch in later):
        return False
    return all(end_offset <= lineage[epoch] for epoch in of_log[len(later) : len(later) + 1])


def epochs_of(segment: StoredSegment, lineage: Mapping[int, int]) -> Mapping[int, int]:
    """Return the start offset of each leader epoch of a remote segment.

    A broker reads them in its metadata. This function reads the segment's checkpoint, or uses the log's epochs if the
    checkpoint cannot be read.

    Raises:
        OSError: the log of the segment cannot be read.
    """
    try:
        return segment.epochs
    except (InvalidArgumentError, OSError):
        before = [epoch for epoch, start in lineage.items() if start <= segment.base_offset]
        inside = {epoch: start for epoch, start in lineage.items() if segment.base_offset < start < segment.end_offset}
        return dict.fromkeys(before[-1:], segment.base_offset) | inside


def in_epoch(epochs: Mapping[StoredSegment, Mapping[int, int]], epoch: int) -> list[StoredSegment]:
    """Return the segments with records of an epoch, in the order in which a broker tries them."""
    return sorted((each for each, own in epochs.items() if epoch in own), key=lambda each: each.base_offset)


def chain(segments: Sequence[StoredSegment]) -> list[StoredSegment]:
    """Return the segments without each segment whose offsets are all in an earlier segment, by base offset.

    Of several copies with the same base offset, the longest is kept.

    Raises:
        OSError: a log cannot be read.
    """
    kept: list[StoredSegment] = []
    end = -1
    for each in sorted(segments, key=lambda each: (each.base_offset, -each.end_offset)):
        if each.end_offset > end:
            kept.append(each)
            end = each.end_offset
    return kept


def before_local(
    segments: Iterable[StoredSegment], lineage: Mapping[int, int], first_local: int
) -> list[StoredSegment]:
    """Return the remote segments that have the offsets of a log below its first local segment.

    Args:
        segments: the remote segments of the partition.
        lineage: start offset of each leader epoch of the log; empty if unknown: all segments belong to the log then.
        first_local: base offset of the first local segment.

    Raises:
        OSError: a log cannot be read.
    """
    older = [each for each in segments if each.base_offset < first_local and (each.size or each.is_absent)]
    epochs = with_records(lineage)
    return chain(
        [each for each in older if not epochs or is_within(epochs_of(each, epochs), each.end_offset, epochs, LONG_MAX)]
    )


def topic_id_in(directory: Path) -> str | None:
    """Return the topic id of a local partition (``partition.metadata``); None without one.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        lines = (directory / METADATA).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    return topic_id_of(lines)


def topic_id_of(lines: Iterable[str]) -> str | None:
    """Return the topic id in the lines of a ``partition.metadata`` file; None without one."""
    found = dict(line.partition(":")[::2] for line in lines).get("topic_id", "").strip()
    return found or None
