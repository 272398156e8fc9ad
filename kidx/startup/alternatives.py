"""Remedies for logs that a start cannot load, or would truncate. A start after the remedy is simulated to find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kidx.discovery import RECOVERY_POINTS, parse_partition
from kidx.printable import shell_word
from kidx.repair import FROM_A_REPLICA
from kidx.startup.remedies import FOREIGN, RECOVER, instead_of_cutting
from kidx.startup.simulation import foreign_log, try_load

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect
    from kidx.startup.simulation import Checkpoints


def remedy_of_log(path: Path, dialect: Dialect, checkpoints: Checkpoints, end: int, index_interval_bytes: int) -> str:
    """Return the remedy for a log that cannot be loaded.

    Args:
        path: directory of the partition.
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        end: end of the log.
        index_interval_bytes: setting of the topic.
    """
    if (foreign := foreign_log(path)) is not None:
        return f"move {shell_word(foreign)} out of the log directory, and verify again: {FOREIGN}"
    if checkpoints.clean:
        recovered = try_load(path, dialect, replace(checkpoints, clean=False), index_interval_bytes)
        if recovered.end is not None and recovered.end >= end:
            return RECOVER
    return FROM_A_REPLICA


def keep_whole(path: Path, dialect: Dialect, checkpoints: Checkpoints, sizes: Mapping[int, int], end: int) -> str:
    """Return the remedy for a log that is truncated only because its recovery point is low; empty for any other log.

    Args:
        path: directory of the partition.
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        sizes: size of each ``.log`` in bytes, by base offset.
        end: end of the log.
    """
    parsed = parse_partition(path.name)
    if checkpoints.clean or parsed is None:
        return ""
    kept = try_load(path, dialect, replace(checkpoints, recovery_point=end))
    if kept.end != end or dict(kept.segments) != dict(sizes):
        return ""
    topic, partition, _ = parsed
    return instead_of_cutting(topic, partition, end, is_new=not (path.parent / RECOVERY_POINTS).exists())
