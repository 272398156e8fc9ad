"""Partitions as KRaft's metadata on the same disks know them: checkpoints of an earlier topic, compaction, tiers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kidx.cluster import ClusterMetadata, read_metadata
from kidx.discovery import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    METADATA_TOPIC,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    Found,
    read_offset_checkpoint,
)
from kidx.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.discovery import Partition

_TOPIC_ID: Final = re.compile(r"^topic_id: ([\w-]{22})$", re.ASCII | re.MULTILINE)
_LARGEST: Final = 1 << 16
"""Maximum size in bytes of a ``partition.metadata`` that is read."""


def clusters_of(found: Found) -> dict[Path, ClusterMetadata]:
    """Return KRaft's metadata among some partitions, by log directory."""
    directories = {each.directory.parent for each in found.partitions if each.topic == METADATA_TOPIC}
    return {directory: read_metadata([directory]) for directory in sorted(directories)}


def identified(found: Found, clusters: Mapping[Path, ClusterMetadata] | None = None) -> Found:
    """Return a discovery whose partitions have what KRaft's metadata say about their topics.

    The metadata of a cluster count for a partition if they have a topic of its name with its topic id.
    """
    clusters = clusters_of(found) if clusters is None else clusters
    if not clusters:
        return found
    return Found([_identified(each, clusters) for each in found.partitions], found.problems, found.left_out)


def _identified(partition: Partition, clusters: Mapping[Path, ClusterMetadata]) -> Partition:
    cluster = _cluster_of(partition, clusters)
    if cluster is None or partition.topic is None:
        return partition
    topic = cluster.topics[partition.topic]
    created, replicas = topic.created, cluster.replicas.get((topic.topic_id, partition.partition or 0))
    offsets = {RECOVERY_POINTS: partition.recovery_point, HIGH_WATERMARKS: partition.high_watermark}
    earlier = {
        name: offset
        for name, offset in offsets.items()
        if offset and created is not None and _written(partition.directory.parent / name) < created
    }
    settings = cluster.settings.get(partition.topic, {})
    return replace(
        partition,
        recovery_point=None if RECOVERY_POINTS in earlier else partition.recovery_point,
        high_watermark=None if HIGH_WATERMARKS in earlier else partition.high_watermark,
        earlier=tuple(earlier.items()),
        may_have_gaps=cluster.is_compacted(partition.topic) and not _has_entries(partition.directory.parent),
        is_replicated=replicas is not None and len(replicas.brokers) > 1,
        is_tiered=settings.get("remote.storage.enable", "").lower() == "true",
        may_have_moved=cluster.may_have_moved(partition.topic, partition.partition or 0),
    )


def identified_as_before(partition: Partition, known: Partition) -> Partition:
    """Return a partition that was discovered again, with what KRaft's metadata said about it at first.

    A checkpoint that has another offset now was written since, and is not of an earlier topic.
    """
    now = {RECOVERY_POINTS: partition.recovery_point, HIGH_WATERMARKS: partition.high_watermark}
    earlier = {name: offset for name, offset in known.earlier if now[name] == offset}
    return replace(
        partition,
        recovery_point=None if RECOVERY_POINTS in earlier else partition.recovery_point,
        high_watermark=None if HIGH_WATERMARKS in earlier else partition.high_watermark,
        earlier=tuple(earlier.items()),
        may_have_gaps=known.may_have_gaps,
        is_replicated=known.is_replicated,
        is_tiered=known.is_tiered,
        may_have_moved=known.may_have_moved,
    )


def _cluster_of(partition: Partition, clusters: Mapping[Path, ClusterMetadata]) -> ClusterMetadata | None:
    """Return the metadata that have the topic of a partition, those in its own log directory first."""
    topic_id = topic_id_in(partition.directory)
    own = clusters.get(partition.directory.parent)
    for cluster in (*([own] if own is not None else []), *clusters.values()):
        topic = cluster.topics.get(partition.topic or "")
        if topic_id is not None and topic is not None and topic.topic_id == topic_id:
            return cluster
    return None


def topic_id_in(directory: Path) -> str | None:
    """Return the topic id in a partition directory's ``partition.metadata``; None if there is no valid one."""
    try:
        match = _TOPIC_ID.search(read_text(directory / PARTITION_METADATA, limit=_LARGEST))
    except (OSError, ValueError):
        return None
    return None if match is None else match[1]


def _written(path: Path) -> int:
    """Return the time in milliseconds at which a checkpoint was written; later than any topic without a file."""
    with contextlib.suppress(OSError):
        return int(path.stat().st_mtime * 1000)
    return 1 << 63


def _has_entries(log_directory: Path) -> bool:
    """Return True if the checkpoint of compaction has entries, so that a log without one was never compacted."""
    try:
        return bool(read_offset_checkpoint(log_directory / CLEANED_OFFSETS))
    except OSError:
        return False
