"""The segments below a path, found by the names that Kafka gives files: no file is opened for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.discovery import START_OFFSETS, parse_partition
from kidx.errors import ToolError

if TYPE_CHECKING:
    from kidx.tables.storage import Entry, Store

_SEGMENT_FILE: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
DEEPEST: Final = 6
"""Directories between the path and a partition's own, at most: cluster, broker, disk and some more."""


class TopicPartition(NamedTuple):
    """A topic and the number of one of its partitions."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, as a listing shows it.

    Attributes:
        store: that it lies in.
        directory: of its partition, within the store.
        topic, partition, base_offset: which it is.
        sizes: bytes of each of its files, by suffix: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
        modified: when the log was last written, milliseconds; None if the store does not say.
        next_base_offset: of the segment behind it; None if it is the last, which a broker may be writing to.
    """

    store: Store
    directory: str
    topic: str
    partition: int
    base_offset: int
    sizes: dict[str, int]
    modified: int | None = None
    next_base_offset: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the log."""
        return self.sizes["log"]

    @property
    def is_last(self) -> bool:
        """Whether it is the last of its partition."""
        return self.next_base_offset is None

    def file(self, suffix: str) -> str:
        """The path of one of its files within the store."""
        return f"{self.directory}/{self.base_offset:020d}.{suffix}"

    @property
    def name(self) -> str:
        """The log's path or URL, for tables and messages."""
        return self.store.name_of(self.file("log"))


@dataclass(slots=True)
class PartitionLog:
    """All segments of one replica of a partition, by base offset.

    Attributes:
        key: topic and partition.
        store, directory: where it lies.
        segments: in order, at least one.
        log_start: the log start offset that the broker has noted; 0 if it has not.
    """

    key: TopicPartition
    store: Store
    directory: str
    segments: list[Segment] = field(default_factory=list)
    log_start: int = 0

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(segment.size for segment in self.segments)


def find_partitions(stores: Iterable[Store]) -> list[PartitionLog]:
    """Every replica of a partition below the given roots, by topic, partition and path.

    A root is a log directory, a directory of such, a partition's directory, or one ``.log`` file.

    Raises:
        ToolError: a root does not exist, or there is no segment below any of them.
        OSError: a directory cannot be read.
    """
    stores = list(stores)
    found: list[PartitionLog] = []
    for store in stores:
        root = store.entry(store.root)
        if root is None:
            raise ToolError(f"{store.url} does not exist")
        found += _below(store, root)
    if not found:
        roots = ", ".join(store.url for store in stores)
        raise ToolError(f"{roots} holds no Kafka segments: no 00000000000000000000.log in a TOPIC-PARTITION directory")
    found.sort(key=lambda log: (log.key, log.directory))
    return found


def _below(store: Store, root: Entry) -> Iterator[PartitionLog]:
    if not root.is_directory:
        parent = root.path.rpartition("/")[0]
        base = _SEGMENT_FILE.fullmatch(root.name)
        if base is None or base[2] != "log":
            raise ToolError(f"{store.url} is not the .log file of a segment, and not a directory")
        siblings = [entry for entry in store.list(parent) if entry.name.startswith(base[1] + ".")]
        yield from _partition(store, parent, siblings, {})
        return
    waiting = [(root.path, 0, _log_starts(store, root.path.rstrip("/").rpartition("/")[0]))]
    while waiting:
        path, depth, starts = waiting.pop()
        entries = list(store.list(path))
        if _key_of(path) is not None:
            logs = list(_partition(store, path, entries, starts))
            if logs:
                yield from logs
                continue
        if depth < DEEPEST:
            noted = any(entry.name == START_OFFSETS for entry in entries)
            starts = _log_starts(store, path) if noted else {}
            below = (entry.path for entry in entries if entry.is_directory and entry.path != path)
            waiting += [(directory, depth + 1, starts) for directory in below]


def _key_of(path: str) -> TopicPartition | None:
    """Topic and partition of a directory; None if it is none, or about to be deleted, moved in or given up."""
    named = parse_partition(path.rstrip("/").rsplit("/", 1)[-1])
    return None if named is None or named[2] else TopicPartition(named[0], named[1])


def _partition(store: Store, path: str, entries: list[Entry], starts: dict[str, int]) -> Iterator[PartitionLog]:
    key = _key_of(path)
    if key is None:
        raise ToolError(f"{store.name_of(path)} is not named TOPIC-PARTITION, as the directory of a segment is")
    sizes: dict[int, dict[str, int]] = defaultdict(dict)
    modified: dict[int, int | None] = {}
    for entry in entries:
        match = _SEGMENT_FILE.fullmatch(entry.name)
        if match is None or entry.is_directory:
            continue
        sizes[int(match[1])][match[2]] = entry.size
        if match[2] == "log":
            modified[int(match[1])] = entry.modified
    bases = sorted(modified)
    if not bases:
        return
    following: dict[int, int | None] = dict(zip(bases, [*bases[1:], None], strict=True))
    segments = [Segment(store, path, *key, base, sizes[base], modified[base], following[base]) for base in bases]
    yield PartitionLog(key, store, path, segments, starts.get(str(key), 0))


def _log_starts(store: Store, log_directory: str) -> dict[str, int]:
    """Log start offsets by partition, from the broker's checkpoint; empty without one."""
    text = store.read_all(f"{log_directory}/{START_OFFSETS}").decode(errors="replace")
    starts: dict[str, int] = {}
    for line in text.splitlines()[2:]:  # a version and a count come first (CheckpointFile.java)
        topic, partition, offset = ([*line.rsplit(" ", 2), "", ""])[:3]
        if offset.isdigit():
            starts[f"{topic}-{partition}"] = int(offset)
    return starts
