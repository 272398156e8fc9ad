"""Search for the log directories at or below the verified paths, and for the names in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kidx.discovery import CLEAN_SHUTDOWN, CLEANED_OFFSETS, META_PROPERTIES, OFFSET_CHECKPOINTS, parse_partition
from kidx.startup.kraft import is_empty, runs_kraft
from kidx.startup.names import METADATA_LOG, is_of_metadata

OF_LOG_DIRECTORIES: Final = frozenset({META_PROPERTIES, CLEAN_SHUTDOWN, CLEANED_OFFSETS, *OFFSET_CHECKPOINTS})
"""Names of files that only a log directory has."""


def log_directories(paths: Iterable[Path], partitions: Iterable[Path]) -> list[Path]:
    """Return the log directories that were verified completely: given paths, or directories below a given path.

    Args:
        paths: given paths.
        partitions: partition directories that were found under them.
    """
    given = [path for path in paths if path.is_dir()]
    holding = {each.parent for each in partitions if any(_is_below(each.parent, path) for path in given)}
    marked = {path for path in given if OF_LOG_DIRECTORIES.intersection(names_in(path))}
    below = {
        each
        for path in given
        if path not in marked and path not in holding
        for each in directories_in(path)
        if META_PROPERTIES in names_in(each)
    }
    known = holding | marked | below
    # An empty directory next to log directories of KRaft may be a disk that is not mounted.
    empty = {path for path in given if path not in known and is_empty(path)} if runs_kraft(known) else set()
    return sorted(known | empty)


def is_managed(log_directory: Path) -> bool:
    """Return True if a broker's log manager uses a directory; False for KRaft's own log alone (``metadata.log.dir``).

    A log manager creates its checkpoints, perhaps empty, before it loads a log.
    """
    names = set(names_in(log_directory))
    of_manager = OF_LOG_DIRECTORIES - {META_PROPERTIES}
    return METADATA_LOG not in names or not of_manager.isdisjoint(names) or has_logs(log_directory)


def has_logs(log_directory: Path) -> bool:
    """Return True if a directory has a partition that a log manager loads."""
    below = (path.name for path in directories_in(log_directory))
    return any(parse_partition(name) is not None and not is_of_metadata(name) for name in below)


def _is_below(path: Path, given: Path) -> bool:
    return path == given or given in path.parents


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, in order; none if it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def directories_in(log_directory: Path) -> Iterator[Path]:
    """Return the directories in a log directory, in order."""
    return (log_directory / name for name in names_in(log_directory) if (log_directory / name).is_dir())
