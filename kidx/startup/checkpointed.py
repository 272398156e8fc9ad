"""Offsets of each log in the checkpoints of a log directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kidx.discovery import CLEAN_SHUTDOWN, RECOVERY_POINTS, START_OFFSETS, parse_partition
from kidx.rebuild.lock import lock_owner
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.simulation import Checkpoints, try_load

if TYPE_CHECKING:
    from pathlib import Path

    from kidx.dialect import Dialect


class CheckpointedOffsets:
    """Offsets of partitions in the checkpoints of a log directory; an unreadable checkpoint counts as empty.

    Args:
        directory: the log directory.
        recovers: True if every log is recovered, even after a clean stop.
    """

    def __init__(self, directory: Path, *, recovers: bool = False) -> None:
        self.clean = (directory / CLEAN_SHUTDOWN).exists() and not recovers
        names = () if recovers else (START_OFFSETS, RECOVERY_POINTS)
        self.starts, self.points = (_read(directory / name) for name in names) if names else ({}, {})

    def of(self, path: Path) -> Checkpoints:
        """Return the offsets of the partition of a directory."""
        topic, number, _ = parse_partition(path.name) or (path.name, 0, "")
        key = topic, number
        return Checkpoints(self.clean, self.starts.get(key, 0), self.points.get(key, 0))


def recovered_end(path: Path, dialect: Dialect) -> int | None:
    """Return the end of a log after a start that recovers it.

    None after a clean stop, while a broker runs, for a directory that is in no log directory, and if the start fails.
    """
    directory = path.absolute().parent
    if not (directory / RECOVERY_POINTS).exists() or lock_owner(directory) is not None:
        return None
    offsets = CheckpointedOffsets(directory)
    return None if offsets.clean else try_load(path, dialect, offsets.of(path)).end


def _read(path: Path) -> dict[tuple[str, int], int]:
    try:
        return offsets_of(path)
    except UnreadableError:
        return {}
