"""Contents of a log directory: its checkpoints, and its partitions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kidx.discovery.model import Leftover, Partition, Problem, Segment
from kidx.discovery.names import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    EPOCHS,
    HIGH_WATERMARKS,
    LOG,
    METADATA_TOPIC,
    RECOVERY_POINTS,
    START_OFFSETS,
    SWAP,
    leftover_mark,
    parse_partition,
    parse_segment_file,
    snapshot_start,
)
from kidx.files import read_text
from kidx.java_values import INT_MAX
from kidx.printable import counted, shortened

if TYPE_CHECKING:
    from kidx.discovery.model import Found

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """Checkpoints of a log directory, each by topic and partition.

    Attributes:
        clean: True if the broker's last shutdown was clean.
        cleaned: offsets up to which the logs have been compacted.
    """

    clean: bool = False
    start_offsets: Offsets = field(default_factory=dict)
    recovery_points: Offsets = field(default_factory=dict)
    cleaned: Offsets = field(default_factory=dict)
    high_watermarks: Offsets = field(default_factory=dict)


def read_log_directory(directory: Path, found: Found) -> LogDirectory:
    """Return the checkpoints of a log directory; an unreadable checkpoint is added to the problems of ``found``."""
    offsets: list[Offsets] = []
    for name, clause in (
        (START_OFFSETS, "LG-12"),
        (RECOVERY_POINTS, "LG-16"),
        (CLEANED_OFFSETS, ""),
        (HIGH_WATERMARKS, ""),
    ):
        path = directory / name
        try:
            offsets.append(read_offset_checkpoint(path))
        except FileNotFoundError:
            offsets.append({})
        except OSError as error:
            offsets.append({})
            if clause:  # the other checkpoints only explain gaps and lost records
                reason = getattr(error, "strerror", None) or str(error).removeprefix(f"{path} ")
                problem = Problem(path, reason, clause)
                found.problems += [problem] if problem not in found.problems else []
    return LogDirectory((directory / CLEAN_SHUTDOWN).exists(), *offsets)


def partition_in(
    directory: Path, names: Iterable[str], log_directory: LogDirectory, wanted: set[int] | None = None
) -> Partition:
    """Return the partition of a directory.

    Args:
        names: names of the files in it.
        log_directory: checkpoints of its log directory.
        wanted: base offsets of the requested segments; None for all.
    """
    topic, number, state = parse_partition(directory.name) or (None, None, "")
    key = (topic or "", number or 0)
    names = sorted(names)
    present: dict[int, dict[str, Path]] = {}
    for name in names:
        if (parsed := parse_segment_file(name)) is not None:
            base, suffix = parsed
            present.setdefault(base, {})[suffix] = directory / name
    bases = sorted(base for base, files in present.items() if LOG in files)
    following: dict[int, int | None] = {**dict(itertools.pairwise(bases)), **dict.fromkeys(bases[-1:])}
    segments = tuple(
        Segment(
            present[base][LOG],
            base,
            topic,
            number,
            frozenset(present[base]),
            is_last=following[base] is None,
            next_base_offset=following[base],
            clean=log_directory.clean and topic != METADATA_TOPIC,
        )
        for base in bases
        if wanted is None or base in wanted
    )
    orphans = tuple(
        path
        for base, files in sorted(present.items())
        if LOG not in files and (wanted is None or base in wanted)
        for path in files.values()
    )
    leftovers = tuple(Leftover(directory / name, mark) for name in names if (mark := leftover_mark(name)) is not None)
    start = log_directory.start_offsets.get(key)
    if topic == METADATA_TOPIC and (of_snapshots := snapshot_start(names)) is not None:
        start = max(start or 0, of_snapshots)
    return Partition(
        directory,
        topic,
        number,
        state,
        segments,
        orphans,
        leftovers if wanted is None else (),
        directory / EPOCHS if EPOCHS in names and wanted is None else None,
        start,
        log_directory.recovery_points.get(key),
        log_directory.cleaned.get(key),
        log_directory.high_watermarks.get(key),
        complete=wanted is None,
        swaps=tuple(swaps_in(directory, names, topic, number)) if wanted is None else (),
    )


def swaps_in(directory: Path, names: Iterable[str], topic: str | None, number: int | None) -> Iterator[Segment]:
    """Yield the segments that the broker swaps in when it starts; their file names end with ``.swap``.

    Args:
        names: names of the files in it.
        topic: name of the topic, or None.
        number: number of the partition, or None.
    """
    present: dict[int, set[str]] = {}
    for name in names:
        if name.endswith(SWAP) and (parsed := parse_segment_file(name.removesuffix(SWAP))) is not None:
            present.setdefault(parsed[0], set()).add(parsed[1])
    for base, suffixes in sorted(present.items()):
        log = directory / f"{base:020d}{LOG}{SWAP}"
        if LOG in suffixes:
            yield Segment(log, base, topic, number, frozenset(suffixes), is_last=False, mark=SWAP)


_OFFSET_MAX: Final = 2**63 - 1


def read_offset_checkpoint(path: str | os.PathLike[str]) -> dict[tuple[str, int], int]:
    """Return the offsets of a checkpoint file of a log directory, by topic and partition (``OffsetCheckpointFile``).

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: the file cannot be read, or is not a checkpoint.
    """
    lines = read_text(path).splitlines()
    if not lines:
        return {}  # a broker creates the file empty, a minute before it writes the first offsets
    try:
        version, count = int(lines[0]), int(lines[1])
    except (IndexError, ValueError):
        version, count = -1, -1
    if version != 0 or count != len(lines) - 2:
        raise OSError(
            f"{path} is not a checkpoint of offsets of version 0: it begins with {shortened(lines[0])} and has "
            f"{counted(max(len(lines) - 2, 0), 'entry')}"
        )
    return dict(_offset(line, number, path) for number, line in enumerate(lines[2:], 3))


def _offset(line: str, number: int, path: str | os.PathLike[str]) -> tuple[tuple[str, int], int]:
    try:
        topic, partition, offset = line.rsplit(None, 2)
        entry = (topic, int(partition)), int(offset)
    except ValueError:
        entry = ("", -1), 0
    if not (0 <= entry[0][1] <= INT_MAX and abs(entry[1]) <= _OFFSET_MAX):
        raise OSError(
            f"{os.fspath(path)} is not a checkpoint of offsets: line {number} is not a topic, partition and offset: "
            f"{shortened(line)}"
        )
    return entry
