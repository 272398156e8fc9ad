"""Partitions with another topic id than their topic: KRaft creates a new, empty directory for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kidx.discovery import parse_partition
from kidx.startup.answers import PartitionStart
from kidx.startup.checkpoints import PARTITION_METADATA
from kidx.startup.names import METADATA_LOG
from kidx.startup.remedies import missing_topic_id

if TYPE_CHECKING:
    from pathlib import Path


def strays(ids: Mapping[Path, str | None], recorded: Mapping[str, str]) -> Iterator[PartitionStart]:
    """Yield the partitions that become strays.

    The id is what KRaft's metadata say. Where they are not among the directories, the id counts that most partitions of
    the topic have.

    Args:
        ids: the topic id of each partition's directory; None where it has none.
        recorded: the topic ids in KRaft's metadata, by topic.
    """
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
        if topic_id is None:
            reason = f"there is no {PARTITION_METADATA}"
        elif right is not None and right != topic_id:
            reason = f"its {PARTITION_METADATA} has the topic id {topic_id}, and {topic} has {right}"
        else:
            continue
        reason += ": the directory is renamed to …-stray, and the partition starts empty"
        yield PartitionStart(path, "stray", reason, remedy=missing_topic_id(topic, right))


def _usual(ids: Counter[str], *, at_least: int) -> str | None:
    """Return the id that most partitions of a topic have; None if too few have it."""
    most = ids.most_common(1)
    return most[0][0] if most and most[0][1] >= at_least else None
