"""Metadata of remote segments, which a broker keeps in ``__remote_log_metadata`` (``RemoteLogSegmentMetadata``).

The first record of a segment has its offsets, epochs and size; later records change its state
(``RemoteLogMetadataCache``). A broker reads only the segments whose copy has finished and whose deletion has not begun.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.messages.reading import MessageError, framed_message
from kidx.records import file_batches, iter_memory_batches

if TYPE_CHECKING:
    from kidx.records import RecordBatch
    from kidx.storage import Entry, Store

TOPIC: Final = "__remote_log_metadata"
_LOG: Final = re.compile(r"\d{20}\.log", re.ASCII)


class SegmentState(IntEnum):
    """State of a remote segment (``RemoteLogSegmentState``)."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionState(IntEnum):
    """State of the deletion of a partition (``RemotePartitionDeleteState``)."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


@dataclass(frozen=True, slots=True)
class SegmentMetadata:
    """Metadata of one remote segment.

    Attributes:
        id: id of the segment, as text.
        start_offset, last_offset: first and last offset.
        max_timestamp: largest timestamp in milliseconds.
        size: number of bytes of the log.
        epochs: start offset of each leader epoch.
        state: state of the segment; None if its number is unknown.
        custom: bytes that the plug-in for remote storage has returned for the copy; None without any.
    """

    id: str
    start_offset: int
    last_offset: int
    max_timestamp: int
    size: int
    epochs: Mapping[int, int]
    state: SegmentState | None
    custom: bytes | None = None

    @property
    def is_readable(self) -> bool:
        """True if a broker reads the segment."""
        return self.state is SegmentState.COPY_SEGMENT_FINISHED

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        return "an unknown state" if self.state is None else self.state.name


@dataclass(slots=True)
class PartitionMetadata:
    """Metadata of one partition with remote segments.

    Attributes:
        segments: metadata of each segment by id, including segments whose deletion has finished.
        state: state of the partition's deletion; None if it is not deleted.
        is_complete: True if all records of the topic were read. Then a segment without metadata was never copied.
    """

    segments: dict[str, SegmentMetadata] = field(default_factory=dict)
    state: PartitionState | None = None
    is_complete: bool = True


class RemoteLogMetadata:
    """Metadata of the remote segments of all partitions: the result of the topic's records, added in their order.

    Attributes:
        partitions: metadata by topic id and number of the partition.
    """

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], PartitionMetadata] = {}

    def of(self, topic_id: str, partition: int) -> PartitionMetadata | None:
        """Return the metadata of a partition; None if no record is about it."""
        return self.partitions.get((topic_id, partition))

    def add(self, name: str, data: Mapping[str, Any]) -> PartitionMetadata | None:
        """Add a record, and return the partition that it is about; None for a record of another type.

        Args:
            data: fields of the message.
        """
        if name == "RemotePartitionDeleteMetadataRecord":
            found = self._partition(data["topicIdPartition"])
            found.state = _member(PartitionState, data["remotePartitionDeleteState"])
            return found
        if name not in ("RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"):
            return None  # snapshots of segments do not have their partition
        segment = data["remoteLogSegmentId"]
        found, id_ = self._partition(segment["topicIdPartition"]), segment["id"]
        state = _member(SegmentState, data["remoteLogSegmentState"])
        custom = data.get("customMetadata")
        changes = {"state": state} if custom is None else {"state": state, "custom": base64.b64decode(custom)}
        if name == "RemoteLogSegmentMetadataRecord":
            epochs = {each["leaderEpoch"]: each["offset"] for each in data["segmentLeaderEpochs"]}
            offsets = data["startOffset"], data["endOffset"], data["maxTimestampMs"], data["segmentSizeInBytes"]
            found.segments[id_] = replace(SegmentMetadata(id_, *offsets, epochs, state), **changes)
        elif id_ in found.segments:  # else a broker ignores the update
            found.segments[id_] = replace(found.segments[id_], **changes)
        return found

    def _partition(self, key: Mapping[str, Any]) -> PartitionMetadata:
        return self.partitions.setdefault((key["id"], key["partition"]), PartitionMetadata())


def read_metadata(stores: Iterable[tuple[Store, str]], release: str | None = None) -> RemoteLogMetadata:
    """Return the metadata in log directories; of several replicas of a partition, those in the longest log.

    A log that cannot be read to its end is read as far as possible, and its partitions are not complete. A directory
    that cannot be listed is skipped.

    Args:
        stores: each log directory, as a store and a path within it.
        release: the Kafka release; the newest by default.
    """
    logs: dict[str, tuple[tuple[int, int], Store, list[str]]] = {}
    for store, directory in dict.fromkeys(stores):
        with contextlib.suppress(OSError):
            for name, files in _logs_in(store, directory):
                length = int(files[-1].name[:20]), files[-1].size
                if name not in logs or logs[name][0] < length:
                    logs[name] = length, store, [each.path for each in files]
    found = RemoteLogMetadata()
    for _, store, paths in logs.values():
        _add_log(found, store, paths, dialect_of(release).release)
    return found


def _logs_in(store: Store, directory: str) -> Iterator[tuple[str, list[Entry]]]:
    for place in store.list(directory):
        if place.is_directory and place.name.rpartition("-")[0] == TOPIC:
            files = sorted(each for each in store.list(place.path) if _LOG.fullmatch(each.name))
            if files:
                yield place.name, files


def _add_log(found: RemoteLogMetadata, store: Store, paths: list[str], release: str) -> None:
    touched: list[PartitionMetadata] = []
    is_complete = int(paths[0].rpartition("/")[2][:20]) == 0
    try:
        for path in paths:
            for batch in _batches(store, path):
                if batch.is_control:
                    continue
                for record in batch:
                    name, _, _, data = framed_message(release, "remote", record.value or b"")
                    touched += filter(None, [found.add(name, data)])
    except (KidxError, MessageError, OSError):
        is_complete = False
    for partition in touched:
        partition.is_complete &= is_complete


def _batches(store: Store, path: str) -> Iterator[RecordBatch]:
    return file_batches(path) if store.has_files else iter_memory_batches(store.read_all(path))


def _member(states: Any, number: int) -> Any:
    return states(number) if number in set(states) else None
