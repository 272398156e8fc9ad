"""Location of a partition's directory, and access to its files for the code of one machine.

Discovery and verifier read files of this machine. For a store of fsspec, discovery gets a mirror: a local directory of
empty files with the same names, and copies of the checkpoints. The verifier gets copies of one segment at a time. In
their messages, local names are replaced by names in the store.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kidx.discovery import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    DEPTH,
    EPOCHS,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    Problem,
    are_of_a_log_directory,
)
from kidx.files import TEXT_LIMIT
from kidx.storage import local_version, stored_version

if TYPE_CHECKING:
    from kidx.storage import Entry, Store

# Files that a mirror has: of segments and snapshots, by pattern, and others by name, of which checkpoints are copied.
_NAMES: Final = re.compile(r"\d{1,20}(?:\.[a-z.]+|-\d{10}\.checkpoint)")
_CHECKPOINTS: Final = (META_PROPERTIES, CLEANED_OFFSETS, *OFFSET_CHECKPOINTS)
_KNOWN: Final = {EPOCHS, CLEAN_SHUTDOWN, *_CHECKPOINTS}
_LISTED_AT_ONCE: Final = 16


class FileFacts(NamedTuple):
    """A file as a listing shows it.

    Attributes:
        size: bytes.
        modified: microseconds since the epoch; None if the store does not report it.
        tag: a value that changes with the content; None if no such value is known.
    """

    size: int
    modified: int | None
    tag: str | None


def reason_of(error: Exception) -> str:
    """Return the reason why a file or directory could not be read."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def local_facts(path: Path) -> FileFacts | None:
    """Return the facts about a file of this machine, or None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return FileFacts(status.st_size, status.st_mtime_ns // 1000, local_version(status) or None)


def _remote_facts(entry: Entry) -> FileFacts:
    modified = entry.modified
    return FileFacts(entry.size, None if modified is None else modified * 1000, stored_version(entry) or None)


@dataclass(frozen=True)
class Place:
    """Location of a partition's directory.

    Attributes:
        name: path or URL, for messages.
        path: path for system calls, or within the store.
        store: store of a URL; None on this machine.
    """

    name: str
    path: str
    store: Store | None = None

    @contextmanager
    def holding(self, names: Iterable[str]) -> Iterator[Path]:
        """Provide the directory with some of its files on this machine; files that were deleted are skipped.

        Raises:
            OSError: a file cannot be fetched.
        """
        if self.store is None:
            yield Path(self.path)
            return
        with tempfile.TemporaryDirectory(prefix="kidx-") as temporary:
            directory = Path(temporary, self.path.rstrip("/").rpartition("/")[2])
            directory.mkdir()
            for name in names:
                self.store.fetch(f"{self.path}/{name}", directory / name)
            yield directory

    def with_store_names(self, value: Any, directory: Path) -> Any:
        """Return a value in whose messages the directory of :meth:`holding` is replaced by the name in the store."""
        before, after = _prefix(str(directory)), _prefix(self.name)
        return value if before == after else _replaced(value, before, after)


def _prefix(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _replaced(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, dict):
        return {name: _replaced(each, before, after) for name, each in value.items()}
    return [_replaced(each, before, after) for each in value] if isinstance(value, list | tuple) else value


@dataclass
class Mirror:
    """Local copy of the file names below a root of a store, for discovery.

    Args:
        store: store with the root.
        top: an empty directory for the mirror.
        wanted: a predicate of the names of directories directly below the root; all by default.

    Attributes:
        root: directory for discovery.
        paths: paths of the directories within the store.
        facts: facts about the files.
        partitions: directories with files of segments.
        problems: directories that cannot be listed.
    """

    store: Store
    top: Path
    wanted: Callable[[str], bool] | None = None
    paths: dict[Path, str] = field(default_factory=dict)
    facts: dict[Path, FileFacts] = field(default_factory=dict)
    partitions: set[Path] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store.refresh()
        inner = self.store.root.rstrip("/")
        above, _, name = inner.rpartition("/")
        self.root = self.top / (name or "root")
        self.paths[self.root] = inner
        found = self.store.entry(inner or "/")
        if found is None:
            return
        if found.is_directory:
            with ThreadPoolExecutor(_LISTED_AT_ONCE) as pool:
                self._look(self.root, pool.submit(self._list, inner, self.root), DEPTH, pool)
        else:
            above, _, directory = above.rpartition("/")
            self.paths = {self.top / directory: f"{above}/{directory}" if above else directory}
            self.root = self.top / directory / name
            (entries,) = [self._list(path, directory) for directory, path in self.paths.items()]
            self._files(self.top / directory, entries)
        if name and {self.root, self.root.parent} & self.partitions:
            for each in _CHECKPOINTS:
                self.store.fetch(f"{above}/{each}", self.top / each)
            if self.store.entry(f"{above}/{CLEAN_SHUTDOWN}") is not None:
                (self.top / CLEAN_SHUTDOWN).touch()

    def _list(self, path: str, directory: Path) -> list[Entry]:
        """Return the entries of a directory, and copy the topic id of a partition to its mirror."""
        # A segment has no such name, and the mirror must not write outside its directory.
        found = [each for each in self.store.list(path) if each.name not in {"", ".", ".."} and "\0" not in each.name]
        for each in found:
            if each.name == PARTITION_METADATA and not each.is_directory and each.size <= TEXT_LIMIT:
                directory.mkdir(parents=True, exist_ok=True)
                self.store.fetch(each.path, directory / PARTITION_METADATA)
        return found

    def _look(self, directory: Path, listed: Future[list[Entry]], depth: int, pool: ThreadPoolExecutor) -> None:
        """Mirror a directory, and the directories in it down to a depth."""
        try:
            entries = listed.result()
            self._files(directory, entries)
        except Exception as error:  # noqa: BLE001 -- each store has different errors
            self.problems.append(Problem(directory, reason_of(error)))
            return
        below = {entry.name: entry.path.rstrip("/") for entry in entries if entry.is_directory}
        files = [entry.name for entry in entries if not entry.is_directory]
        if not depth or (directory in self.partitions and not are_of_a_log_directory(files, below)):
            return
        if depth == DEPTH and self.wanted is not None:
            for name in [name for name in below if not self.wanted(name)]:
                (directory / name).mkdir()  # discovery sees its name
                del below[name]
        self.paths |= {directory / name: path for name, path in below.items()}
        waiting = {name: pool.submit(self._list, path, directory / name) for name, path in below.items()}
        for name, future in waiting.items():
            self._look(directory / name, future, depth - 1, pool)

    def _files(self, directory: Path, entries: Iterable[Entry]) -> None:
        """Mirror the files of a directory."""
        directory.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            path = directory / entry.name
            if entry.is_directory or not (entry.name in _KNOWN or _NAMES.fullmatch(entry.name)):
                continue
            if entry.name in _CHECKPOINTS and entry.size <= TEXT_LIMIT:
                try:
                    self.store.fetch(entry.path, path)
                except Exception as error:  # noqa: BLE001 -- as above
                    self.problems.append(Problem(path, reason_of(error)))
            else:
                path.touch()
                os.truncate(path, entry.size if entry.name in _CHECKPOINTS else 0)
            self.facts[path] = _remote_facts(entry)
            if entry.name == EPOCHS or _NAMES.fullmatch(entry.name):
                self.partitions.add(directory)
