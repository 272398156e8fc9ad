"""Search for partitions below paths, with a report of the paths that are skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from kidx.discovery.log_directory import LogDirectory, partition_in, read_log_directory
from kidx.discovery.model import Found, Problem
from kidx.discovery.names import (
    META_PROPERTIES,
    are_of_a_log_directory,
    are_of_a_partition,
    parse_partition,
    parse_segment_file,
)
from kidx.printable import counted

DEPTH: Final = 6
"""Number of levels below a path that are searched: disks, directories of brokers, ``log.dirs``, partitions."""


class _Listing(NamedTuple):
    """Contents of a directory; a link counts as its target."""

    files: list[str]
    directories: list[str]


def discover(paths: Iterable[str | os.PathLike[str]], wanted: Callable[[str], bool] | None = None) -> Found:
    """Return the contents of the paths; a path that cannot be read is a problem in the result, not an exception.

    Links are followed, and no partition is found twice. Directories other than partitions are searched :data:`DEPTH`
    levels deep. Skipped paths are in ``left_out``.

    Args:
        wanted: a predicate of the names directly below the paths, to search a part of a log directory: that it has no
            partition is then no problem. All by default.
    """
    return _Walk(wanted).along(paths)


NO_LOG_DIRECTORY: Final = "is not a log directory: it contains no partition and no segment"


class _Walk:
    """State of a search: its results, and the directories that it has visited."""

    def __init__(self, wanted: Callable[[str], bool] | None) -> None:
        self.found = Found()
        self._wanted = wanted
        self._seen: set[Path] = set()
        self._log_directories: dict[Path, LogDirectory] = {}
        self._empty: list[Path] = []  # given directories

    def along(self, paths: Iterable[str | os.PathLike[str]]) -> Found:
        """Return the contents of the paths."""
        found = self.found
        files: dict[Path, list[Path]] = {}
        for each in paths:
            path = Path(each)
            try:
                if path.is_dir():
                    self._search(path)
                elif parse_segment_file(path.name) and (path.exists() or path.is_symlink()):
                    files.setdefault(path.parent, []).append(path)
                else:
                    found.problems.append(_wrong_path(path))
            except OSError as error:
                found.problems.append(_problem(path, error))
        for directory, wanted in files.items():
            if directory.resolve() not in self._seen:
                self._add_files(directory, wanted)
        for path in self._empty:
            if found.partitions:
                found.left_out.append(Problem(path, "is empty: a new log directory, or a disk that is not mounted"))
            else:
                found.problems.append(Problem(path, NO_LOG_DIRECTORY))
        found.partitions.sort(key=lambda partition: str(partition.directory))
        return found

    def _search(self, path: Path) -> None:
        known = path.resolve() in self._seen
        before = len(self.found.partitions), len(self.found.problems), len(self.found.left_out)
        listing = self._list(path, is_given=True)
        if listing is None:
            return
        if self._wanted is None and not listing.files and set(listing.directories) <= {"lost+found"}:
            self._empty.append(path)
            return
        self._look(path, listing, DEPTH)
        found_any = (len(self.found.partitions), len(self.found.problems)) != before[:2]
        if known or found_any or self._wanted is not None:
            return
        if are_of_a_log_directory(listing.files, ()):
            self.found.left_out.append(Problem(path, "is a log directory without any partition"))
        else:
            message = NO_LOG_DIRECTORY
            if more := self.found.left_out[before[2] :]:
                message += f"; skipped in it: {counted(len(more), 'path')}, such as {more[0].path}, {more[0].message}"
            self.found.problems.append(Problem(path, message))

    def _list(self, directory: Path, *, is_given: bool = False) -> _Listing | None:
        """Return the contents of a directory, or None if it cannot be read.

        An unreadable directory is a problem if it is a given path or is named like a partition. Any other is skipped.
        """
        listing = _Listing([], [])
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    listing[_is_directory(entry)].append(entry.name)
        except FileNotFoundError:
            if not is_given:
                return None  # a topic was deleted in the meantime
            self.found.problems.append(Problem(directory, "No such file or directory"))
            return None
        except OSError as error:
            problem = _problem(directory, error)
            if is_given or parse_partition(directory.name):
                self.found.problems.append(problem)
            else:
                problem.message += "; it is not named like a partition"
                self.found.left_out.append(problem)
            return None
        listing.files.sort()
        listing.directories.sort()
        return listing

    def _look(self, directory: Path, listing: _Listing, depth: int) -> None:
        """Add a partition directory, or search for partitions in any other directory."""
        try:
            resolved = directory.resolve()
        except (OSError, RuntimeError) as error:
            self.found.problems.append(Problem(directory, str(error)))
            return
        if resolved in self._seen:
            return
        self._seen.add(resolved)
        holds_segments = are_of_a_partition(listing.files)
        if holds_segments and not are_of_a_log_directory(listing.files, listing.directories):
            self._add(directory, listing.files)
            self._report_inner_partitions(directory, listing.directories)
            return
        if holds_segments and META_PROPERTIES not in listing.files and parse_partition(directory.name):
            self._add(directory, listing.files)  # a partition that may contain a copy of another partition
        elif holds_segments:
            stray = [name for name in listing.files if are_of_a_partition([name])]
            message = f"{counted(len(stray), 'file')} of segments outside a partition directory, such as {stray[0]}"
            self.found.left_out.append(Problem(directory / stray[0], f"{message}; a broker ignores them"))
        elif parse_partition(directory.name) and not listing.directories and depth < DEPTH:
            message = "is named like a partition but has no segment: a broker creates an empty log in it"
            self.found.left_out.append(Problem(directory, message))
        for name in listing.directories:
            if depth < DEPTH or self._wanted is None or self._wanted(name):
                self._descend(directory / name, depth - 1)

    def _descend(self, directory: Path, depth: int) -> None:
        if depth < 0:
            message = f"is more than {DEPTH} levels below the given path; give its own path to search it"
            self.found.left_out.append(Problem(directory, message))
            return
        listing = self._list(directory)
        if listing is not None:
            self._look(directory, listing, depth)

    def _add(self, directory: Path, names: list[str]) -> None:
        self.found.partitions.append(partition_in(directory, names, self._log_directory(directory.parent)))

    def _report_inner_partitions(self, directory: Path, names: list[str]) -> None:
        for name in names:
            inner = self._list(directory / name)
            if inner is not None and are_of_a_partition(inner.files):
                message = "is inside a partition directory; a broker ignores directories there"
                self.found.left_out.append(Problem(directory / name, message))

    def _add_files(self, directory: Path, wanted: list[Path]) -> None:
        listing = self._list(directory, is_given=True)
        if listing is None:
            return
        bases = {int(path.name.partition(".")[0]) for path in wanted}
        # The requested file may be in a directory of any name.
        log_directory = self._log_directory(directory.parent)
        self.found.partitions.append(partition_in(directory, listing.files, log_directory, bases))

    def _log_directory(self, directory: Path) -> LogDirectory:
        if directory not in self._log_directories:
            self._log_directories[directory] = read_log_directory(directory, self.found)
        return self._log_directories[directory]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _problem(path: Path, error: OSError) -> Problem:
    return Problem(path, error.strerror or str(error))


def _wrong_path(path: Path) -> Problem:
    if not path.exists():
        return Problem(path, "No such file or directory")
    message = "is not a segment file: its name is not an offset with .log, .index, .timeindex or .txnindex"
    return Problem(path, message)
