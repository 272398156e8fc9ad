"""KRaft's metadata as the newest snapshot and the log after it have them, and what the log before it still has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from kidx.dialect import NEWEST
from kidx.discovery import LOG, METADATA_TOPIC, parse_segment_file
from kidx.errors import KidxError
from kidx.messages.reading import MessageError, metadata_record
from kidx.records import Record, file_batches

_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE, _REMOVE_TOPIC = 2, 3, 4, 5, 9
_REGISTER_BROKER: Final = 0
_OF_BROKER: Final = {_REGISTER_BROKER: "brokerId", 1: "brokerId", 7: "id", 8: "id", 17: "brokerId"}
"""Fields with the id of a broker, by the API key of the record."""
_FEATURE = 12
_KEYS: Final = frozenset({_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE, _REMOVE_TOPIC, _FEATURE})
"""API keys of the records that are read; a record begins with its frame version, its API key and its version."""
NO_LEADER: Final = -1
"""Leader of a partition that no broker leads."""
_UNCHANGED: Final = -2
"""Leader in a ``PartitionChangeRecord`` that does not change it."""
_VERSION_AT: Final = 2
"""Position of a record's version, after the number of its framing and its type."""
_OF_TOPICS, _OF_BROKERS = 2, 4
"""Resource types in a ``ConfigRecord``."""
_NO_DIRECTORY: Final = frozenset({"", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"})
"""Ids that are of no log directory: unassigned, lost, and migrating."""
_SNAPSHOT: Final = re.compile(r"(\d{20})-\d{10}\.checkpoint", re.ASCII)


class Topic(NamedTuple):
    """Topic that exists.

    Attributes:
        created: timestamp in milliseconds of the record that created it; None if only a snapshot has that record.
    """

    name: str
    topic_id: str
    created: int | None


class Removal(NamedTuple):
    """Deleted topic.

    Attributes:
        name: its name; empty if its creation is not in the log any more.
        offset: offset of the record that removed it, in the log of the metadata.
    """

    name: str
    offset: int


class Replicas(NamedTuple):
    """Replicas of a partition.

    Attributes:
        brokers: ids of the brokers.
        directories: id of the log directory of each; empty if the metadata have none, as before 3.7.
        leader: id of the leader, or ``NO_LEADER``; None if unknown.
    """

    brokers: tuple[int, ...]
    directories: tuple[str, ...]
    leader: int | None = None

    def directory_on(self, broker: int) -> str:
        """Return the id of the partition's log directory on a broker; empty if the metadata have none."""
        place = self.brokers.index(broker)
        return self.directories[place] if place < len(self.directories) else ""


@dataclass(slots=True)
class ClusterMetadata:
    """Metadata of a cluster; empty if the log directories have no metadata.

    Attributes:
        topics: existing topics, by name.
        removed: deleted topics, by id, as far as the log reaches back.
        moved: partitions that were moved to another log directory, by topic id and number, as far as the log reaches.
        replicas: replicas of each partition, by topic id and number.
        settings: settings of each topic, by its name.
        of_brokers: settings of each broker, by its id; settings for all brokers have no id.
        features: level of each feature, by its name.
        forms: a record of each type and version, by both; brokers that cannot read one of them do not start.
        makes_topics: True if a record makes a topic, whether its fields can be read or not.
        unread: number of records about topics or partitions that could not be read.
    """

    topics: dict[str, Topic] = field(default_factory=dict)
    removed: dict[str, Removal] = field(default_factory=dict)
    moved: set[tuple[str, int]] = field(default_factory=set)
    replicas: dict[tuple[str, int], Replicas] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    of_brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    forms: dict[tuple[int, int], bytes] = field(default_factory=dict)
    makes_topics: bool = False
    unread: int = 0

    @property
    def ids(self) -> Mapping[str, str]:
        """Topic ids, by name."""
        return {topic.name: topic.topic_id for topic in self.topics.values()}

    def may_have_moved(self, topic: str, partition: int) -> bool:
        """Return False if a partition has always been in one log directory."""
        known = self.topics[topic]
        place = known.topic_id, partition
        if known.created is not None or place not in self.replicas:
            return place in self.moved
        used: dict[int, set[str]] = {}
        for each in self.replicas.values():
            for broker in each.brokers:
                used.setdefault(broker, set()).add(each.directory_on(broker))
        own = self.replicas[place].brokers
        return place in self.moved or any(len(used[broker] - _NO_DIRECTORY) > 1 for broker in own)

    def is_compacted(self, topic: str | None) -> bool:
        """Return True if the settings of a topic say that it is compacted."""
        policies = self.settings.get(topic or "", {}).get("cleanup.policy", "")
        return "compact" in (policy.strip() for policy in policies.split(","))


def read_metadata(log_directories: Iterable[Path], end: int | None = None) -> ClusterMetadata:
    """Return the metadata in some log directories, as far as they can be read.

    Args:
        log_directories: log directories of a broker; one of them has the metadata.
        end: offset at which the log of the metadata ends; by default all of it is read.
    """
    reader = _Reader()
    for directory in sorted(set(log_directories)):
        reader.read(directory / f"{METADATA_TOPIC}-0", end)
    return reader.found


def first_unknown(directory: Path) -> str:
    """Return what the first such record of the log after the newest snapshot names although nothing has made it.

    A broker ends that replays such a record. The result is empty without one.

    Args:
        directory: directory of the metadata's log.
    """
    snapshot, start, logs = _files(directory)
    topics: set[str] = set()
    brokers: set[int] = set()
    for paths, first in (snapshot, 0), (logs, start):
        for record in _records(paths, first, None):
            key, data = _parsed(record, {*_KEYS, *_OF_BROKER})
            if data is None:
                continue
            if key == _TOPIC:
                topics.add(data["topicId"])
            elif key == _REGISTER_BROKER:
                brokers.add(data["brokerId"])
            elif key in _OF_BROKER and data[_OF_BROKER[key]] not in brokers:
                return f"broker {data[_OF_BROKER[key]]}"
            elif "topicId" in data and data["topicId"] not in topics:
                return f"the topic with id {data['topicId']}"
    return ""


def _files(directory: Path) -> tuple[list[Path], int, list[Path]]:
    """Return the newest snapshot, if there is one, the offset at which it ends, and the files of the log in order."""
    snapshots = [path for path in directory.glob("*.checkpoint") if _SNAPSHOT.fullmatch(path.name)]
    logs = sorted(path for path in directory.glob(f"*{LOG}") if parse_segment_file(path.name) is not None)
    newest = sorted(snapshots)[-1:]
    return newest, int(newest[0].name[:20]) if newest else 0, logs


class _Reader:
    def __init__(self) -> None:
        self.found = ClusterMetadata()
        self._names: dict[str, str] = {}  # names of topics that exist or existed, by id
        self._created: dict[str, int] = {}  # timestamps of the records that created them
        self._directories: dict[tuple[str, int], list[str]] = {}  # ids of the last directories, by partition

    def read(self, directory: Path, end: int | None) -> None:
        """Read the log before the newest snapshot, the snapshot, and the log after it."""
        snapshot, start, logs = _files(directory)
        for record in _records(logs, 0, start):
            self._remember(record)
        self.read_files(snapshot)
        for record in _records(logs, start, end, self._skip):
            self._remember(record)
            self._apply(record)

    def read_files(self, paths: Iterable[Path]) -> None:
        """Read files as a whole."""
        for record in _records(paths, 0, None):
            self._apply(record)

    def _skip(self) -> None:
        self.found.unread += 1

    def _remember(self, record: Record) -> None:
        """Note the creation or the removal of a topic."""
        key, data = _parsed(record)
        if data is not None and key == _TOPIC:
            self._names[data["topicId"]], self._created[data["topicId"]] = data["name"], record.timestamp
        elif data is not None and key == _REMOVE_TOPIC:
            topic_id = data["topicId"]
            self.found.removed[topic_id] = Removal(self._names.get(topic_id, ""), record.offset)
        elif data is not None and key in {_PARTITION, _PARTITION_CHANGE} and data.get("directories"):
            place = data["topicId"], data["partitionId"]
            before = self._directories.get(place, [])
            now = self._directories[place] = data["directories"]
            if any(one != other and not {one, other} & _NO_DIRECTORY for one, other in zip(before, now, strict=False)):
                self.found.moved.add(place)

    def _apply(self, record: Record) -> None:
        key, data = _parsed(record)
        found = self.found
        if len(value := record.value or b"") > _VERSION_AT:
            found.forms.setdefault((key, value[_VERSION_AT]), bytes(value))
        found.makes_topics |= key == _TOPIC
        if data is None:
            found.unread += key in _KEYS
        elif key == _TOPIC:
            topic = Topic(data["name"], data["topicId"], self._created.get(data["topicId"]))
            found.topics[topic.name], self._names[topic.topic_id] = topic, topic.name
        elif key == _REMOVE_TOPIC:
            name = self._names.get(data["topicId"], "")
            if name in found.topics and found.topics[name].topic_id == data["topicId"]:
                del found.topics[name]
            found.settings.pop(name, None)
        elif key == _CONFIG and data["resourceType"] in {_OF_TOPICS, _OF_BROKERS}:
            kind = found.settings if data["resourceType"] == _OF_TOPICS else found.of_brokers
            settings = kind.setdefault(data["resourceName"], {})
            settings.pop(data["name"], None)
            if data["value"] is not None:
                settings[data["name"]] = data["value"]
        elif key in {_PARTITION, _PARTITION_CHANGE}:
            self._assign(data)
        elif key == _FEATURE and "featureLevel" in data:
            found.features[data["name"]] = data["featureLevel"]

    def _assign(self, data: Mapping[str, Any]) -> None:
        place = data["topicId"], data["partitionId"]
        known = self.found.replicas.get(place, Replicas((), ()))
        brokers, directories, leader = data.get("replicas"), data.get("directories"), data.get("leader", _UNCHANGED)
        self.found.replicas[place] = Replicas(
            known.brokers if brokers is None else tuple(brokers),
            known.directories if directories is None else tuple(directories),
            known.leader if leader == _UNCHANGED else leader,
        )


def read_bootstrap(path: Path) -> ClusterMetadata:
    """Return the metadata in the file with which a log directory was formatted, as far as they can be read."""
    reader = _Reader()
    reader.read_files([path])
    return reader.found


def _records(
    paths: Iterable[Path], start: int, end: int | None, skip: Callable[[], None] = lambda: None
) -> Iterator[Record]:
    """Yield the records of some files in a range of offsets; a file is read up to its first unreadable batch.

    ``skip`` is called where records may be missing.
    """
    for path in paths:
        try:
            for batch in file_batches(path):
                if end is not None and batch.last_offset >= end:
                    return
                if not batch.is_control and batch.base_offset >= start:
                    yield from batch
        except (KidxError, OSError):
            skip()


def _parsed(record: Record, keys: Collection[int] = _KEYS) -> tuple[int, Mapping[str, Any] | None]:
    """Return type and fields of a record; the fields are None if they are not needed, or cannot be read."""
    value = record.value or b""
    key = value[1] if len(value) > 1 else 0
    if key not in keys:
        return key, None
    try:
        return key, metadata_record(NEWEST, value)
    except MessageError:
        return key, None
