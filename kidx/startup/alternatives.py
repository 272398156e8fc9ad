"""Ways to keep records of a log that a start cannot load or would cut. Each is tried on a view before it is named."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kidx.discovery import LOG
from kidx.errors import KidxError
from kidx.java_numbers import LONG_MAX
from kidx.printable import counted
from kidx.repair import FROM_A_REPLICA
from kidx.scan.blocks import LogBlocks
from kidx.startup.changes import (
    Change,
    cut,
    forget_clean_stop,
    forget_log_start,
    make_directory_view,
    move_out,
    rename,
    set_recovery_point,
    write_number,
)
from kidx.startup.checkpointed import CheckpointedOffsets
from kidx.startup.readable import LoggedRecords, Piece
from kidx.startup.simulation import foreign_log, scratch_directory, try_load

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.startup.simulation import Loaded

_TRIED: Final = 16
"""Number of changes that are tried: each loads the log."""
_BATCHES: Final = 1 << 20
"""Number of batches of a log that are searched for a wrong offset."""


class Alternative(NamedTuple):
    """Change of a partition, with its simulated result.

    Attributes:
        change: the change.
        kept: number of records that a consumer can read after the start.
        lost: number of records that a consumer can read now, but not then.
    """

    change: Change
    kept: int
    lost: int

    def __str__(self) -> str:
        records = counted(self.lost, "readable record")
        cost = f"{records} would be lost" if self.lost else "no readable record is lost"
        command = f"{self.change.command}  # {cost}; then verify again"
        return f"{FROM_A_REPLICA}; where none does: {command}" if self.lost else command


def best_alternative(
    path: Path, dialect: Dialect, index_interval_bytes: int, loaded: Loaded, *, is_recovery_harmless: bool
) -> Alternative | None:
    """Return the change after which a start keeps most records of a log; None if none keeps more than a start now.

    Args:
        path: directory of the partition.
        dialect: rules of the release.
        index_interval_bytes: setting of the topic.
        loaded: result of a start without a change.
        is_recovery_harmless: True if the other logs of the log directory can be recovered without a loss.
    """
    logged = LoggedRecords(path)
    now = logged.records - loaded.lost.records
    tried = []
    for change in islice(_changes(path, logged, is_recovery_harmless=is_recovery_harmless), _TRIED):
        after = _after(change, path, dialect, index_interval_bytes, logged)
        if after is not None and (loaded.start is None or after.kept > now):
            tried.append(after)
    return min(tried, key=lambda each: (each.lost, -each.kept), default=None)  # of several, the first changes least


def _changes(path: Path, logged: LoggedRecords, *, is_recovery_harmless: bool) -> Iterator[Change]:
    """Yield the changes that may help, those first that change least."""
    sizes = logged.sizes
    is_clean = CheckpointedOffsets(path.parent).clean
    if is_clean and is_recovery_harmless:
        yield forget_clean_stop(path)
    if not is_clean:
        yield from set_recovery_point(path, logged.end)
    yield from forget_log_start(path)
    with contextlib.suppress(OSError):
        yield from _misnumbered(path, sizes)
    if (foreign := foreign_log(path)) is not None:
        yield move_out(foreign)
    for piece in logged.split:
        if piece.base not in sizes:
            yield rename(piece.path, f"{piece.base:020d}{LOG}")
    for base in sizes:
        log = path / f"{base:020d}{LOG}"
        with contextlib.suppress(OSError):
            if (position := _trouble(log, base)) is not None:
                yield cut(log, position)


def _after(change: Change, path: Path, dialect: Dialect, interval: int, before: LoggedRecords) -> Alternative | None:
    """Return a change with the result of a start after it; None if the log cannot be loaded then."""
    with scratch_directory() as scratch:
        try:
            view = make_directory_view(path, scratch)
            change.apply(view)
        except (KidxError, OSError):
            return None
        checkpoints = CheckpointedOffsets(view.parent).of(view)
        logged = LoggedRecords(view)
        loaded = try_load(view, dialect, checkpoints, interval, logged)
        if loaded.start is None or loaded.end is None:
            return None
        pieces = [Piece(base, view / f"{base:020d}{LOG}", size) for base, size in loaded.segments.items()]
        lost = before.lost(pieces, checkpoints.start_offset, loaded.start, loaded.end)
        return Alternative(change, logged.records - loaded.lost.records, lost.records)


def _trouble(log: Path, base: int) -> int | None:
    """Return the position of the first batch that a recovery cannot pass; None if it passes all."""
    with LogBlocks(log) as blocks:
        for rows in blocks:
            reached = np.maximum.accumulate([base, *(rows["last_offset"] + 1)])
            wrong = np.flatnonzero(~rows["crc_ok"] | (rows["base_offset"] < reached[:-1]))
            if wrong.size:
                return int(rows["position"][wrong[0]])
            base = int(reached[-1])
    return blocks.tail.valid_bytes if blocks.tail.kind != "whole" else None


def _misnumbered(path: Path, sizes: Mapping[int, int]) -> Iterator[Change]:
    """Yield the change of a batch's base offset, if its neighbours leave only one that is right.

    No checksum covers a base offset. One wrong base offset makes a recovery reject the batch, or all later ones.
    """
    batches = []
    for base in sizes:
        log = path / f"{base:020d}{LOG}"
        with LogBlocks(log) as blocks:
            for rows in blocks:
                each = rows[rows["crc_ok"]]
                columns = (each[name].tolist() for name in ("position", "base_offset", "last_offset"))
                batches += [(log, base, *values) for values in zip(*columns, strict=True)]
        if len(batches) > _BATCHES:
            return
    following = next(iter(sizes), 0)
    for (log, base, position, first, last), (_, next_base, next_position, next_first, _) in pairwise(batches):
        right = max(following, base) if position == 0 else following
        after = next_base if next_position == 0 else next_first
        if first != right <= LONG_MAX and right + last - first + 1 == after:
            yield write_number(log, position, right)
            return
        following = last + 1
