"""Partitions on the disks of a broker, by KRaft's metadata: strays, partitions that are nowhere, and several copies.

A ``-future`` directory is the copy of a partition that is being moved to another log directory. It is no partition: if
KRaft's metadata already assign the partition to its log directory, a start replaces the partition with it;
otherwise the move continues, and the copy is filled from the partition, or emptied if no partition exists.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kidx.cluster import NO_LEADER, ClusterMetadata
from kidx.discovery import (
    DELETE,
    FUTURE,
    HIGH_WATERMARKS,
    LOG,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    STRAY,
    parse_partition,
)
from kidx.printable import shell_word
from kidx.segment.files import file_name
from kidx.startup.answers import Outcome, PartitionStart, Remark, SegmentChange
from kidx.startup.checkpoints import UnreadableError, offsets_of, properties_of
from kidx.startup.directories import directories_in, is_reserved, partitions_in
from kidx.startup.kraft import node_of
from kidx.startup.names import METADATA_LOG, is_of_metadata
from kidx.startup.readable import NOTHING, LoggedRecords, Piece
from kidx.startup.remedies import (
    ELSEWHERE,
    LOST,
    METADATA_CUT,
    MOVE_OUT,
    OTHER_TOPIC,
    REPAIR_FIRST,
    TAKEN_ID,
    TWICE,
    topic_id_remedy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


class Assignment(NamedTuple):
    """A partition on a broker.

    Attributes:
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
        node: id of the broker.
    """
    names = {topic_id: name for name, topic_id in cluster.ids.items()}
    return [
        Assignment(names[topic_id], number, replicas.directory_on(node))
        for (topic_id, number), replicas in cluster.replicas.items()
        if topic_id in names and node in replicas.brokers
    ]


def joined(brokers: Iterable[list[Path]], clusters: Mapping[Path, ClusterMetadata]) -> list[list[Path]]:
    """Join log directories whose node id is wrong to the broker that has their partitions in KRaft's metadata.

    Args:
        clusters: KRaft's metadata by the log directory with KRaft's own log.
    """
    with_metadata: list[list[Path]] = []
    found: list[list[Path]] = []
    for directories in brokers:
        (with_metadata if any(each in clusters for each in directories) else found).append(directories)
    for directories in with_metadata:
        known = next(clusters[each] for each in directories if each in clusters)
        of_it = [others for others in found if _has(known, directories, others)]
        found = [others for others in found if others not in of_it]
        directories.extend(each for others in of_it for each in others)
    return [sorted(each) for each in (*with_metadata, *found)]


def _has(cluster: ClusterMetadata, directories: Iterable[Path], others: Iterable[Path]) -> bool:
    """Return True if a broker has partitions in other log directories whose node has none of them."""
    there = partitions_in(others)

    def has_some(node: int | None) -> bool:
        return node is not None and any((each.topic, each.partition) in there for each in assignments(cluster, node))

    return has_some(node_of(directories)) and not has_some(node_of(others))


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
    offsets = _checkpointed(directories)
    present: set[str] = set()
    ids: set[str] = set()
    for directory in directories:
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
            lost.append(_empty(place / each.name, "KRaft's metadata and a checkpoint have the partition"))
        elif each.directory_id not in ids:
            elsewhere.append(each)
    return lost, list(_remarks(directories, elsewhere))


def only_in_checkpoints(directories: Sequence[Path]) -> Iterator[PartitionStart]:
    """Yield the partitions that a checkpoint has, and no log directory, of a broker whose metadata are not known.

    The topic of a partition with a ``-delete`` directory was deleted. Without such a directory, a broker has removed
    the partition from the checkpoints, too.
    """
    try:
        present = {name for directory in directories for name in _with_a_log(directory)}
        names = [parse_partition(path.name) for directory in directories for path in directory.iterdir()]
    except OSError:
        return
    present |= {f"{each[0]}-{each[1]}" for each in names if each is not None and each[2] == DELETE}
    for (topic, number), place in _checkpointed(directories).items():
        if (name := f"{topic}-{number}") not in present and not is_of_metadata(name):
            yield _empty(place / name, "a checkpoint has the partition, and its topic may still exist")


def _checkpointed(directories: Iterable[Path]) -> dict[tuple[str, int], Path]:
    """Return the log directory of each partition that has an offset in one of its checkpoints."""
    offsets: dict[tuple[str, int], Path] = {}
    for directory in directories:
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
            with contextlib.suppress(UnreadableError):
                offsets |= dict.fromkeys((key for key, end in offsets_of(directory / name).items() if end), directory)
    return offsets


def _with_a_log(directory: Path, aside: Collection[Path] = ()) -> Iterator[str]:
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


def obstructed(directories: Sequence[Path], own: Iterable[Assignment]) -> Iterator[Path]:
    """Yield the files and the links to no directory in the places of a broker's partitions, which it cannot create.

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
            is_in_the_way = path.is_symlink() or path.exists()
            if (is_only or each.directory_id == ids.get(directory)) and is_in_the_way and not path.is_dir():
                yield path


def _empty(path: Path, but: str) -> PartitionStart:
    what = "there is no segment in it" if path.is_dir() else "there is no such directory"
    reason = f"{what}, though {but}: it starts empty"
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


MADE_ELSEWHERE: Final = (
    "its log directory goes offline, and the broker makes the partition in another directory, where it starts empty"
)
BECOMES_STRAY: Final = "the directory is renamed to …-stray, and the partition starts empty"
RENAMED: Final = "the start renames the directory to …-stray, as it should"
INCONSISTENT: Final = "the broker does not serve the partition (InconsistentTopicIdException)"
NOT_SERVED: Final = f"{INCONSISTENT}, nor others that it was about to serve"
DELETED: Final = "the broker deletes the directory (file.delete.delay.ms later)"
"""Effect of a broker before 3.7 on a stray."""


class Strays:
    """Rules for directories of partitions.

    The right topic id is in KRaft's metadata. If the metadata are not in these directories, the id that most partitions
    of the topic have is used.

    Args:
        ids: the topic id of each partition's directory, or None if the directory has no id.
        cluster: KRaft's metadata.
        node: id of the broker; None if unknown.
        are_complete: True if KRaft's metadata were read, so that a topic that they lack does not exist.
        come_first: True if the release finds strays before it serves partitions, as from 3.7 on.
        not_served: effect of another topic id on a partition that the release serves first.
        renames_copies: True if the release renames a -future directory that is a stray, and not its partition.
    """

    def __init__(
        self,
        ids: Mapping[Path, str | None],
        cluster: ClusterMetadata,
        node: int | None,
        *,
        are_complete: bool = False,
        come_first: bool = True,
        not_served: str = NOT_SERVED,
        renames_copies: bool = True,
    ) -> None:
        self._ids, self._cluster, self._node, self._are_complete = ids, cluster, node, are_complete
        self._come_first, self._not_served, self._renames_copies = come_first, not_served, renames_copies
        self._names = {topic_id: name for name, topic_id in cluster.ids.items()}
        self._usual: dict[str, Counter[str]] = defaultdict(Counter)
        for path, topic_id in ids.items():
            parsed = parse_partition(path.name)
            if parsed is not None and topic_id is not None:
                self._usual[parsed[0]][topic_id] += 1

    def find(self) -> Iterator[PartitionStart]:
        """Yield the directories that become strays, or are not served."""
        for path, topic_id in self._ids.items():
            parsed = parse_partition(path.name)
            if parsed is None or parsed[2] in {DELETE, STRAY} or is_of_metadata(path.name):
                continue
            if not self._come_first:
                served = topic_id and self._served_first(path, parsed[0], parsed[1], topic_id)
                if served:
                    yield self._deleted_with(served) if parsed[2] == FUTURE else served
                continue
            stray = self._stray(path, parsed[0], parsed[1], topic_id)
            if stray is not None and parsed[2] == FUTURE and stray.outcome == "stray":
                stray = self._copy(stray, f"{parsed[0]}-{parsed[1]}")
            if stray is not None:
                yield stray

    def _deleted_with(self, copy: PartitionStart) -> PartitionStart:
        """Return what becomes of a partition whose copy is a stray before 3.7: the broker deletes both."""
        if copy.outcome not in {"stray", "refused"} or not self._are_deleted:
            return copy
        name = shell_word(copy.path.name.partition(".")[0])
        cause = copy.reason.partition(": ")[0]
        reason = f"{cause}: the broker deletes this copy, and {name} with it, which starts empty"
        return PartitionStart(copy.path, "stray", reason, remedy=MOVE_OUT)

    def _copy(self, copy: PartitionStart, name: str) -> PartitionStart:
        """Return what becomes of a copy with the topic id of another topic, or what the release renames instead."""
        cause = copy.reason.removesuffix(f": {BECOMES_STRAY}")
        current = next((path for path in self._ids if path.name == name), None)
        if self._renames_copies or current is None:
            return PartitionStart(copy.path, "renamed", f"{cause}: the start renames this copy to …-stray")
        reason = f"its copy is no copy of it, {cause}: this release renames {shell_word(name)} to …-stray instead"
        remedy = f"move {shell_word(copy.path)} out of the log directory"
        return PartitionStart(current, "stray", f"{reason}, and the partition starts empty", remedy=remedy)

    def _stray(self, path: Path, topic: str, number: int, topic_id: str | None) -> PartitionStart | None:
        """Return what becomes of a directory; None if its topic id is right."""
        if self._are_complete and (why := self._on_purpose(topic, number, topic_id)):
            return PartitionStart(path, "renamed", f"{why}: {RENAMED}")
        recorded = self._cluster.ids
        right = recorded.get(topic) or self._most_common(topic, at_least=1 if topic_id is None else 2)
        if topic_id is None:
            reason, remedy = f"there is no {PARTITION_METADATA}", topic_id_remedy(topic, right)
        elif self._are_complete and topic not in recorded and topic_id not in self._names:
            reason, remedy = f"KRaft's metadata have no topic {topic}", OTHER_TOPIC if recorded else METADATA_CUT
        elif right is not None and right != topic_id:
            reason = f"its {PARTITION_METADATA} has the topic id {topic_id}, and {topic} has {right}"
            if self._is_own(topic_id, number):
                reason += f", and {self._names[topic_id]} has that one: {NOT_SERVED}"
                return PartitionStart(path, "refused", reason, remedy=TAKEN_ID)
            remedy = _rewritten(topic, right)
        elif self._is_unknown(topic_id, number):
            reason, remedy = f"KRaft's metadata have no partition {number} of its topic", OTHER_TOPIC
        else:
            return None
        return PartitionStart(path, "stray", f"{reason}: {BECOMES_STRAY}", remedy=remedy)

    def _served_first(self, path: Path, topic: str, number: int, topic_id: str) -> PartitionStart | None:
        """Return what becomes of a directory with a topic id before 3.7; None if the id is right.

        A log without an id gets the id in the metadata if this broker has the partition. If it
        does not, no stray is deleted (``findStrayPartitions`` throws).
        """
        right = self._cluster.ids.get(topic) or self._most_common(topic, at_least=2)
        why = self._on_purpose(topic, number, topic_id) if self._are_complete else ""
        is_known = self._are_complete and not self._cluster.unread
        is_stray = is_known and not self._is_own(topic_id, number)
        effect = DELETED if self._are_deleted else "the broker leaves the directory"
        if right in {None, topic_id} or (is_known and not self._is_own(right, number)):
            if why:
                return PartitionStart(path, "renamed", f"{why}: {effect}, as it should")
            if not is_stray:
                return None
            reason = f"KRaft's metadata have no {f'partition {number} of' if right else 'topic'} {topic}: {effect}"
            return PartitionStart(path, "refused", reason, remedy=OTHER_TOPIC if self._names else METADATA_CUT)
        reason = why or f"its {PARTITION_METADATA} has the topic id {topic_id}, and {topic} has {right}"
        remedy = _rewritten(topic, right)
        replicas = self._cluster.replicas.get((right or "", number))
        if not is_stray:
            reason, remedy = f"{reason}: {self._not_served}", TAKEN_ID if self._is_own(topic_id, number) else remedy
        elif replicas is not None and replicas.leader == NO_LEADER and self._are_deleted:
            return PartitionStart(path, "stray", f"{reason}: {effect}, and the partition starts empty", remedy=remedy)
        else:
            reason = f"{reason}: {self._not_served}; and {effect}"
        return PartitionStart(path, "refused", reason, remedy=remedy)

    @cached_property
    def _are_deleted(self) -> bool:
        """True if a broker before 3.7 deletes strays: it can tell whether each log with no topic id is its own."""
        names = [
            path.name for path, topic_id in self._ids.items() if topic_id is None and not is_of_metadata(path.name)
        ]
        without = [parsed for name in names if (parsed := parse_partition(name)) is not None and not parsed[2]]
        return all(self._is_own(self._cluster.ids.get(topic), number) for topic, number, _ in without)

    def _on_purpose(self, topic: str, number: int, topic_id: str | None) -> str:
        """Return why a directory is rightly no partition of this broker; empty if the metadata do not say so."""
        cluster = self._cluster
        if topic_id is None:
            is_foreign = cluster.topics and topic not in cluster.topics
            return f"KRaft's metadata have no topic {shell_word(topic)}, and it has no topic id" if is_foreign else ""
        if (removal := cluster.removed.get(topic_id)) is not None:
            another = f"; the topic {shell_word(topic)} of today is another" if topic in cluster.topics else ""
            return f"its topic was deleted on purpose (offset {removal.offset} of {METADATA_LOG}){another}"
        replicas = cluster.replicas.get((topic_id, number))
        if topic_id not in self._names or replicas is None or self._node is None or cluster.unread:
            return ""
        if self._node in replicas.brokers:
            return ""
        return f"KRaft's metadata have its replicas on {', '.join(map(str, replicas.brokers))}, and not on this broker"

    def _is_own(self, topic_id: str | None, number: int) -> bool:
        """Return True if this broker has the partition of a topic id."""
        replicas = self._cluster.replicas.get((topic_id or "", number))
        return topic_id in self._names and replicas is not None and self._node in replicas.brokers

    def _is_unknown(self, topic_id: str, number: int) -> bool:
        """Return True if the metadata have other partitions of a topic, but not this one."""
        numbers = {each for known, each in self._cluster.replicas if known == topic_id}
        is_read = self._are_complete and not self._cluster.unread
        return is_read and topic_id in self._names and bool(numbers) and number not in numbers

    def _most_common(self, topic: str, *, at_least: int) -> str | None:
        """Return the id that most partitions of a topic have; None if too few have it."""
        most = self._usual[topic].most_common(1)
        return most[0][0] if most and most[0][1] >= at_least else None


def _rewritten(topic: str, right: str | None) -> str:
    return f"{OTHER_TOPIC}. Only if the records are known to belong to this topic, {topic_id_remedy(topic, right)}"


def inconsistent_ids(ids: Mapping[Path, str | None]) -> Iterator[PartitionStart]:
    """Return the partitions with another topic id than most of their topic, as a broker with ZooKeeper has them.

    ZooKeeper has the right id, and not the disks. The broker rejects a different id partition by partition.
    """
    return Strays(ids, ClusterMetadata(), None, come_first=False, not_served=INCONSISTENT).find()


def made_elsewhere(
    own: Iterable[Assignment], offline: Collection[Path], present: Collection[Path]
) -> Iterator[PartitionStart]:
    """Yield the partitions in log directories that go offline, which a broker before 3.7 makes elsewhere.

    Args:
        own: partitions of the broker in KRaft's metadata.
        offline: log directories that go offline.
        present: the other log directories.
    """
    for each in own:
        if not any((directory / each.name).is_dir() for directory in present):
            for directory in offline:
                if (path := directory / each.name).is_dir() or path.is_symlink():
                    yield PartitionStart(path, "empty", MADE_ELSEWHERE, remedy=REPAIR_FIRST)


def strays_after_cut(
    ids: Mapping[Path, str | None],
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    come_first: bool = True,
) -> list[PartitionStart]:
    """Return the partitions that become strays because KRaft's metadata lose their topics.

    Args:
        ids: the topic id of each partition's directory.
        before: the topic ids in the present metadata, by topic.
        after: the topic ids in the metadata that remain after the start, by topic.
        come_first: True if the release finds strays before it serves partitions.
    """
    lost = {topic_id for topic, topic_id in before.items() if after.get(topic) != topic_id}
    outcome: Outcome = "stray" if come_first else "refused"
    reason = f"the metadata that the start cuts off have its topic: {BECOMES_STRAY if come_first else DELETED}"
    return [PartitionStart(path, outcome, reason) for path, topic_id in ids.items() if topic_id in lost]


Limits = tuple[int, int]
"""Start and end of a log after it is loaded."""
_ASSIGNED: Final = "KRaft's metadata assign the partition to this log directory"


class Settled(NamedTuple):
    """Result of a start for partitions with several directories.

    Attributes:
        fatal: copies that prevent the start.
        partitions: copies that are lost, or that take the place of their partition.
        remarks: copies that prevent a later start.
        replaced: directories of partitions that other copies have, although these are renamed.
        offline: reason why a log directory goes offline after its logs were loaded, by directory.
    """

    fatal: list[Remark]
    partitions: list[PartitionStart]
    remarks: list[Remark]
    replaced: set[Path]
    offline: dict[Path, Remark]


class Copies:
    """Directories of partitions, by topic and number.

    Args:
        assigned: id of the log directory to which KRaft's metadata assign a partition, by topic and number.
        aside: directories that the start renames while it loads logs.
        limits: function that returns the start and the end of the log in a directory.
        are_settled: True if the release replaces partitions with their copies when it starts.
        are_filled: True if the release continues to fill a copy next to its partition.
    """

    def __init__(
        self,
        log_directories: Iterable[Path],
        assigned: Mapping[tuple[str, int], str],
        aside: Collection[Path],
        limits: Callable[[Path], Limits],
        *,
        are_settled: bool,
        are_filled: bool,
    ) -> None:
        self._assigned, self._limits, self._are_settled, self._are_filled = assigned, limits, are_settled, are_filled
        self._strays = set(aside)
        self._aside = self._strays if are_settled else set()
        self._places: dict[tuple[str, int], dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
        self._ids: dict[Path, str] = {}
        self._counts: dict[Path, int] = {}  # number of logs in each log directory
        for directory in log_directories:
            self._counts[directory] = 0
            with contextlib.suppress(UnreadableError):
                self._ids[directory] = (properties_of(directory) or {}).get("directory.id", "")
            for path in directories_in(directory):
                parsed = parse_partition(path.name)
                if parsed is not None and parsed[2] in {"", FUTURE} and not is_of_metadata(path.name):
                    self._places[parsed[:2]][parsed[2]].append(path)
                    self._counts[directory] += 1

    def settle(self) -> Settled:
        """Return what a start makes of the partitions with several directories."""
        found = Settled([], [], [], set(), {})
        for (topic, number), places in self._places.items():
            current, future = ([path for path in places[state] if path not in self._aside] for state in ("", FUTURE))
            if current or future:
                found.replaced.update(path for path in places[""] if path in self._aside)
            name = shell_word(f"{topic}-{number}")
            duplicates = [some for some in (current, future) if len(some) > 1]
            for first, *others in duplicates:
                what = f"{name}, being moved," if first in future else name
                found.fatal.append(Remark(first, f"{what} lies in {', '.join(map(shell_word, others))}, too", TWICE))
            if future and not duplicates and self._strays.isdisjoint([*current, *future]):
                self._settle(future[0], current[0] if current else None, (topic, number), found)
        return found

    def _settle(self, future: Path, current: Path | None, place: tuple[str, int], found: Settled) -> None:
        """Settle one partition that is being moved."""
        name = shell_word(f"{place[0]}-{place[1]}")
        assigned = self._assigned.get(place, "")
        if self._are_settled and assigned and assigned == self._ids.get(future.parent):
            self._promote(future, current, name, found)
        elif current is None:
            reason = (
                f"it is the only copy of {name}, which was being moved here: the start makes an empty {name}, and "
                "empties this copy, which follows it"
            )
            remedy = f"mv {shell_word(future)} {shell_word(future.parent / f'{place[0]}-{place[1]}')}"
            is_known = place in self._assigned or not any(self._ids.values())  # else the assignment decides
            if is_known and self._made_in(assigned) == future.parent:
                why = f"the start makes an empty {name} next to it, and cannot rename it to that name"
                found.offline.setdefault(future.parent, Remark(future, f"{why} (DirectoryNotEmptyException)", remedy))
            found.partitions.append(self._lost(future, None, reason, remedy))
        elif current.parent == future.parent and self._are_filled:
            why = f"it is next to {name}: the broker fills it, and cannot rename it to {name} at the end"
            remedy = MOVE_OUT
            found.offline.setdefault(future.parent, Remark(future, f"{why} (DirectoryNotEmptyException)", remedy))
        elif current.parent == future.parent:
            if self._are_settled and assigned and current.parent in self._ids:
                reason = (
                    f"it is next to {name}, in a log directory to which KRaft's metadata do not assign the partition: "
                    "this start leaves it, and the broker has the assignment corrected; the next start then fails "
                    "(DirectoryNotEmptyException)"
                )
            else:
                reason = (
                    f"it is next to {name}: this start leaves it, and no later one succeeds once KRaft's metadata "
                    "assign the partition to this log directory"
                )
            found.remarks.append(Remark(future, reason, MOVE_OUT))
        else:
            reason = (
                f"it is cut to the end of {shell_word(current)}, from which the start continues to move {name}: later "
                "records are in this copy alone"
            )
            lost = self._lost(future, current, reason, f"copy {shell_word(future)} out of the log directories")
            if lost.lost:
                found.partitions.append(lost)

    def _made_in(self, assigned: str) -> Path | None:
        """Return the log directory where the broker makes a missing partition: the assigned one, or the emptiest."""
        known = next((directory for directory, each in self._ids.items() if assigned and each == assigned), None)
        chosen = known or min(self._counts, key=self._counts.__getitem__, default=None)
        if chosen is not None:
            self._counts[chosen] += 1
        return chosen

    def _promote(self, future: Path, current: Path | None, name: str, found: Settled) -> None:
        """Replace a partition with its copy."""
        start, end = self._limits(future)
        if current is None:
            found.partitions.append(PartitionStart(future, "kept", f"it becomes {name}", (start, start), (end, end)))
            return
        if current.parent == future.parent:
            last = self._limits(current)[1]
            shorter = current if last < end else future
            reason = (
                f"{_ASSIGNED}, so the start renames it to {current.name}, which exists (DirectoryNotEmptyException)"
            )
            remedy = f"move {shell_word(shorter)} out of the log directory: the other copy ends at {max(last, end)}"
            found.fatal.append(Remark(future, reason, remedy))
            return
        reason = (
            f"KRaft's metadata assign {name} to {shell_word(future.parent)}, where {shell_word(future)} is: the start "
            "makes that copy the partition, and deletes this directory"
        )
        remedy = f"move {shell_word(future)} out of the log directory: the broker then serves this directory"
        lost = self._lost(current, future, reason, remedy)
        if not lost.lost:
            reason = f"it becomes {name}, and the start deletes {shell_word(current)}"
            lost = PartitionStart(future, "kept", reason, (start, start), (end, end))
        found.partitions.append(lost)

    def _lost(self, path: Path, other: Path | None, reason: str, remedy: str) -> PartitionStart:
        """Return what is lost of a copy if another copy takes its place; None for an empty log."""
        start, end = self._limits(path)
        first, last = self._limits(other) if other is not None else (0, 0)
        lost, changes = NOTHING, []
        with contextlib.suppress(OSError):
            sizes = LoggedRecords(other).sizes if other is not None else {}
            pieces = [Piece(base, _log(other, base), size) for base, size in sizes.items() if other is not None]
            logged = LoggedRecords(path)
            lost = logged.lost(pieces, start, first, last)
            kept_below = last if path.name.endswith(f"-{FUTURE}") else 0  # a copy is cut, a partition is deleted
            changes = [
                SegmentChange(_log(path, base), size, None, logged.records_from(base, 0))
                for base, size in logged.sizes.items()
                if base >= kept_below
            ]
        return PartitionStart(path, "cut", reason, (start, first), (end, last), tuple(changes), remedy, lost=lost)


def _log(directory: Path, base: int) -> Path:
    return directory / file_name(base, LOG)


def renamed_only(partitions: Iterable[PartitionStart], replaced: Collection[Path]) -> Iterator[PartitionStart]:
    """Yield partitions; one whose directory is renamed, and that has another copy, does not start empty."""
    for each in partitions:
        if each.outcome == "stray" and each.directory in replaced:
            cause = each.reason.partition(": ")[0]
            reason = f"{cause}: the directory is renamed to …-stray, and another copy is the partition"
            yield PartitionStart(each.directory, "renamed", reason)
        else:
            yield each
