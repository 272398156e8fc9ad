"""Discovery of segments below a path, by Kafka's file names; no log is opened.

Files and directories appear and disappear while a broker runs. A file that vanishes between two listings is ignored.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kidx.discovery import EPOCHS, PARTITION_METADATA, parse_partition
from kidx.errors import InvalidArgumentError, ToolError
from kidx.remote.directory import add_metadata, read_remote
from kidx.remote.metadata import TOPIC, read_metadata
from kidx.remote.stored import LOG, before_local, epoch_entries, topic_id_of
from kidx.tables.log_directory import FILES, LogDirectory, read_log_directory, topic_id_in

if TYPE_CHECKING:
    from kidx.remote.directory import RemoteDirectory
    from kidx.storage import Entry, Store

Answer = TypeVar("Answer")
_logger: Final = logging.getLogger("kidx.spark")
_SEGMENT_FILE: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")
_SWAPPED_IN: Final = re.compile(r"(\d{20}\.log)\.swap")
_REMOTE_FILES: Final = ("log", "index", "timeindex", "txnindex")
"""Files of remote segments that are read. Their snapshot has the producers of their end; a local
snapshot has the producers of its start."""
SWAPS: Final = 25
"""Maximum number of listings, 20 ms apart, of a directory in which a cleaned segment replaces old ones."""
LISTINGS: Final = 10
"""Maximum number of listings of a partition whose segments are being removed."""
DEEPEST: Final = 6
"""Maximum number of directory levels between the path and a partition: cluster, broker, disk and some more."""


class TopicPartition(NamedTuple):
    """A topic and a partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Tiers(NamedTuple):
    """The two tiers of a log.

    Attributes:
        directory: the directory of the local log, within its store.
        remote: the remote storage.
    """

    local: Store
    directory: str
    remote: Store


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, as listed.

    Attributes:
        store: the store that contains it.
        directory: the directory of its partition, within the store.
        topic, partition, base_offset: the identity of the segment.
        sizes: bytes of each of its files, by suffix: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
        modified: the modification time of the log, in milliseconds; None if the store does not report it.
        next_base_offset: the base offset of the next segment; None for the last, to which a broker may be appending.
        id: the id in the file names of a remote segment; empty for a local segment.
        tiers: the location of both tiers; None if only a local log is read.
        identity: the identity of the log's file, as in :class:`~kidx.storage.Entry`.
    """

    store: Store
    directory: str
    topic: str
    partition: int
    base_offset: int
    sizes: dict[str, int]
    modified: int | None = None
    next_base_offset: int | None = None
    id: str = ""
    tiers: Tiers | None = None
    identity: int = 0

    @property
    def home_store(self) -> Store:
        """The store with the local log that the segment belongs to."""
        return self.store if self.tiers is None else self.tiers.local

    @property
    def home(self) -> str:
        """The directory of the local log that the segment belongs to."""
        return self.directory if self.tiers is None else self.tiers.directory

    @property
    def size(self) -> int:
        """The number of bytes of the log."""
        return self.sizes["log"]

    @property
    def is_last(self) -> bool:
        """True if it is the last segment of its partition."""
        return self.next_base_offset is None

    def file(self, suffix: str) -> str:
        """Return the path of one of its files within the store."""
        name = f"{self.base_offset:020d}-{self.id}" if self.id else f"{self.base_offset:020d}"
        return f"{self.directory}/{name}.{suffix}"

    @property
    def name(self) -> str:
        """The log's path or URL, for tables and messages."""
        return self.store.name_of(self.file("log"))


@dataclass(slots=True)
class PartitionLog:
    """All segments of one replica of a partition, by base offset.

    Attributes:
        key: the topic and partition.
        store, directory: the location of the replica.
        segments: the segments in order, at least one.
        log_start: the log start offset of the broker's checkpoint; 0 if the checkpoint has none.
        high_watermark: the high watermark of the broker's checkpoint; None if the checkpoint has none.
        cluster: the id of the broker's cluster; empty if unknown.
        remote: the remote storage whose segments are among ``segments``; None if only a local log is read.
        is_cleaned: True if a cleaner may have compacted the log.
        metadata: the file with the topic's id; None without one.
    """

    key: TopicPartition
    store: Store
    directory: str
    segments: list[Segment] = field(default_factory=list)
    log_start: int = 0
    high_watermark: int | None = None
    cluster: str = ""
    remote: Store | None = None
    is_cleaned: bool = False
    metadata: Entry | None = None

    @property
    def topic_id(self) -> str:
        """The topic's id; empty if unknown.

        Raises:
            OSError: its file cannot be read.
        """
        return topic_id_in(self.store, self.metadata)

    @property
    def size(self) -> int:
        """The number of bytes of all logs."""
        return sum(segment.size for segment in self.segments)


def find_partitions(
    stores: Iterable[Store],
    wanted: Callable[[TopicPartition], bool] | None = None,
    remote: Store | None = None,
) -> list[PartitionLog]:
    """Return every replica of a partition below the given roots, by topic, partition and path.

    A root is a log directory, a directory of log directories, a partition directory, or one ``.log`` file.

    Args:
        stores: the roots.
        wanted: a predicate of the requested partitions; all by default. Errors of other partitions are ignored.
        remote: the remote storage of the partitions, in a layout of :mod:`kidx.remote.directory`.

    Raises:
        ToolError: a root does not exist; or all partitions are requested, and no root contains a segment; or remote
            storage has another layout.
        OSError: a root, or the directory of a requested partition, cannot be read.
    """
    stores = list(stores)
    found: list[PartitionLog] = []
    for store in stores:
        root = store.entry(store.root)
        if root is None:
            raise ToolError(f"{store.url} does not exist{_hint(store)}")
        found += _below(store, root, wanted or _every)
    if not found and wanted is None:
        roots = ", ".join(store.url for store in stores)
        raise ToolError(f"{roots} holds no Kafka segments: no 00000000000000000000.log in a TOPIC-PARTITION directory")
    found.sort(key=lambda log: (log.key, log.directory))
    if remote is not None and found:
        directory = _remote_of(found, remote)
        found = [_with_remote(log, directory) for log in found]
    return found


def list_again(log: PartitionLog, topic_id: str = "") -> PartitionLog | None:
    """List the segments of a partition again.

    Args:
        topic_id: the id of its topic; empty if unknown.

    Returns:
        The partition; None if its directory no longer exists or has no segments, or is of another topic.

    Raises:
        OSError: the directory cannot be read.
    """
    log.store.refresh(log.directory)
    about = read_log_directory(log.store, log.directory.rpartition("/")[0])
    try:
        found = next(_partition(log.store, log.directory, _settled(log.store, log.directory), about), None)
    except FileNotFoundError:
        return None
    if found is not None and topic_id and found.topic_id not in ("", topic_id):
        return None
    return found if found is None or log.remote is None else _with_remote(found, _remote_of([found], log.remote))


def _remote_of(logs: Iterable[PartitionLog], remote: Store) -> RemoteDirectory:
    """Return the content of remote storage, with the metadata in the log directories of the given logs.

    Raises:
        ToolError: remote storage has another layout.
    """
    directory = read_remote(remote)
    add_metadata(directory, read_metadata((log.store, log.directory.rpartition("/")[0]) for log in logs))
    return directory


def _with_remote(log: PartitionLog, directory: RemoteDirectory) -> PartitionLog:
    """Return a log with the remote segments before its first local segment; an offset in both tiers is read locally.

    Raises:
        ToolError: the leader epochs of the local log cannot be read, or a copied segment is missing.
        OSError: a file cannot be read.
    """
    store, first = log.store, log.segments[0].base_offset
    metadata = store.read_all(f"{log.directory}/{PARTITION_METADATA}").decode("utf-8", "replace")
    stored = directory.of(*log.key, topic_id_of(metadata.splitlines()))
    tiers = Tiers(store, log.directory, directory.store)
    local = [replace(segment, tiers=tiers) for segment in log.segments]
    if stored is None:
        return replace(log, segments=local, remote=directory.store)
    path = f"{log.directory}/{EPOCHS}"
    text = store.read_all(path).decode("utf-8", "replace")
    try:
        epochs = dict(epoch_entries(text, store.name_of(path))) if text else {}
    except InvalidArgumentError as error:
        raise ToolError(str(error)) from error
    older = before_local(stored.read_segments, epochs, first)
    lost = next((each for each in older if each.is_absent), None)
    if lost is not None:
        raise ToolError(f"{lost.name(LOG)} is missing, although {TOPIC} says that the segment was copied")
    following = [*(each.base_offset for each in older), first][1:]
    remote = [
        Segment(
            each.store,
            each.directory,
            *log.key,
            each.base_offset,
            {suffix: each.files[suffix].size for suffix in _REMOTE_FILES if suffix in each.files},
            each.files["log"].modified,
            end,
            each.id,
            tiers,
            each.files["log"].identity,
        )
        for each, end in zip(older, following, strict=True)
    ]
    return replace(log, segments=[*remote, *local], remote=directory.store)


def retry_while_changing(log: PartitionLog, query: Callable[[PartitionLog], Answer], if_removed: Answer) -> Answer:
    """Return the result of a query on a partition; repeat it with a new listing if a segment was removed.

    Args:
        log: the partition, as listed before.
        query: function that reads the partition; it raises FileNotFoundError if a segment was removed.
        if_removed: the result if the partition itself was removed.

    Raises:
        OSError: the partition cannot be read.
    """
    now: PartitionLog | None = log
    topic_id = log.topic_id
    for _ in range(LISTINGS):
        if now is None:
            return if_removed
        try:
            return query(now)
        except FileNotFoundError:
            now = list_again(now, topic_id)
    return if_removed if now is None else query(now)


def _hint(store: Store) -> str:
    if any(sign in store.url for sign in "*?[{"):
        return ": patterns are not expanded; give the directories as a JSON array, or a directory above them"
    return ": give several paths as a JSON array" if "," in store.url else ""


def _every(_: TopicPartition) -> bool:
    return True


def _below(store: Store, root: Entry, wanted: Callable[[TopicPartition], bool]) -> Iterator[PartitionLog]:
    if not root.is_directory:
        parent = root.path.rpartition("/")[0]
        base = _SEGMENT_FILE.fullmatch(root.name)
        if base is None or base[2] != "log":
            raise ToolError(f"{store.url} is neither a directory nor the .log file of a segment")
        siblings = [entry for entry in store.list(parent) if entry.name.startswith(base[1] + ".")]
        yield from _partition(store, parent, siblings, LogDirectory())
        return
    above = root.path.rstrip("/").rpartition("/")[0]
    about = LogDirectory() if _key_of(root.path) is None else read_log_directory(store, above)
    waiting: list[tuple[str, int, LogDirectory]] = [(root.path, 0, about)]
    seen: set[object] = set()
    while waiting:
        path, depth, about = waiting.pop()
        file = _file_of(path) if store.is_local else path
        if file in seen:  # a link to a directory that was visited before
            continue
        seen.add(file)
        key = _key_of(path)
        entries = _list(store, path, needed=depth == 0 or (key is not None and wanted(key)), vanishes=depth > 0)
        if key is not None:
            logs = list(_partition(store, path, entries, about))
            if logs:
                yield from (log for log in logs if wanted(log.key))
                continue
        if depth < DEEPEST:
            noted = FILES.intersection(entry.name for entry in entries)
            about = read_log_directory(store, path, noted)
            below = (entry.path for entry in entries if entry.is_directory and entry.path != path)
            waiting += [(directory, depth + 1, about) for directory in below]


def _file_of(path: str) -> tuple[int, int] | str:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # listing it reports the reason
        return path
    return status.st_dev, status.st_ino


def _list(store: Store, path: str, *, needed: bool, vanishes: bool) -> list[Entry]:
    """List a directory.

    The result is empty if the directory was removed and ``vanishes`` is True, or if it cannot be read and ``needed`` is
    False.

    Raises:
        OSError: the directory is needed and cannot be read.
    """
    try:
        return _settled(store, path)
    except FileNotFoundError:
        if not vanishes:
            raise
    except OSError as error:
        if needed:
            raise
        _logger.warning("skipped %s: %s", store.name_of(path), error)
    return []


def _settled(store: Store, path: str) -> list[Entry]:
    """List a directory at a moment when no segment in it is being replaced.

    A cleaner removes the old segments before it renames the new one: between the two steps neither exists.
    """
    for _ in range(SWAPS):
        entries = list(store.list(path))
        names = {entry.name for entry in entries}
        swapped = (_SWAPPED_IN.fullmatch(name) for name in names if name.endswith(".swap"))
        if not store.is_local or all(match is None or match[1] in names for match in swapped):
            break
        time.sleep(0.02)
    return entries


def _key_of(path: str) -> TopicPartition | None:
    """Parse a directory's name; None if it names no partition, or a deleted, future or stray partition."""
    named = parse_partition(path.rstrip("/").rsplit("/", 1)[-1])
    return None if named is None or named[2] else TopicPartition(named[0], named[1])


def _partition(store: Store, path: str, entries: list[Entry], about: LogDirectory) -> Iterator[PartitionLog]:
    key = _key_of(path)
    if key is None:
        raise ToolError(f"{store.name_of(path)} is not named TOPIC-PARTITION, as the directory of a segment must be")
    sizes: dict[int, dict[str, int]] = defaultdict(dict)
    logs: dict[int, Entry] = {}
    for entry in entries:
        match = _SEGMENT_FILE.fullmatch(entry.name)
        if match is None or entry.is_directory:
            continue
        sizes[int(match[1])][match[2]] = entry.size
        if match[2] == "log":
            logs[int(match[1])] = entry
    bases = sorted(logs)
    if not bases:
        return
    following: dict[int, int | None] = dict(zip(bases, [*bases[1:], None], strict=True))
    segments = [
        Segment(store, path, *key, base, sizes[base], log.modified, following[base], identity=log.identity)
        for base, log in ((base, logs[base]) for base in bases)
    ]
    name = str(key)
    log = PartitionLog(
        key,
        store,
        path,
        segments,
        about.starts.get(name, 0),
        about.high_watermarks.get(name),
        about.cluster,
        is_cleaned=name in about.cleaned,
        metadata=next((entry for entry in entries if entry.name == PARTITION_METADATA), None),
    )
    if store.is_local:
        with suppress(OSError):
            _ = log.topic_id  # read at the time of the listing, and cached
    yield log
