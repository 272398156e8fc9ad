"""Directories that are no partition of their broker, according to KRaft's metadata: a start renames each to …-stray."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kidx.discovery import DELETE, FUTURE, STRAY, parse_partition
from kidx.printable import shell_word
from kidx.startup.answers import PartitionStart
from kidx.startup.checkpoints import PARTITION_METADATA
from kidx.startup.names import METADATA_LOG, is_of_metadata
from kidx.startup.remedies import METADATA_CUT, OTHER_TOPIC, TAKEN_ID, topic_id_remedy

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.cluster import ClusterMetadata

BECOMES_STRAY: Final = "the directory is renamed to …-stray, and the partition starts empty"
RENAMED: Final = "the start renames the directory to …-stray, as it should"
NOT_SERVED: Final = (
    "the broker does not serve the partition (InconsistentTopicIdException), nor others that it was about to serve"
)


class Strays:
    """Rules for directories of partitions.

    The right topic id is in KRaft's metadata. If the metadata are not in these directories, the id that most partitions
    of the topic have is used.

    Args:
        ids: the topic id of each partition's directory, or None if the directory has no id.
        cluster: KRaft's metadata.
        node: id of the broker; None if unknown.
        are_complete: True if KRaft's metadata were read, so that a topic that they lack does not exist.
    """

    def __init__(
        self, ids: Mapping[Path, str | None], cluster: ClusterMetadata, node: int | None, *, are_complete: bool = False
    ) -> None:
        self._ids, self._cluster, self._node, self._are_complete = ids, cluster, node, are_complete
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
            stray = self._stray(path, parsed[0], parsed[1], topic_id)
            if stray is not None and parsed[2] == FUTURE and stray.outcome == "stray":
                cause = stray.reason.removesuffix(f": {BECOMES_STRAY}")
                stray = PartitionStart(path, "renamed", f"{cause}: the start renames this copy to …-stray")
            if stray is not None:
                yield stray

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
            written = topic_id_remedy(topic, right)
            if self._is_own(topic_id, number):
                reason += f", and {self._names[topic_id]} has that one: {NOT_SERVED}"
                return PartitionStart(path, "refused", reason, remedy=TAKEN_ID)
            remedy = f"{OTHER_TOPIC}. Only if the records are known to belong to this topic, {written}"
        elif self._is_unknown(topic_id, number):
            reason, remedy = f"KRaft's metadata have no partition {number} of its topic", OTHER_TOPIC
        else:
            return None
        return PartitionStart(path, "stray", f"{reason}: {BECOMES_STRAY}", remedy=remedy)

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

    def _is_own(self, topic_id: str, number: int) -> bool:
        """Return True if this broker has the partition of a topic id."""
        replicas = self._cluster.replicas.get((topic_id, number))
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


def strays_after_cut(
    ids: Mapping[Path, str | None], before: Mapping[str, str], after: Mapping[str, str]
) -> list[PartitionStart]:
    """Return the partitions that become strays because KRaft's metadata lose their topics.

    Args:
        ids: the topic id of each partition's directory.
        before: the topic ids in the present metadata, by topic.
        after: the topic ids in the metadata that remain after the start, by topic.
    """
    lost = {topic_id for topic, topic_id in before.items() if after.get(topic) != topic_id}
    reason = f"the metadata that the start cuts off have its topic: {BECOMES_STRAY}"
    return [PartitionStart(path, "stray", reason) for path, topic_id in ids.items() if topic_id in lost]
