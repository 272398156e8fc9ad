"""Directory of remote storage in the layout of Kafka's ``LocalTieredStorage``, or of Aiven's plugin.

``DIR/kafka-tiered-storage/<topic>-<partition>-<topic id>/<base offset>-<segment id>.<suffix>``: a base offset has 20
digits, an id 22 characters of base64 (``LocalTieredStorage``, ``RemoteTopicPartitionDirectory``,
``RemoteLogSegmentFileset``). For the other layout, see :mod:`kidx.remote.aiven`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kidx.errors import ToolError
from kidx.java_values import INT_MAX
from kidx.remote.aiven import ObjectStore, object_segments, parse_number, parse_topic
from kidx.remote.metadata import TOPIC
from kidx.remote.stored import ID, SUFFIXES, StoredSegment, by_segment
from kidx.storage import Store

if TYPE_CHECKING:
    from kidx.remote.aiven import TopicId
    from kidx.remote.metadata import PartitionMetadata, RemoteLogMetadata
    from kidx.storage import Entry

_PARTITION: Final = re.compile(rf"(?P<topic>.+)-(?P<partition>\d+)-(?P<id>{ID})", re.DOTALL | re.ASCII)
_LEVELS: Final = 6
"""Number of levels below the path that are searched, because prefixes of object names have several parts."""


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """Partition in remote storage.

    Attributes:
        store: the remote storage.
        directory: directory of the partition, within the store.
        topic, partition: name of the topic and number of the partition.
        topic_id: id of the topic, as text.
        segments: segments of the partition, by base offset and id.
        strays: names of entries that belong to no remote segment.
        noted: metadata of the partition in ``__remote_log_metadata``; None if unknown.
    """

    store: Store
    directory: str
    topic: str
    partition: int
    topic_id: str
    segments: tuple[StoredSegment, ...] = ()
    strays: tuple[str, ...] = ()
    noted: PartitionMetadata | None = None

    @property
    def name(self) -> str:
        """Topic and number."""
        return f"{self.topic}-{self.partition}"

    def why_unread(self, segment: StoredSegment) -> str:
        """Return why a broker does not read a segment, according to its metadata; empty if it does, or if unknown."""
        if self.noted is None:
            return ""
        if self.noted.state is not None:
            return f"{TOPIC} has the segment's partition in state {self.noted.state.name}"
        if segment.noted is None:
            return f"{TOPIC} has no record of the segment" if self.noted.is_complete else ""
        return "" if segment.noted.is_readable else f"{TOPIC} has the segment in state {segment.noted.state_name}"

    @property
    def read_segments(self) -> list[StoredSegment]:
        """Segments that a broker reads, or may read if their metadata are unknown (:meth:`why_unread`)."""
        return [each for each in self.segments if not self.why_unread(each)]


@dataclass(slots=True)
class RemoteDirectory:
    """Content of a remote storage directory.

    Attributes:
        store: the remote storage.
        partitions: partitions in remote storage, by topic, number and topic id.
        strays: paths or URLs of entries that belong to no partition.
    """

    store: Store
    partitions: list[StoredPartition] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    def of(self, topic: str | None, partition: int | None, topic_id: str | None = None) -> StoredPartition | None:
        """Return the partition of this name, and of this topic id if one is given; None if it does not exist.

        Raises:
            ToolError: remote storage has that name for several topic ids, and no id is given.
        """
        named = [each for each in self.partitions if (each.topic, each.partition) == (topic, partition)]
        if topic_id is not None:
            named = [each for each in named if each.topic_id == topic_id]
        if len(named) > 1:
            ids = ", ".join(each.topic_id for each in named)
            raise ToolError(
                f"{self.store.url} has {named[0].name} for {len(named)} topic ids ({ids}); "
                "no local partition.metadata identifies the right one"
            )
        return named[0] if named else None


def read_remote(url: str | os.PathLike[str] | Store) -> RemoteDirectory:
    """Return the partitions and segments of remote storage.

    Only directories are listed. In the layout of Aiven's plugin, the manifest of a partition's first segment is also
    read.

    Args:
        url: root of the remote storage, any directory inside it, or the directory of one partition; as a path, an
            fsspec URL or a :class:`~kidx.storage.Store`.

    Raises:
        ToolError: the path does not exist, cannot be listed, or has another layout; or a segment is encrypted.
    """
    store = Store(url.url, url.options) if isinstance(url, Store) else Store(os.fspath(url))
    found = RemoteDirectory(store)
    try:
        root = store.entry(store.root)
        if root is None or not root.is_directory:
            raise ToolError(f"{store.url} is {'missing' if root is None else 'not a directory'}")
        _search(found, root.path.rstrip("/"), _LEVELS)
    except OSError as error:
        raise ToolError(f"cannot read {store.url}: {error.strerror or error}") from error
    if not found.partitions:
        raise ToolError(f"{store.url} has no remote segments: no directory TOPIC-PARTITION-TOPIC_ID in it")
    kinds = {type(each.store): each.store for each in found.partitions}
    if len(kinds) > 1:
        raise ToolError(f"{store.url} has partitions in two layouts; choose a directory with one layout")
    (found.store,) = kinds.values()
    found.partitions.sort(key=lambda each: (each.topic, each.partition, each.topic_id))
    return found


def add_metadata(found: RemoteDirectory, metadata: RemoteLogMetadata) -> None:
    """Add metadata to the partitions and segments of a directory; add segments that exist only in the metadata, too.

    Args:
        found: content of remote storage; changed in place.
        metadata: metadata from ``__remote_log_metadata``.
    """
    for number, partition in enumerate(found.partitions):
        noted = metadata.of(partition.topic_id, partition.partition)
        if noted is None:
            continue
        listed = {each.id: each for each in partition.segments if not each.is_absent}
        segments = [replace(each, noted=noted.segments.get(each.id)) for each in listed.values()]
        segments += (
            StoredSegment(partition.store, partition.directory, each.start_offset, each.id, {}, each)
            for each in noted.segments.values()
            if each.is_readable and each.id not in listed
        )
        segments.sort(key=lambda each: (each.base_offset, each.id))
        found.partitions[number] = replace(partition, segments=tuple(segments), noted=noted)


def parse_remote_partition(name: str) -> tuple[str, int, str] | None:
    """Return topic, partition and topic id in the name of a directory; None for any other name."""
    match = _PARTITION.fullmatch(name)
    if match is None or int(match["partition"]) > INT_MAX:
        return None
    return match["topic"], int(match["partition"]), match["id"]


def _search(found: RemoteDirectory, path: str, levels: int) -> None:
    """Add the partitions at or below a directory, at most ``levels`` levels deep, and the stray entries."""
    parent, _, name = path.rpartition("/")
    entries = sorted(found.store.list(path), key=lambda entry: entry.name)
    # Aiven's layout, and the path is one partition: TOPIC-TOPIC_ID/PARTITION.
    topic, number = parse_topic(parent.rpartition("/")[2]), parse_number(name)
    if topic is not None and number is not None:
        _add_objects(found, path, topic, number, entries)
        return
    # Aiven's layout, and the path is a topic, which contains its partitions.
    numbers = [
        (entry, number) for entry in entries if entry.is_directory and (number := parse_number(entry.name)) is not None
    ]
    topic = parse_topic(name)
    if topic is not None and numbers:
        for entry, number in numbers:
            _add_objects(found, entry.path.rstrip("/"), topic, number, found.store.list(entry.path))
        return
    # Kafka's layout, and the path is one partition: TOPIC-PARTITION-TOPIC_ID.
    partition = parse_remote_partition(name)
    if partition is not None:
        grouped, strays = by_segment(entries, path, SUFFIXES)
        segments = (StoredSegment(found.store, path, base, id_, files) for (base, id_), files in grouped)
        found.partitions.append(StoredPartition(found.store, path, *partition, tuple(segments), tuple(strays)))
        return
    # Another directory: its subdirectories are searched.
    for entry in entries:
        if entry.path.rstrip("/") == path:  # some stores list the directory itself
            continue
        if entry.is_directory and levels > 1:
            _search(found, entry.path.rstrip("/"), levels - 1)
        else:
            found.strays.append(found.store.name_of(entry.path))


def _add_objects(found: RemoteDirectory, path: str, topic: TopicId, number: int, entries: Iterable[Entry]) -> None:
    """Add a partition of Aiven's layout, whose directory has these entries."""
    store = ObjectStore(found.store.url, found.store.options)
    segments, strays = object_segments(store, path, entries)
    found.partitions.append(StoredPartition(store, path, topic.name, number, topic.id, tuple(segments), tuple(strays)))


def without_local(found: RemoteDirectory, matched: Iterable[StoredPartition]) -> Iterator[StoredPartition]:
    """Yield the partitions of remote storage that no local partition was matched with."""
    directories = {each.directory for each in matched}
    return (each for each in found.partitions if each.directory not in directories)
