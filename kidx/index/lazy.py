"""Index that is opened by its first use (clauses LZ, ``LazyIndex.java``).

A broker has tens of thousands of segments and uses few of them. Until ``get`` is called, only the path is in memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from kidx.dialect import Dialect, dialect_of
from kidx.files import unlink
from kidx.index.abstract import AbstractIndex
from kidx.index.offset import OffsetIndex
from kidx.index.time import TimeIndex

Index = TypeVar("Index", bound=AbstractIndex[Any])


class LazyIndex(Generic[Index]):
    """Path of an index file, which the first :meth:`get` opens (LZ-2).

    :meth:`for_offset` and :meth:`for_time` create one.

    Args:
        path: path of the index file.
        load: function that opens the index at a path.
    """

    def __init__(self, path: str | os.PathLike[str], load: Callable[[Path], Index]) -> None:
        self._path = Path(path)
        self._load = load
        self._index: Index | None = None
        self._lock = threading.Lock()

    @classmethod
    def for_offset(
        cls,
        path: str | os.PathLike[str],
        base_offset: int,
        max_index_size: int = -1,
        writable: bool = True,
        *,
        dialect: str | Dialect | None = None,
    ) -> LazyIndex[OffsetIndex]:
        """Return a lazy :class:`OffsetIndex`, which takes the same arguments."""
        rules = dialect_of(dialect)
        return LazyIndex(path, lambda p: OffsetIndex(p, base_offset, max_index_size, writable, dialect=rules))

    @classmethod
    def for_time(
        cls,
        path: str | os.PathLike[str],
        base_offset: int,
        max_index_size: int = -1,
        writable: bool = True,
        *,
        dialect: str | Dialect | None = None,
    ) -> LazyIndex[TimeIndex]:
        """Return a lazy :class:`TimeIndex`, which takes the same arguments."""
        rules = dialect_of(dialect)
        return LazyIndex(path, lambda p: TimeIndex(p, base_offset, max_index_size, writable, dialect=rules))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Path of the file, opened or not."""
        return self._path if self._index is None else self._index.path

    @property
    def is_loaded(self) -> bool:
        """True if ``get`` has opened the index."""
        return self._index is not None

    def get(self) -> Index:
        """Return the index, which the first call opens. Several threads may call it (LZ-1).

        Raises:
            InvalidArgumentError, OSError: the index cannot be opened.
        """
        if self._index is None:
            with self._lock:
                if self._index is None:
                    self._index = self._load(self._path)
        return self._index

    def close(self) -> None:
        """Close the index if it is open (LZ-3)."""
        if self._index is not None:
            self._index.close()

    def close_handler(self) -> None:
        """Unmap the index if it is open, without trimming it."""
        if self._index is not None:
            self._index.close_handler()

    def delete_if_exists(self) -> bool:
        """Delete the file without opening it first. Return True if it existed."""
        if self._index is not None:
            return self._index.delete_if_exists()
        return unlink(self._path)

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        """Move the file. If the index was never opened, a missing file is not an error (LZ-3).

        Raises:
            OSError: the move failed.
        """
        if self._index is not None:
            self._index.rename_to(path)
            return
        source, self._path = self._path, Path(path)
        try:
            source.replace(self._path)
        except FileNotFoundError:
            if source.exists():
                raise

    def update_parent_dir(self, directory: str | os.PathLike[str]) -> None:
        """Record that the file's directory has moved, without touching any file."""
        if self._index is not None:
            self._index.update_parent_dir(directory)
        else:
            self._path = Path(directory) / self._path.name
