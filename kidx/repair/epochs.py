"""Rebuild of a ``leader-epoch-checkpoint`` from the batches of a log, as a broker that appends them writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kidx.discovery import EPOCHS
from kidx.errors import InvalidArgumentError
from kidx.log.epochs import LeaderEpochCache
from kidx.verify.epoch_rules import epochs_of
from kidx.verify.segment import verify_segment

if TYPE_CHECKING:
    from kidx.discovery import Partition


def write_epochs(partition: Partition, directory: Path) -> Path:
    """Write the checkpoint of a partition into another directory, in the format of all releases.

    An epoch whose leader appended nothing is in no batch, and therefore not in the checkpoint.

    Args:
        partition: partition with sound logs.
        directory: empty directory for the checkpoint.

    Raises:
        InvalidArgumentError: the epochs of the batches contradict each other, so that a broker would drop some.
        OSError: the file cannot be written.
    """
    logged = epochs_of([verify_segment(segment) for segment in partition.segments])
    path = directory / EPOCHS
    cache = LeaderEpochCache(path)
    for entry in logged:
        cache.assign(*entry)
    if cache.entries != logged:
        raise InvalidArgumentError("the leader epochs of the batches do not ascend")
    if partition.start_offset:
        cache.truncate_from_start(partition.start_offset)
    return path
