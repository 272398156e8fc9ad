"""A cluster according to KRaft's metadata in a log directory: its topics, partitions, settings, and deleted topics."""

from __future__ import annotations

from kidx.cluster.metadata import NO_LEADER, ClusterMetadata, Removal, Replicas, Topic, first_unknown, read_metadata

__all__ = ["NO_LEADER", "ClusterMetadata", "Removal", "Replicas", "Topic", "first_unknown", "read_metadata"]
