"""What a start makes of one log: the loader and the recovery of a release run over a view of its files."""

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
from kidx.scan.blocks import LogBlocks
from kidx.segment.errors import SegmentOffsetOverflowError
from kidx.startup.names import unparsed_name
from kidx.startup.views import ViewedLog, make_view, rewritten_indexes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kidx.dialect import Dialect


_LOG_FILE: Final = re.compile(r"\d{20}\.log", re.ASCII)


_MOST: Final = {"index": 256 << 20, "timeindex": 256 << 20, "txnindex": 16 << 20}
"""Bytes of an index file that is simulated: many times what a broker writes."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a log directory says of one log.

    Attributes:
        clean: the last stop was clean.
        start_offset: of the log.
        recovery_point: what lies before it is on disk.
    """

    clean: bool = True
    start_offset: int = 0
    recovery_point: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading a log.

    Attributes:
        start, end: of the log; None if it cannot be loaded.
        segments: bytes of each ``.log`` by base offset.
        rewritten: the index files that loading makes anew, by name.
        fatal: why the broker ends; empty if it does not.
        failed: why the log directory goes offline; empty if it does not.
        unknown: why it cannot be said; empty if it can.
    """

    start: int | None = None
    end: int | None = None
    segments: Mapping[int, int] = field(default_factory=dict)
    rewritten: frozenset[str] = frozenset()
    fatal: str = ""
    failed: str = ""
    unknown: str = ""


def load(directory: Path, dialect: Dialect, checkpoints: Checkpoints, index_interval_bytes: int = 4096) -> Loaded:
    """Return what the start of a release makes of a partition's directory, which is only read.

    Args:
        directory: of the partition.
        dialect: of the release.
        checkpoints: what the log directory says of it.
        index_interval_bytes: of the topic; decides which entries a recovery writes.
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


def _failed(error: Exception, text: str, view: Path, directory: Path) -> Loaded:
    """What an exception of loading does: one of input and output costs the log directory, any other the broker."""
    said = text.replace(str(view), str(directory))
    if isinstance(error, SegmentOffsetOverflowError):
        return Loaded(unknown=f"recovery would split a segment: {said}")
    return Loaded(fatal=said) if isinstance(error, KidxError) else Loaded(failed=said)


def _is_too_large(path: Path) -> bool:
    most = _MOST.get(path.name.partition(".")[2].partition(".")[0])
    try:
        return most is not None and path.stat().st_size > most
    except OSError:
        return False


def regular_files(directory: Path) -> list[str]:
    """Return the names of what Java calls a file in a directory.

    Raises:
        OSError: the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_file())


def present(directory: Path) -> tuple[Mapping[int, int], int]:
    """Return the bytes of each ``.log`` by base offset, and where the log ends by its last segment's batches."""
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


def readable_records(log: Path, position: int = 0) -> int:
    """Return the number of records in the batches of a ``.log`` that have a right checksum, from a position on.

    A batch without a number of records, of an old format, counts as one for each offset.
    """
    found = 0
    with contextlib.suppress(OSError), LogBlocks(log) as blocks:
        for rows in blocks:
            whole = rows[rows["crc_ok"] & (rows["position"] >= position)]
            offsets = np.maximum(whole["last_offset"] - whole["base_offset"] + 1, 0)
            found += int(np.where(whole["count"] >= 0, whole["count"], offsets).sum())
    return found
