"""Partitions that KRaft's metadata assign to a broker, but that are on none of its disks."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kidx.discovery import DELETE, HIGH_WATERMARKS, LOG, RECOVERY_POINTS, STRAY, parse_partition
from kidx.startup.answers import PartitionStart, Remark
from kidx.startup.checkpoints import UnreadableError, offsets_of, properties_of
from kidx.startup.directories import is_reserved
from kidx.startup.names import METADATA_LOG
from kidx.startup.remedies import ELSEWHERE, LOST

if TYPE_CHECKING:
    from kidx.cluster import ClusterMetadata


class Assignment(NamedTuple):
    """A partition on a broker.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        directory_id: id of its log directory, which may be reserved; empty if the metadata have none, as before 3.7.
    """

    topic: str
    partition: int
    directory_id: str

    @property
    def name(self) -> str:
        """Name of the partition's directory."""
        return f"{self.topic}-{self.partition}"


def assignments(cluster: ClusterMetadata, node: int) -> list[Assignment]:
    """Return the partitions of a broker according to KRaft's metadata.

    Args:
        cluster: the metadata.
        node: id of the broker.
    """
    names = {topic_id: name for name, topic_id in cluster.ids.items()}
    return [
        Assignment(names[topic_id], number, replicas.directory_on(node))
        for (topic_id, number), replicas in cluster.replicas.items()
        if topic_id in names and node in replicas.brokers
    ]


def lost_partitions(
    directories: Sequence[Path], recorded: Iterable[Assignment], aside: Collection[Path] = ()
) -> tuple[list[PartitionStart], list[Remark]]:
    """Return the partitions that start empty, and remarks about partitions in other log directories.

    A partition was on a disk if a checkpoint of the disk has an offset for it. A partition without such an offset may
    belong to a topic that was created while the broker stopped.

    Args:
        directories: all log directories of the broker that were verified.
        recorded: partitions of the broker.
        aside: directories of partitions that the start renames.
    """
    offsets: dict[tuple[str, int], Path] = {}
    present: set[str] = set()
    ids: set[str] = set()
    for directory in directories:
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
            with contextlib.suppress(UnreadableError):
                offsets |= dict.fromkeys((key for key, end in offsets_of(directory / name).items() if end), directory)
        with contextlib.suppress(UnreadableError):
            ids.add((properties_of(directory) or {}).get("directory.id", ""))
        try:
            present.update(_with_a_log(directory, aside))
        except OSError:
            return [], []
    lost: list[PartitionStart] = []
    elsewhere: list[Assignment] = []
    for each in recorded:
        if each.name in present:
            continue
        place = offsets.get((each.topic, each.partition))
        if place is not None:
            lost.append(_empty(place / each.name))
        elif each.directory_id not in ids:
            elsewhere.append(each)
    return lost, list(_remarks(directories, elsewhere))


def _with_a_log(directory: Path, aside: Collection[Path]) -> Iterator[str]:
    """Yield the names of the partitions that have a segment in a log directory.

    Raises:
        OSError: a directory cannot be read.
    """
    for path in directory.iterdir():
        parsed = parse_partition(path.name)
        if parsed is None or parsed[2] in {DELETE, STRAY} or path in aside or not path.is_dir():
            continue
        if any(LOG in Path(name.name).suffixes for name in path.iterdir()):
            yield f"{parsed[0]}-{parsed[1]}"


def dangling_links(directories: Sequence[Path], own: Iterable[Assignment]) -> Iterator[Path]:
    """Yield the links to no directory in the places of a broker's partitions, where the broker cannot create them.

    Args:
        directories: all log directories of the broker that were verified.
        own: partitions of the broker.
    """
    ids: dict[Path, str] = {}
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            ids[directory] = (properties_of(directory) or {}).get("directory.id", "")
    for each in own:
        for directory in directories:
            path = directory / each.name
            is_only = is_reserved(each.directory_id) and len(directories) == 1
            if (is_only or each.directory_id == ids.get(directory)) and path.is_symlink() and not path.exists():
                yield path


def _empty(path: Path) -> PartitionStart:
    what = "there is no segment in it" if path.is_dir() else "there is no such directory"
    reason = f"{what}, though KRaft's metadata and a checkpoint have the partition: it starts empty"
    return PartitionStart(path, "empty", reason, remedy=LOST)


def _remarks(directories: Iterable[Path], elsewhere: Sequence[Assignment]) -> Iterator[Remark]:
    metadata = next((path for each in directories if (path := each / METADATA_LOG).is_dir()), None)
    unknown = sorted({each.directory_id for each in elsewhere if not is_reserved(each.directory_id)})
    if metadata is None:
        return
    for directory_id in unknown:
        names = sorted(each.name for each in elsewhere if each.directory_id == directory_id)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        reason = f"it has {names[0]}{more} in the log directory with the id {directory_id}, which was not verified"
        yield Remark(metadata, f"{reason}: {ELSEWHERE}")
