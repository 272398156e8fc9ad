"""Simulation of a start for one log: a release's loader and recovery run over a view of its files."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery import CLEAN_SHUTDOWN, EPOCHS, LOG, RECOVERY_POINTS, START_OFFSETS, parse_partition
from kidx.errors import KidxError
from kidx.log import LogConfig
from kidx.log.epochs import EpochEntry, LeaderEpochs
from kidx.producers.manager import SNAPSHOT_SUFFIX
from kidx.rebuild.lock import lock_owner
from kidx.records import file_batches
from kidx.repair.interval import DEFAULT
from kidx.segment import system_clock
from kidx.segment.files import file_name
from kidx.startup.checkpoints import UnreadableError, offsets_of
from kidx.startup.names import unparsed_name
from kidx.startup.readable import NOTHING, LoggedRecords, Loss, Piece
from kidx.startup.views import ViewedLog, make_view, rewritten_indexes, shown_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kidx.dialect import Dialect
    from kidx.segment import Clock

_LOG_FILE: Final = re.compile(r"\d{20}\.log", re.ASCII)
_MOST: Final = {"index": 256 << 20, "timeindex": 256 << 20, "txnindex": 16 << 20}
"""Maximum size in bytes of an index file in a simulation, by kind; a broker writes much smaller files."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Checkpointed offsets of one log.

    Attributes:
        clean: True if the last stop was clean.
        recovery_point: offset before which all records are on disk.
    """

    clean: bool = True
    start_offset: int = 0
    recovery_point: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """Result of loading a log.

    Attributes:
        start, end: start and end of the log; empty (None) if it cannot be loaded.
        segments: bytes of each ``.log`` by base offset.
        lost: what was readable before, and is not after loading.
        compacted: number of readable records that the segments of an interrupted compaction lack.
        split: names of the logs that loading splits.
        rewritten: names of the index files, and of the checkpoint of epochs, that loading rebuilds.
        is_open: True if a transaction is open.
        fatal: reason why the broker ends; empty if it does not.
        failed: reason why the log directory goes offline; empty if it does not.
        unknown: reason why the result is unknown; empty if it is known.
    """

    start: int | None = None
    end: int | None = None
    segments: Mapping[int, int] = field(default_factory=dict)
    lost: Loss = NOTHING
    compacted: int = 0
    split: tuple[str, ...] = ()
    rewritten: frozenset[str] = frozenset()
    is_open: bool = False
    fatal: str = ""
    failed: str = ""
    unknown: str = ""

    def pieces_in(self, directory: Path) -> list[Piece]:
        """Return the segments after loading, in the directory that was loaded."""
        return [Piece(base, directory / file_name(base, LOG), size) for base, size in self.segments.items()]


def open_view(
    files: Mapping[str, Path],
    view: Path,
    dialect: Dialect,
    checkpoints: Checkpoints,
    config: LogConfig,
    clock: Clock = system_clock,
) -> ViewedLog:
    """Return a log as a start loads it from a view of some files, which are only read.

    Args:
        files: files by their names in the view.
        view: directory of the view, which is created.
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        config: settings of the topic.
        clock: the wall clock.

    Raises:
        KidxError, OSError: the release cannot load the log.
    """
    view.mkdir()
    make_view(files, view)
    return ViewedLog(
        view,
        config,
        log_start_offset=checkpoints.start_offset,
        recovery_point=checkpoints.recovery_point,
        clean=checkpoints.clean,
        clock=clock,
        dialect=dialect,
    )


def load(
    directory: Path,
    dialect: Dialect,
    checkpoints: Checkpoints,
    index_interval_bytes: int = DEFAULT,
    logged: LoggedRecords | None = None,
) -> Loaded:
    """Return the effect of a release's start on a partition's directory, which is only read.

    Args:
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        index_interval_bytes: setting of the topic, which decides the entries that a recovery writes.
        logged: records of the log, if they were read already.
    """
    names = regular_files(directory)
    wrong = unparsed_name(names)
    if wrong is not None:
        return Loaded(fatal=f"the name of {wrong} does not begin with an offset (NumberFormatException)")
    large = next((name for name in names if _is_too_large(directory / name)), None)
    if large is not None:
        return Loaded(unknown=f"{directory / large} is too large to be simulated")
    with scratch_directory() as scratch:
        view = scratch / directory.name
        config = LogConfig(index_interval_bytes=index_interval_bytes)
        files = {name: directory / name for name in (*names, *snapshot_directories(directory))}
        try:
            log = open_view(files, view, dialect, checkpoints, config)
        except (KidxError, OSError) as error:
            text = error.kafka_message if isinstance(error, KidxError) else None
            return _failed(error, text or str(error), view, directory)
        try:
            start, end = log.start_offset, log.end_offset
            logged = logged or LoggedRecords(directory)
            paths = [(segment, view / segment.log.path.name) for segment in log.segments]
            pieces = [Piece(segment.base_offset, _origin(path, directory), segment.size) for segment, path in paths]
            lost, compacted = logged.lost(pieces, checkpoints.start_offset, start, end), 0
            if logged.may_shrink and logged.replaced:
                whole = logged.lost(pieces, checkpoints.start_offset, start, end, whole=True)
                compacted = whole.records - lost.records
            written = [piece.base for piece in pieces if piece.size and piece.path.parent == view]
            split = {max((base for base in logged.sizes if base <= each), default=each) for each in written}
            rewritten = rewritten_indexes(directory, view)
            if EPOCHS not in names and _has_all_epochs(log):
                rewritten |= {EPOCHS}
            sizes = {piece.base: piece.size for piece in pieces}
            names_of_split = tuple(file_name(base, LOG) for base in sorted(split))
            is_open = log.first_unstable_offset is not None
            return Loaded(start, end, sizes, lost, compacted, names_of_split, rewritten, is_open)
        finally:
            log.release_handles()


def _origin(path: Path, directory: Path) -> Path:
    """Return the file that a file of a view represents, with the change that the directory shows it with."""
    shown = shown_by(path)
    if shown is None:
        return path
    return directory / path.name if shown.data else shown.source


def _has_all_epochs(log: ViewedLog) -> bool:
    """Return True if a log knows each leader epoch of its batches, and where it begins."""
    if not log.epochs.entries:
        return False
    logged = LeaderEpochs([])
    for segment in log.segments:
        for batch in segment.batches():
            epoch, latest = batch.partition_leader_epoch, logged.latest_epoch
            if batch.next_offset > log.start_offset and epoch > (-1 if latest is None else latest):
                logged.entries.append(EpochEntry(epoch, max(batch.base_offset, log.start_offset)))
    return log.epochs.entries == logged.entries


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make a directory for views, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="kidx-start-") as scratch:
        yield Path(scratch)


def try_load(
    directory: Path,
    dialect: Dialect,
    checkpoints: Checkpoints,
    index_interval_bytes: int = DEFAULT,
    logged: LoggedRecords | None = None,
) -> Loaded:
    """Return the result of :func:`load`; after an unexpected error, the result is unknown."""
    try:
        return load(directory, dialect, checkpoints, index_interval_bytes, logged)
    except Exception as error:  # noqa: BLE001 -- input is hostile, and an unexpected error predicts nothing
        return Loaded(unknown=f"the effect of a start is unknown: {type(error).__name__}: {error}")


def _failed(error: Exception, text: str, view: Path, directory: Path) -> Loaded:
    """Return the effect of an exception: an I/O error takes the log directory offline, others end the broker."""
    message = text.replace(str(view), str(directory))
    return Loaded(fatal=message) if isinstance(error, KidxError) else Loaded(failed=message)


def _is_too_large(path: Path) -> bool:
    most = _MOST.get(path.name.partition(".")[2].partition(".")[0])
    try:
        return most is not None and path.stat().st_size > most
    except OSError:
        return False


def regular_files(directory: Path) -> list[str]:
    """Return the names of the regular files in a directory, in order.

    Raises:
        OSError: the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_file())


def snapshot_directories(directory: Path) -> list[str]:
    """Return the names of the directories in a partition's directory that are named like a producer snapshot."""
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.name.endswith(SNAPSHOT_SUFFIX) and entry.is_dir())


def foreign_log(directory: Path) -> Path | None:
    """Return the first ``.log`` of a partition whose first offset is below its base offset; None without one."""
    for name in regular_files(directory):
        if _LOG_FILE.fullmatch(name):
            with contextlib.suppress(KidxError, OSError):
                first = next(iter(file_batches(directory / name)), None)
                if first is not None and first.base_offset < int(name[: -len(LOG)]):
                    return directory / name
    return None


class CheckpointedOffsets:
    """Offsets of partitions in the checkpoints of a log directory; an unreadable checkpoint counts as empty.

    Args:
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
