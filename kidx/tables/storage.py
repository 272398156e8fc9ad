"""Where segments lie: a local directory, or whatever fsspec opens; listed, and read by ranges that are counted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kidx.errors import ToolError
from kidx.files import open_regular

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_TAGS: Final = frozenset({"etag", "e_tag", "md5", "md5hash", "content_md5", "crc32c", "generation", "version_id"})
"""What stores call a checksum or a version of a file's content."""
_WITHOUT_FSSPEC = "{url} needs fsspec: pip install 'kidx[spark]'"


class Entry(NamedTuple):
    """One name in a directory.

    Attributes:
        path: within the store.
        is_directory: or what a store shows as one.
        size: bytes.
        modified: when it was last written, milliseconds; None if the store does not say.
        tag: another one whenever anything that the store tells of the file changes.
        tagged: the store tells a checksum or a version of the content.
    """

    path: str
    is_directory: bool
    size: int
    modified: int | None
    tag: str = ""
    tagged: bool = False

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Store:
    """A root below which segments lie; pickled into every task, opened where it is used.

    Attributes:
        url: a local path, or a URL of fsspec, chained ones included.
        options: of fsspec, such as ``{"anon": true}``.
    """

    url: str
    options: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def is_local(self) -> bool:
        """Whether plain system calls do."""
        return "::" not in self.url and ("://" not in self.url or self.url.startswith("file://"))

    @property
    def root(self) -> str:
        """The path within the store that the URL names."""
        return os.path.abspath(self.url.removeprefix("file://")) if self.is_local else self._opened[1]  # noqa: PTH100

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        """Raises ToolError: fsspec or the package for the URL's protocol is missing, or the URL is wrong."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 -- part of an extra
        except ImportError:
            raise ToolError(_WITHOUT_FSSPEC.format(url=self.url)) from None
        try:
            filesystem, path = url_to_fs(self.url, **self.options)
        except (ValueError, ImportError, TypeError) as error:
            raise ToolError(f"{self.url} cannot be opened: {error}") from error
        return filesystem, path

    def __getstate__(self) -> dict[str, Any]:
        # A connection stays where it is.
        return {"url": self.url, "options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def name_of(self, path: str) -> str:
        """What to call a path in tables and messages: a local path, or a URL."""
        return path if self.is_local else str(self._opened[0].unstrip_protocol(path))

    def entry(self, path: str) -> Entry | None:
        """What is at ``path``, None if nothing is."""
        try:
            if self.is_local:
                status = os.stat(path)  # noqa: PTH116
                return Entry(path, os.path.isdir(path), status.st_size, status.st_mtime_ns // 1_000_000)  # noqa: PTH112
            return _entry_of(self._opened[0].info(path))
        except FileNotFoundError:
            return None

    def list(self, path: str) -> Iterator[Entry]:
        """What is in a directory, in no order.

        Raises:
            OSError: it cannot be read.
        """
        if not self.is_local:
            yield from map(_entry_of, self._opened[0].ls(path, detail=True))
            return
        with os.scandir(path) as entries:
            for entry in entries:
                try:
                    status = entry.stat()
                    yield Entry(entry.path, entry.is_dir(), status.st_size, status.st_mtime_ns // 1_000_000)
                except FileNotFoundError:  # a broker deletes while we look
                    continue

    def open(self, path: str) -> RangeReader:
        """The file at ``path``, to be read by ranges.

        Raises:
            OSError: it cannot be opened.
        """
        return LocalReader(path) if self.is_local else RemoteReader(self._opened[0], path)

    @property
    def filesystem(self) -> AbstractFileSystem:
        """What opens the URL, local ones included."""
        return self._opened[0]

    def refresh(self) -> None:
        """Forgets listings that the file system has kept."""
        self._opened[0].invalidate_cache()

    def write(self, path: str, data: bytes) -> None:
        """Writes a small file, and the directories above it.

        Raises:
            OSError: it cannot be written.
        """
        self._opened[0].makedirs(path.rpartition("/")[0], exist_ok=True)
        self._opened[0].pipe_file(path, data)

    def fetch(self, path: str, target: Path) -> None:
        """Copies a file to this machine; does nothing if there is none.

        Raises:
            OSError: it cannot be read.
        """
        filesystem = self._opened[0]
        try:
            filesystem.get_file(path, str(target))
        except FileNotFoundError:
            target.unlink(missing_ok=True)

    def read_all(self, path: str) -> bytes:
        """All bytes of a small file; empty if there is none."""
        try:
            with self.open(path) as reader:
                return reader.read(0, reader.size)
        except FileNotFoundError:
            return b""


def _entry_of(info: dict[str, Any]) -> Entry:
    modified = info.get("mtime") or info.get("LastModified") or info.get("last_modified")
    if isinstance(info.get("modificationTime"), int):
        modified = info["modificationTime"] / 1000
    seconds = modified.timestamp() if isinstance(modified, datetime) else modified
    return Entry(
        info["name"].rstrip("/"),
        info.get("type") == "directory",
        info.get("size") or 0,
        int(seconds * 1000) if isinstance(seconds, int | float) else None,
        sha256(repr(sorted(info.items())).encode(errors="replace")).hexdigest(),
        any(info.get(name) for name in info if name.lower() in _TAGS),
    )


class RangeReader:
    """A file that is read by ranges; what was read is counted in ``bytes_read``."""

    bytes_read = 0
    size: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def read(self, start: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``start``: fewer at the end of the file.

        Raises:
            OSError: they cannot be read.
        """
        end = min(start + length, self.size)
        if end <= start:
            return b""
        data = self._read(start, end)
        self.bytes_read += len(data)
        return data

    def _read(self, start: int, end: int) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the file."""


class LocalReader(RangeReader):
    """A file of this machine."""

    def __init__(self, path: str) -> None:
        self._descriptor = open_regular(path)
        self.size = os.fstat(self._descriptor).st_size

    def _read(self, start: int, end: int) -> bytes:
        return os.pread(self._descriptor, end - start, start)

    def close(self) -> None:
        """Closes the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RemoteReader(RangeReader):
    """An object behind fsspec: one request a range, and nothing read ahead."""

    def __init__(self, filesystem: AbstractFileSystem, path: str) -> None:
        self._filesystem, self._path = filesystem, path
        self.size = int(filesystem.info(path)["size"])
        # Where fsspec has no ranges of its own they are read from an open file, whose cache would read megabytes more;
        # some file systems do not let it be chosen, but only made small.
        self._file = None if filesystem.async_impl else filesystem.open(path, "rb", block_size=1, cache_type="none")

    def _read(self, start: int, end: int) -> bytes:
        if self._file is None:
            return bytes(self._filesystem.cat_file(self._path, start=start, end=end))
        self._file.seek(start)
        return bytes(self._file.read(end - start))

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
