"""Segments in remote storage, and the selection of those that belong to a log (``RemoteLogManager``)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from kidx.dialect import Dialect, dialect_of
from kidx.discovery import PARTITION_METADATA
from kidx.errors import InvalidArgumentError
from kidx.java_values import INT_MAX, LONG_MAX
from kidx.layout import LOG_OVERHEAD, OFFSET_INDEX, RECORD_BATCH_OVERHEAD, TIME_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from kidx.remote.metadata import SegmentMetadata
    from kidx.storage import Entry, RangeReader, Store

LOG: Final = "log"
EPOCHS: Final = "leader_epoch_checkpoint"
REQUIRED: Final = (LOG, "index", "timeindex", "snapshot", EPOCHS)
"""Suffixes of the files that each remote segment has."""
SUFFIXES: Final = (*REQUIRED, "txnindex")
"""Suffixes of all files; a segment without aborted transactions may have no ``.txnindex``."""
ID: Final = "[A-Za-z0-9_-]{22}"
"""Pattern of an id: base64 of sixteen bytes."""
_FILE: Final = re.compile(rf"(?P<base>\d{{20}})-(?P<id>{ID})\.(?P<suffix>.+)", re.ASCII | re.DOTALL)

# fmt: off
_BATCH_START: Final = struct.Struct(
    ">q"   # base offset
    "i"    # bytes after this field
    "11x"  # partition leader epoch, magic, checksum, attributes
    "i"    # last offset, relative to the base offset
)
# fmt: on


@dataclass(frozen=True, eq=False)
class StoredSegment:
    """Remote segment, as listed; a file is opened when a property needs it.

    Attributes:
        store: the remote storage.
        directory: directory of the partition, within the store.
        base_offset: offset in the file names.
        id: id in the file names, as text.
        files: entries of the files by suffix, without a full stop.
        noted: metadata of the segment in ``__remote_log_metadata``; None if unknown.
    """

    store: Store
    directory: str
    base_offset: int
    id: str
    files: Mapping[str, Entry]
    noted: SegmentMetadata | None = None

    def path(self, suffix: str) -> str:
        """Return the path of a file within the store, whether it exists or not."""
        return f"{self.directory}/{self.base_offset:020d}-{self.id}.{suffix}"

    def name(self, suffix: str) -> str:
        """Return the path or URL of a file, for messages."""
        return self.store.name_of(self.path(suffix))

    @property
    def suffixes(self) -> frozenset[str]:
        """Suffixes of the segment's files."""
        return frozenset(self.files)

    @property
    def is_absent(self) -> bool:
        """True if remote storage has no file of the segment, which is known only from its metadata."""
        return isinstance(self.files, dict) and not self.files

    @property
    def missing(self) -> list[str]:
        """Suffixes of required files that do not exist."""
        return [suffix for suffix in REQUIRED if suffix not in self.files]

    @property
    def size(self) -> int:
        """Bytes of the log; 0 without one."""
        return self.files[LOG].size if LOG in self.files else 0

    @cached_property
    def end_offset(self) -> int:
        """Offset after the last complete batch; the base offset without a batch (``endOffset`` of the metadata + 1).

        Raises:
            OSError: the log or the offset index cannot be read.
        """
        if self.noted is not None:
            return self.noted.last_offset + 1
        if not self.size:
            return self.base_offset
        with self.store.open(self.path(LOG)) as log:
            found = None
            for position in (self._last_indexed_position(), 0):
                if found is None and 0 <= position < log.size:
                    found = _end_from(log, position)
        return self.base_offset if found is None or found <= self.base_offset else found

    def _last_indexed_position(self) -> int:
        entry = self._last_entry("index", OFFSET_INDEX)
        return 0 if entry is None else int(entry[1])

    @cached_property
    def largest_timestamp(self) -> int:
        """Largest timestamp of the metadata or the time index, else the log's modification time or -1; in milliseconds.

        Raises:
            OSError: the time index cannot be read.
        """
        if self.noted is not None:
            return self.noted.max_timestamp
        entry = self._last_entry("timeindex", TIME_INDEX)
        if entry is not None and entry[0] >= 0:
            return int(entry[0])
        log = self.files.get(LOG)
        return -1 if log is None or log.modified is None else log.modified

    def _last_entry(self, suffix: str, layout: object) -> tuple[int, ...] | None:
        size: int = layout.size  # type: ignore[attr-defined]
        if suffix not in self.files or self.files[suffix].size < size:
            return None
        with self.store.open(self.path(suffix)) as reader:
            data = reader.read((reader.size // size - 1) * size, size)
        return layout.struct.unpack(data) if len(data) == size else None  # type: ignore[attr-defined]

    @cached_property
    def epochs(self) -> Mapping[int, int]:
        """Start offset of each leader epoch in the segment's metadata or checkpoint.

        Raises:
            InvalidArgumentError: the file is not a checkpoint of leader epochs.
            OSError: the file cannot be read.
        """
        if self.noted is not None:
            return self.noted.epochs
        text = self.store.read_all(self.path(EPOCHS)).decode("utf-8", "replace")
        return dict(epoch_entries(text, self.name(EPOCHS)))


def by_segment(
    entries: Iterable[Entry], directory: str, suffixes: Iterable[str]
) -> tuple[list[tuple[tuple[int, str], dict[str, Entry]]], list[str]]:
    """Group the entries of a partition by segment.

    Args:
        entries: the entries of the partition's directory.
        directory: the directory itself, which some stores list, too.
        suffixes: suffixes of the files that a segment may have.

    Returns:
        Base offset, id and files of each segment, in that order; and the names of entries of no segment.
    """
    known = frozenset(suffixes)
    files: dict[tuple[int, str], dict[str, Entry]] = {}
    strays = []
    for entry in entries:
        match = _FILE.fullmatch(entry.name)
        if match is not None and match["suffix"] in known and not entry.is_directory and int(match["base"]) <= LONG_MAX:
            files.setdefault((int(match["base"]), match["id"]), {})[match["suffix"]] = entry
        elif entry.path.rstrip("/") != directory:
            strays.append(entry.name)
    return sorted(files.items()), strays


def epoch_entries(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the epochs and start offsets of a checkpoint of leader epochs.

    Raises:
        InvalidArgumentError: the text is not a checkpoint; the message has the name of its file.
    """
    lines = text.splitlines()
    rows = [line.split() for line in lines[2:]]
    valid = lines[:1] == ["0"] and len(lines) > 1 and lines[1] == str(len(rows))
    valid = valid and all(len(row) == 2 and row[0].isdecimal() and row[1].isdecimal() for row in rows)
    valid = valid and all(int(epoch) <= INT_MAX and int(start) <= LONG_MAX for epoch, start in rows)
    if not valid:
        raise InvalidArgumentError(f"{name} is not a checkpoint of leader epochs")
    yield from ((int(epoch), int(start)) for epoch, start in rows)


def _end_from(log: RangeReader, position: int) -> int | None:
    """Return the offset after the last complete batch from a position on; None without one."""
    end = None
    while len(head := log.read(position, _BATCH_START.size)) == _BATCH_START.size:
        base, length, delta = _BATCH_START.unpack(head)
        position += LOG_OVERHEAD + length
        if length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD or delta < 0 or position > log.size:
            break
        end = base + delta + 1
    return end


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
        lines = (directory / PARTITION_METADATA).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    return topic_id_of(lines)


def topic_id_of(lines: Iterable[str]) -> str | None:
    """Return the topic id in the lines of a ``partition.metadata`` file; None without one."""
    found = dict(line.partition(":")[::2] for line in lines).get("topic_id", "").strip()
    return found or None
