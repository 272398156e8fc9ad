"""From paths to segments: partitions, their files, and what lies around them (``LogManager``, ``LocalLog``).

A path may be a segment file, a partition directory, a log directory (``log.dirs``) or a directory of several of them.
Nothing is opened but checkpoints; files that come and go while a broker works are no error.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kidx.files import read_text
from kidx.java_numbers import INT_MAX
from kidx.printable import shortened

LOG: Final = ".log"
INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")
SEGMENT_SUFFIXES: Final = (LOG, *INDEX_SUFFIXES)

EPOCHS: Final = "leader-epoch-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
META_PROPERTIES: Final = "meta.properties"
OFFSET_CHECKPOINTS: Final = (START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS)

_SEGMENT_FILE: Final = re.compile(r"(?P<base>\d{1,20})(?P<suffix>\.(?:log|index|timeindex|txnindex))")
_LEFTOVER: Final = re.compile(
    r"\d{1,20}\.(?:log|index|timeindex|txnindex|snapshot)(?P<mark>\.(?:deleted|cleaned|swap))"
)
_PARTITION: Final = re.compile(
    r"(?P<topic>.+?)-(?P<partition>\d+)(?:\.(?P<id>[0-9a-zA-Z]{8,36})-(?P<state>delete|future|stray))?", re.DOTALL
)
_OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of one segment, whether they exist or not; picklable.

    Attributes:
        log: path of the ``.log`` file.
        base_offset: that it is named after.
        topic: None outside a partition directory.
        partition: likewise.
        existing: which of the four suffixes were there.
        is_last: no later segment follows: the broker may be writing to it.
        next_base_offset: base offset of the segment behind it; None of the last.
        clean: the log directory says that its broker shut down cleanly, so that nothing is being written.
    """

    log: Path
    base_offset: int
    topic: str | None = None
    partition: int | None = None
    existing: frozenset[str] = frozenset()
    is_last: bool = True
    next_base_offset: int | None = None
    clean: bool = False

    def path(self, suffix: str) -> Path:
        """One of its files."""
        return self.log.with_suffix(suffix)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that a broker renames before it deletes or replaces: ``mark`` is .deleted, .cleaned or .swap."""

    path: Path
    mark: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory; picklable.

    Attributes:
        directory: its path.
        topic: by the directory's name; None if it is not named ``topic-partition``.
        partition: likewise.
        state: ``delete``, ``future`` or ``stray`` if the directory is marked so; empty otherwise.
        segments: with a ``.log``, by base offset.
        orphans: index files without a ``.log``.
        leftovers: of deletion and compaction.
        epochs: the leader-epoch checkpoint; None if there is none.
        start_offset: from the log directory's checkpoint; None if it has no entry.
        recovery_point: likewise.
        complete: all segments were asked for, not some files of them.
    """

    directory: Path
    topic: str | None = None
    partition: int | None = None
    state: str = ""
    segments: tuple[Segment, ...] = ()
    orphans: tuple[Path, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    epochs: Path | None = None
    start_offset: int | None = None
    recovery_point: int | None = None
    complete: bool = True

    @property
    def name(self) -> str:
        """``topic-partition``, or the directory's name."""
        return self.directory.name if self.topic is None else f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class Problem:
    """A path that could not be read, and why; ``clause``: what it is needed for."""

    path: Path
    message: str
    clause: str = "SEG-35"


@dataclass(slots=True)
class Found:
    """What lies under some paths.

    Attributes:
        partitions: by directory.
        problems: what could not be read; the rest was.
    """

    partitions: list[Partition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def segments(self) -> Iterator[Segment]:
        """All segments of all partitions."""
        return (segment for partition in self.partitions for segment in partition.segments)


@dataclass(frozen=True, slots=True)
class _LogDirectory:
    """What a log directory says about its partitions."""

    clean: bool = False
    start_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    recovery_points: dict[tuple[str, int], int] = field(default_factory=dict)


def parse_partition(name: str) -> tuple[str, int, str] | None:
    """Topic, partition and state of a directory's name; topics may hold dashes, and the last number counts.

    None if it is no such name. The state is ``delete``, ``future`` or ``stray``, or empty.
    """
    match = _PARTITION.fullmatch(name)
    if match is None:
        return None
    topic, number, state = match["topic"], match["partition"], match["state"] or ""
    if not state:  # without a mark the topic is everything before the last dash
        topic, _, number = name.rpartition("-")
    return (topic, int(number), state) if int(number) <= INT_MAX else None


def read_offset_checkpoint(path: str | os.PathLike[str]) -> dict[tuple[str, int], int]:
    """The offsets of a checkpoint file of a log directory, by topic and partition (``OffsetCheckpointFile``).

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or is no such file.
    """
    lines = read_text(path).splitlines()
    if not lines:
        return {}  # as a broker makes it, a minute before it writes the first offsets
    try:
        version, count = int(lines[0]), int(lines[1])
    except (IndexError, ValueError):
        version, count = -1, -1
    if version != 0 or count != len(lines) - 2:
        raise OSError(
            f"{path} is not a checkpoint of offsets of version 0: it begins with {shortened(lines[0])} and has "
            f"{len(lines) - 2} entries"
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


def discover(paths: Iterable[str | os.PathLike[str]]) -> Found:
    """What lies under the paths; never raises for what is not there or cannot be read, but says so in ``problems``.

    Links are followed, and nothing is found twice. A directory that holds no segments is searched two levels deep:
    a log directory, or a directory of several disks.
    """
    found = Found()
    seen: set[Path] = set()
    files: dict[Path, list[Path]] = {}
    for each in paths:
        path = Path(each)
        try:
            if path.is_dir():
                before = len(found.partitions)
                _look_into(path, found, seen, depth=2)
                if len(found.partitions) == before and not any(p.path == path for p in found.problems):
                    _explain(path, found, seen)
            elif _SEGMENT_FILE.fullmatch(path.name) and (path.exists() or path.is_symlink()):
                files.setdefault(path.parent, []).append(path)
            else:
                found.problems.append(Problem(path, _why_not(path)))
        except OSError as error:
            found.problems.append(Problem(path, error.strerror or str(error)))
    for directory, wanted in files.items():
        if directory.resolve() not in seen:
            _add_files(directory, wanted, found)
    found.partitions.sort(key=lambda partition: str(partition.directory))
    return found


def _why_not(path: Path) -> str:
    if not path.exists():
        return "No such file or directory"
    return "is no segment file: its name is not an offset with .log, .index, .timeindex or .txnindex"


def _explain(path: Path, found: Found, seen: set[Path]) -> None:
    """A directory without any partition: an empty log directory is fine, anything else is not one."""
    names = _names(path, found)
    if path.resolve() in seen or names is None:
        return
    if not {META_PROPERTIES, CLEAN_SHUTDOWN, *OFFSET_CHECKPOINTS}.intersection(names):
        found.problems.append(Problem(path, "is no log directory: no partition and no segment in it"))


def _names(directory: Path, found: Found) -> list[str] | None:
    try:
        return sorted(entry.name for entry in os.scandir(directory))
    except OSError as error:
        found.problems.append(Problem(directory, error.strerror or str(error)))
        return None


def _look_into(directory: Path, found: Found, seen: set[Path], depth: int) -> None:
    """Adds a partition directory, or looks for some below a log directory."""
    resolved = directory.resolve()
    if resolved in seen:
        return
    names = _names(directory, found)
    if names is None:
        return
    is_partition = any(_SEGMENT_FILE.fullmatch(name) or _LEFTOVER.fullmatch(name) for name in names) or EPOCHS in names
    if is_partition:
        seen.add(resolved)
        found.partitions.append(_partition(directory, names, _log_directory(directory.parent, found)))
        return
    about = _log_directory(directory, found) if depth else _LogDirectory()
    for name in names if depth else ():
        below = directory / name
        try:
            if not below.is_dir() or below.resolve() in seen:
                continue
        except OSError as error:
            found.problems.append(Problem(below, error.strerror or str(error)))
            continue
        inner = _names(below, found)
        if inner is None:
            continue
        if any(_SEGMENT_FILE.fullmatch(each) or _LEFTOVER.fullmatch(each) for each in inner) or EPOCHS in inner:
            seen.add(below.resolve())
            found.partitions.append(_partition(below, inner, about))
        else:
            _look_into(below, found, seen, depth - 1)


def _log_directory(directory: Path, found: Found) -> _LogDirectory:
    """What the checkpoints of a log directory say; unreadable ones are problems."""
    offsets: list[dict[tuple[str, int], int]] = []
    for name, clause in ((START_OFFSETS, "LG-12"), (RECOVERY_POINTS, "LG-16")):
        path = directory / name
        try:
            offsets.append(read_offset_checkpoint(path))
        except FileNotFoundError:
            offsets.append({})
        except OSError as error:
            offsets.append({})
            problem = Problem(path, getattr(error, "strerror", None) or str(error), clause)
            if problem not in found.problems:
                found.problems.append(problem)
    return _LogDirectory((directory / CLEAN_SHUTDOWN).exists(), *offsets)


def _partition(directory: Path, names: list[str], about: _LogDirectory, wanted: set[int] | None = None) -> Partition:
    topic, number, state = parse_partition(directory.name) or (None, None, "")
    key = (topic or "", number or 0)
    present: dict[int, dict[str, Path]] = {}
    leftovers = []
    for name in names:
        match = _SEGMENT_FILE.fullmatch(name)
        if match is not None and int(match["base"]) <= _OFFSET_MAX:
            present.setdefault(int(match["base"]), {})[match["suffix"]] = directory / name
        elif (mark := _LEFTOVER.fullmatch(name)) is not None:
            leftovers.append(Leftover(directory / name, mark["mark"]))
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
            clean=about.clean,
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
    return Partition(
        directory,
        topic,
        number,
        state,
        segments,
        orphans,
        tuple(leftovers) if wanted is None else (),
        directory / EPOCHS if EPOCHS in names and wanted is None else None,
        about.start_offsets.get(key),
        about.recovery_points.get(key),
        complete=wanted is None,
    )


def _add_files(directory: Path, wanted: list[Path], found: Found) -> None:
    names = _names(directory, found)
    if names is None:
        return
    bases = {int(path.name.partition(".")[0]) for path in wanted}
    # The file asked for may be in a directory of any name.
    found.partitions.append(_partition(directory, names, _log_directory(directory.parent, found), bases))
