"""Simulation of a start for one log: a release's loader and recovery run over a view of its files."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kidx.discovery import LOG
from kidx.errors import KidxError
from kidx.log import LogConfig
from kidx.records import file_batches
from kidx.repair.interval import DEFAULT
from kidx.scan.blocks import LogBlocks
from kidx.scan.hidden import hidden_batches
from kidx.segment.errors import SegmentOffsetOverflowError
from kidx.startup.names import unparsed_name
from kidx.startup.views import ViewedLog, make_view, rewritten_indexes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kidx.dialect import Dialect


_LOG_FILE: Final = re.compile(r"\d{20}\.log", re.ASCII)


_MOST: Final = {"index": 256 << 20, "timeindex": 256 << 20, "txnindex": 16 << 20}
"""Maximum size in bytes of an index file in a simulation, by kind; a broker writes much smaller files."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Checkpointed offsets of one log.

    Attributes:
        clean: True if the last stop was clean.
        start_offset: start of the log.
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
        rewritten: names of the index files that loading rebuilds.
        fatal: reason why the broker ends; empty if it does not.
        failed: reason why the log directory goes offline; empty if it does not.
        unknown: reason why the result is unknown; empty if it is known.
    """

    start: int | None = None
    end: int | None = None
    segments: Mapping[int, int] = field(default_factory=dict)
    rewritten: frozenset[str] = frozenset()
    fatal: str = ""
    failed: str = ""
    unknown: str = ""


def load(directory: Path, dialect: Dialect, checkpoints: Checkpoints, index_interval_bytes: int = DEFAULT) -> Loaded:
    """Return the effect of a release's start on a partition's directory, which is only read.

    Args:
        directory: directory of the partition.
        dialect: rules of the release.
        checkpoints: checkpointed offsets of the log.
        index_interval_bytes: setting of the topic, which decides the entries that a recovery writes.
    """
    names = regular_files(directory)
    wrong = unparsed_name(names)
    if wrong is not None:
        return Loaded(fatal=f"the name of {wrong} does not begin with an offset (NumberFormatException)")
    large = next((name for name in names if _is_too_large(directory / name)), None)
    if large is not None:
        return Loaded(unknown=f"{directory / large} is too large to be simulated")
    with tempfile.TemporaryDirectory(prefix="kidx-start-") as scratch:
        view = Path(scratch) / directory.name
        view.mkdir()
        try:
            make_view(directory, names, view)
            log = ViewedLog(
                view,
                LogConfig(index_interval_bytes=index_interval_bytes),
                log_start_offset=checkpoints.start_offset,
                recovery_point=checkpoints.recovery_point,
                clean=checkpoints.clean,
                dialect=dialect,
            )
        except (KidxError, OSError) as error:
            return _failed(
                error, str(error.kafka_message) if isinstance(error, KidxError) else str(error), view, directory
            )
        segments = {segment.base_offset: segment.size for segment in log.segments}
        log.release_handles()
        return Loaded(log.start_offset, log.end_offset, segments, rewritten_indexes(directory, view))


def try_load(
    directory: Path, dialect: Dialect, checkpoints: Checkpoints, index_interval_bytes: int = DEFAULT
) -> Loaded:
    """Return the result of :func:`load`; after an unexpected error, the result is unknown."""
    try:
        return load(directory, dialect, checkpoints, index_interval_bytes)
    except Exception as error:  # noqa: BLE001 -- input is hostile, and an unexpected error predicts nothing
        return Loaded(unknown=f"the effect of a start is unknown: {type(error).__name__}: {error}")


def _failed(error: Exception, text: str, view: Path, directory: Path) -> Loaded:
    """Return the effect of an exception: an I/O error takes the log directory offline, others end the broker."""
    message = text.replace(str(view), str(directory))
    if isinstance(error, SegmentOffsetOverflowError):
        return Loaded(unknown=f"recovery would split a segment: {message}")
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


def log_sizes_and_end(directory: Path) -> tuple[Mapping[int, int], int]:
    """Return the size of each ``.log`` in bytes, by base offset, and the end offset after the last readable batch."""
    sizes = {
        int(name[: -len(LOG)]): (directory / name).stat().st_size
        for name in regular_files(directory)
        if _LOG_FILE.fullmatch(name)
    }
    if not sizes:
        return sizes, 0
    end = last = max(sizes)
    with contextlib.suppress(KidxError, OSError):
        for batch in file_batches(directory / f"{last:020d}{LOG}"):
            end = batch.next_offset
    return sizes, end


def foreign_log(directory: Path) -> Path | None:
    """Return the first ``.log`` of a partition whose first offset is below its base offset; None without one."""
    for name in regular_files(directory):
        if _LOG_FILE.fullmatch(name):
            with contextlib.suppress(KidxError, OSError):
                first = next(iter(file_batches(directory / name)), None)
                if first is not None and first.base_offset < int(name[: -len(LOG)]):
                    return directory / name
    return None


def readable_records(log: Path, position: int = 0) -> int:
    """Return the number of records in the batches of a ``.log`` that have a right checksum, from a position on.

    Whole batches after bytes that are none count, too. A batch without a number of records, of an old format, counts as
    one for each offset.
    """
    found = 0
    with contextlib.suppress(OSError), LogBlocks(log) as blocks:
        for rows in blocks:
            whole = rows[rows["crc_ok"] & (rows["position"] >= position)]
            offsets = np.maximum(whole["last_offset"] - whole["base_offset"] + 1, 0)
            found += int(np.where(whole["count"] >= 0, whole["count"], offsets).sum())
        if blocks.tail.kind in {"partial", "corrupt"}:
            found += sum(each.records for each in hidden_batches(log, blocks.tail.valid_bytes))
    return found
