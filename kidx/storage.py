"""Storage of segments: a local directory, or any fsspec file system, with listings and counted range reads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kidx.discovery import LOG
from kidx.errors import ToolError
from kidx.files import CHUNK, open_regular, pieces_with_data
from kidx.records.file_bytes import check_log_size

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_TAGS: Final = frozenset({"etag", "e_tag", "md5", "md5hash", "content_md5", "crc32c", "generation", "version_id"})
"""Names by which stores report a checksum or a version of a file's content."""
SETTLED: Final = 2.0
"""Seconds after which a changed file has another time, by the coarsest clocks of file systems."""
_WITHOUT_FSSPEC = "{url} requires fsspec; install with: pip install 'kidx[spark]'"


class Entry(NamedTuple):
    """A directory entry.

    Attributes:
        path: the path within the store.
        is_directory: True for a directory, or what a store shows as one.
        size: the number of bytes.
        modified: the modification time in milliseconds; None if the store does not report it.
        tag: a hash of the size and of the checksums and versions of the content that the store reports, which are the
            same in a listing; or of everything that it reports, if these are missing. Empty for a local file.
        tagged: True if the store reports a checksum or a version of the content.
        identity: a number that a file keeps while it is appended to, renamed or truncated, and that a file which
            replaces it does not have: the inode of a local file; in a store, of which files are replaced as a whole,
            derived from the tag.
    """

    path: str
    is_directory: bool
    size: int
    modified: int | None
    tag: str = ""
    tagged: bool = False
    identity: int = 0

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Store:
    """A root below which segments are stored. It is pickled into every task, and opened when it is first used.

    Attributes:
        url: a local path, or a URL of fsspec, chained URLs included.
        options: options of fsspec, such as ``{"anon": true}``.
    """

    url: str
    options: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def is_local(self) -> bool:
        """True if plain system calls can read it."""
        return "::" not in self.url and ("://" not in self.url or self.url.startswith("file://"))

    @property
    def has_files(self) -> bool:
        """True if its files can be read in place, like local files."""
        return self.is_local

    @property
    def root(self) -> str:
        """The path within the store that the URL names."""
        return os.path.abspath(self.url.removeprefix("file://")) if self.is_local else self._opened[1]  # noqa: PTH100

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        """The file system of the URL, and the path in it.

        Raises:
            ToolError: fsspec or the package for the URL's protocol is missing, or the URL is invalid.
        """
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 -- part of an extra
        except ImportError:
            raise ToolError(_WITHOUT_FSSPEC.format(url=self.url)) from None
        try:
            filesystem, path = url_to_fs(self.url, **self.options)
        except (ValueError, ImportError, TypeError) as error:
            raise ToolError(f"cannot open {self.url}: {error}") from error
        filesystem.invalidate_cache()  # fsspec shares file systems, with the listings that an earlier query made
        return filesystem, path

    def __getstate__(self) -> dict[str, Any]:
        # A connection is not pickled.
        return {"url": self.url, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def name_of(self, path: str) -> str:
        """Return the name of a path in tables and messages: a local path, or a URL."""
        return path if self.is_local else str(self._opened[0].unstrip_protocol(path))

    def entry(self, path: str) -> Entry | None:
        """Return the entry at ``path``; None if it does not exist."""
        try:
            if self.is_local:
                status = os.stat(path)  # noqa: PTH116
                return _local_entry(path, status)
            return _entry_of(self._opened[0].info(path))
        except FileNotFoundError:
            return None

    def list(self, path: str) -> Iterator[Entry]:
        """Yield the entries of a directory, in no order.

        Raises:
            OSError: the directory cannot be read.
        """
        if not self.is_local:
            yield from map(_entry_of, self._opened[0].ls(path, detail=True))
            return
        with os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # a broker may delete files during the listing
                    yield _local_entry(entry.path, _status_of(entry))

    def open(self, path: str) -> RangeReader:
        """Open the file at ``path`` for range reads.

        Raises:
            OSError: the file cannot be opened, or is a log that exceeds the maximum size of a segment.
        """
        reader = LocalReader(path) if self.is_local else RemoteReader(self._opened[0], path)
        if path.endswith(LOG):
            try:
                check_log_size(path, reader.size)
            except OSError:
                reader.close()
                raise
        return reader

    @property
    def filesystem(self) -> AbstractFileSystem:
        """The file system that opens the URL, for local URLs too."""
        return self._opened[0]

    def refresh(self, directory: str | None = None) -> None:
        """Invalidate the cached listings of a file system: all, or a directory's and its parents'."""
        if not self.is_local:
            self._opened[0].invalidate_cache(directory)

    def write(self, path: str, data: bytes) -> None:
        """Write a small file, and create the directories above it.

        Raises:
            OSError: the file cannot be written.
        """
        self._opened[0].makedirs(path.rpartition("/")[0], exist_ok=True)
        self._opened[0].pipe_file(path, data)

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file to this machine; remove ``target`` if the file does not exist.

        Raises:
            OSError: the file cannot be read.
        """
        filesystem = self._opened[0]
        try:
            filesystem.get_file(path, str(target))
        except FileNotFoundError:
            target.unlink(missing_ok=True)

    def read_all(self, path: str) -> bytes:
        """Return all bytes of a small file; empty if it does not exist."""
        try:
            with self.open(path) as reader:
                return reader.read(0, reader.size)
        except FileNotFoundError:
            return b""


def local_version(status: os.stat_result) -> str:
    """Return a text that changes with the content of a local file; empty if the file was changed just now.

    It has the time of the last change of the inode, because no system call can set that back.
    """
    newest = max(status.st_mtime, status.st_ctime)
    text = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"
    return text if newest < time.time() - SETTLED else ""


def stored_version(entry: Entry) -> str:
    """Return a text that changes with the content of a stored file; empty if the store does not show changes."""
    return f"{entry.identity:x}" if entry.tagged else listed_version(entry.identity, entry.modified)


def listed_version(identity: int, modified: int | None) -> str:
    """Return the version of a stored file by its identity in a listing; empty if it may have been changed since."""
    return f"{identity:x}" if modified is not None and modified / 1000 < time.time() - SETTLED else ""


def _status_of(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat()
    except FileNotFoundError:
        raise
    except OSError:  # such as a link to itself: opening it reports the reason
        return entry.stat(follow_symlinks=False)


def _local_entry(path: str, status: os.stat_result) -> Entry:
    modified = status.st_mtime_ns // 1_000_000
    return Entry(path, S_ISDIR(status.st_mode), status.st_size, modified, identity=status.st_ino)


def _entry_of(info: dict[str, Any]) -> Entry:
    modified = info.get("mtime") or info.get("LastModified") or info.get("last_modified")
    if isinstance(info.get("modificationTime"), int):
        modified = info["modificationTime"] / 1000
    seconds = modified.timestamp() if isinstance(modified, datetime) else modified
    tags = sorted((name.lower(), info[name]) for name in info if name.lower() in _TAGS and info[name])
    told = [info.get("size"), *tags] if tags else sorted(info.items())
    tag = sha256(repr(told).encode(errors="replace")).hexdigest()
    return Entry(
        info["name"].rstrip("/"),
        info.get("type") == "directory",
        info.get("size") or 0,
        int(seconds * 1000) if isinstance(seconds, int | float) else None,
        tag,
        bool(tags),
        int(tag[:15], 16),
    )


class RangeReader:
    """A file with range reads; ``bytes_read`` counts the bytes read, ``size`` is the size in bytes.

    ``identity`` equals the identity of its :class:`Entry`, or is 0 if the file need not be the listed one.
    """

    bytes_read = identity = 0
    size: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self, start: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``start``; fewer at the end of the file.

        Raises:
            OSError: the bytes cannot be read.
        """
        end = min(start + length, self.size)
        if end <= start:
            return b""
        data = self._read(start, end)
        self.bytes_read += len(data)
        return data

    def _read(self, start: int, end: int) -> bytes:
        raise NotImplementedError

    def version(self) -> str:
        """Return a text that changes with the content of the file; empty if unknown."""
        return ""

    def is_zero_from(self, position: int) -> bool:
        """Return True if the file has only zeros from a position to its end.

        Raises:
            OSError: the bytes cannot be read.
        """
        return not any(any(self._read(at, min(at + CHUNK, self.size))) for at in range(position, self.size, CHUNK))

    def close(self) -> None:
        """Close the file."""


class LocalReader(RangeReader):
    """A file of this machine."""

    def __init__(self, path: str) -> None:
        self._descriptor = open_regular(path)
        status = os.fstat(self._descriptor)
        self.size, self.identity = status.st_size, status.st_ino

    def _read(self, start: int, end: int) -> bytes:
        return os.pread(self._descriptor, end - start, start)

    def version(self) -> str:
        """Return the version of the open file now."""
        return local_version(os.fstat(self._descriptor))

    def is_zero_from(self, position: int) -> bool:
        """Return True if only zeros follow, without reading the holes of a sparse file such as a preallocated log."""
        return next(pieces_with_data(self._descriptor, self.size, position), None) is None

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RemoteReader(RangeReader):
    """An object of an fsspec file system: one request per range, and no read-ahead."""

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem, self._path = filesystem, path
        self.size = int(filesystem.info(path)["size"])
        # If fsspec has no range requests, ranges are read from an open file. Its cache would read megabytes more, so it
        # is disabled; file systems that do not allow this at least get a small block size.
        self._file = None if filesystem.async_impl else filesystem.open(path, "rb", block_size=1, cache_type="none")

    def _read(self, start: int, end: int) -> bytes:
        if self._file is None:
            return bytes(self._filesystem.cat_file(self._path, start=start, end=end))
        self._file.seek(start)
        return bytes(self._file.read(end - start))

    def version(self) -> str:
        """Return the current version of the object, from the store and not from the cache of listings."""
        self._filesystem.invalidate_cache(self._path.rpartition("/")[0])
        return stored_version(_entry_of(self._filesystem.info(self._path)))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
