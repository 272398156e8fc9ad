"""Partitions whose topic id is not the id of their topic: KRaft creates a new, empty directory for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kidx.discovery import parse_partition
from kidx.startup.answers import PartitionStart
from kidx.startup.checkpoints import PARTITION_METADATA
from kidx.startup.names import METADATA_LOG
from kidx.startup.remedies import METADATA_CUT, OTHER_TOPIC, TAKEN_ID, topic_id_remedy

if TYPE_CHECKING:
    from pathlib import Path

BECOMES_STRAY: Final = "the directory is renamed to …-stray, and the partition starts empty"


NOT_SERVED: Final = (
    "the broker does not serve the partition (InconsistentTopicIdException), nor others that it was about to serve"
)


def strays(
    ids: Mapping[Path, str | None], recorded: Mapping[str, str], own: Collection[str], *, are_complete: bool = False
) -> Iterator[PartitionStart]:
    """Yield the partitions that become strays, or are not served.

    A directory is no stray if the broker has a partition with its topic id and its number, whatever the names are.

    The right id is in KRaft's metadata. If the metadata are not in these directories, the id that most partitions of
    the topic have is used.

    Args:
        ids: the topic id of each partition's directory, or None if the directory has no id.
        recorded: the topic ids in KRaft's metadata, by topic.
        own: names of the broker's partitions.
        are_complete: True if KRaft's metadata were read, so that a topic that they lack does not exist.
    """
    topics = {topic_id: topic for topic, topic_id in recorded.items()}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path, topic_id in ids.items():
        parsed = parse_partition(path.name)
        if parsed is not None and topic_id is not None:
            found[parsed[0]][topic_id] += 1
    for path, topic_id in ids.items():
        parsed = parse_partition(path.name)
        if parsed is None or parsed[2] or path.name == METADATA_LOG:
            continue
        topic = parsed[0]
        right = recorded.get(topic) or _usual(found[topic], at_least=1 if topic_id is None else 2)
        if are_complete and topic_id is not None and topic not in recorded and topic_id not in topics:
            reason, remedy = f"KRaft's metadata have no topic {topic}", OTHER_TOPIC if recorded else METADATA_CUT
        elif topic_id is None:
            reason, remedy = f"there is no {PARTITION_METADATA}", topic_id_remedy(topic, right)
        elif right is not None and right != topic_id:
            reason = f"its {PARTITION_METADATA} has the topic id {topic_id}, and {topic} has {right}"
            written = topic_id_remedy(topic, right)
            if topic_id in topics and f"{topics[topic_id]}-{parsed[1]}" in own:
                reason += f", and {topics[topic_id]} has that one: {NOT_SERVED}"
                yield PartitionStart(path, "refused", reason, remedy=TAKEN_ID)
                continue
            remedy = f"{OTHER_TOPIC}. Only if the records are known to belong to this topic, {written}"
        else:
            continue
        yield PartitionStart(path, "stray", f"{reason}: {BECOMES_STRAY}", remedy=remedy)


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


def _usual(ids: Counter[str], *, at_least: int) -> str | None:
    """Return the id that most partitions of a topic have; None if too few have it."""
    most = ids.most_common(1)
    return most[0][0] if most and most[0][1] >= at_least else None
