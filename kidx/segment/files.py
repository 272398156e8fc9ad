"""The four files of a segment as a unit: opened, renamed, moved, flushed, deleted (clauses SEG)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kidx.discovery import INDEX_SUFFIXES, LOG
from kidx.errors import InvalidArgumentError, KidxError
from kidx.index.lazy import LazyIndex
from kidx.index.transaction import TransactionIndex
from kidx.segment.file_records import FileRecords

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.index.offset import OffsetIndex
    from kidx.index.time import TimeIndex

LOG_SUFFIX = LOG
OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX = INDEX_SUFFIXES


def file_name(base_offset: int, suffix: str) -> str:
    """Return a file name such as ``00000000000000000007.index``: twenty digits, then the suffix."""
    return f"{base_offset:020d}{suffix}"


class SegmentFiles:
    """Log and indexes of a segment, with the operations on all of them.

    Args:
        log: the ``.log`` file.
        lazy_offset_index: the ``.index`` file, opened by its first use.
        lazy_time_index: the ``.timeindex`` file, opened by its first use.
        txn_index: the ``.txnindex`` file.
        base_offset: lower bound of the segment's offsets, and name of its files.
        dialect: rules of a release.
    """

    def __init__(
        self,
        log: FileRecords,
        lazy_offset_index: LazyIndex[OffsetIndex],
        lazy_time_index: LazyIndex[TimeIndex],
        txn_index: TransactionIndex,
        base_offset: int,
        *,
        dialect: Dialect,
    ) -> None:
        self.log = log
        self.lazy_offset_index = lazy_offset_index
        self.lazy_time_index = lazy_time_index
        self.txn_index = txn_index
        self.base_offset = base_offset
        self.dialect = dialect

    @classmethod
    def _open_log(cls, path: Path, dialect: Dialect, **options: Any) -> FileRecords:
        """Open the log; ``options`` are the other arguments of :class:`FileRecords`."""
        return FileRecords(path, dialect=dialect, **options)

    @classmethod
    def _open_indexes(
        cls, path: Callable[[str], Path], base_offset: int, size: int, dialect: Dialect
    ) -> tuple[LazyIndex[OffsetIndex], LazyIndex[TimeIndex], TransactionIndex]:
        """Return the indexes at the paths of their suffixes; the first use opens offset and time index."""
        return (
            LazyIndex.for_offset(path(OFFSET_INDEX_SUFFIX), base_offset, size, dialect=dialect),
            LazyIndex.for_time(path(TIME_INDEX_SUFFIX), base_offset, size, dialect=dialect),
            TransactionIndex(base_offset, path(TRANSACTION_INDEX_SUFFIX), dialect=dialect),
        )

    @property
    def offset_index(self) -> OffsetIndex:
        """Offset index, opened or created by the first use (SEG-1)."""
        return self.lazy_offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        """Time index, opened or created by the first use (SEG-1)."""
        return self.lazy_time_index.get()

    @property
    def _some_index_is_not_loaded(self) -> bool:
        return not (self.lazy_offset_index.is_loaded and self.lazy_time_index.is_loaded)

    @property
    def size(self) -> int:
        """Size of the log in bytes."""
        return self.log.size_in_bytes

    @property
    def last_modified(self) -> int:
        """Time of the last write to the log in milliseconds; 0 if the file does not exist."""
        try:
            return self.log.path.stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0

    def set_last_modified(self, milliseconds: int) -> None:
        """Set the modification time of log and indexes.

        Raises:
            FileNotFoundError: a file is missing; the files before it (log, ``.index``, ``.timeindex``) are changed.
        """
        for path in (self.log.path, self.lazy_offset_index.path, self.lazy_time_index.path):
            os.utime(path, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))

    # -- checks ------------------------------------------------------------------------------------------------

    def sanity_check(self, time_index_file_newly_created: bool) -> None:
        """Check that ``.index`` exists, and check the transactions, as loading a log does (SEG-35).

        Args:
            time_index_file_newly_created: True if ``.timeindex`` did not exist; it is created with a size of 0.

        Raises:
            FileNotFoundError: ``.index`` does not exist.
            CorruptIndexError, UnsupportedVersionError: as :meth:`TransactionIndex.sanity_check`.
        """
        if not self.lazy_offset_index.path.exists():
            raise FileNotFoundError(2, "Offset index file does not exist", str(self.lazy_offset_index.path.absolute()))
        if time_index_file_newly_created:
            self.time_index.resize(0)
        self.txn_index.sanity_check()

    def resize_indexes(self, size: int) -> None:
        """Resize both mapped indexes to ``size`` bytes, rounded down to whole entries (SEG-25)."""
        self.offset_index.resize(size)
        self.time_index.resize(size)

    # -- the files ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sync all files to disk; open the indexes if necessary."""
        self.log.flush()
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def has_suffix(self, suffix: str) -> bool:
        """Return True if all four names end with ``suffix``."""
        paths = (self.log.path, self.lazy_offset_index.path, self.lazy_time_index.path, self.txn_index.path)
        return all(path.name.endswith(suffix) for path in paths)

    def change_file_suffixes(self, old: str, new: str) -> None:
        """Rename all four files, e.g. from ``""`` to ``".deleted"``; index files that do not exist are skipped.

        Up to 2.5 the indexes are first opened, and so created.

        Raises:
            InvalidArgumentError, OSError: as opening or moving an index; the files before it have been moved.
        """
        for file in (self.log, self.lazy_offset_index, self.lazy_time_index, self.txn_index):
            loads = isinstance(file, LazyIndex) and not file.is_loaded and self.dialect.close_loads_indexes
            opened = file.get() if loads else file  # type: ignore[union-attr]
            opened.rename_to(_replace_suffix(file.path, old, new))

    def update_parent_dir(self, directory: str | os.PathLike[str]) -> None:
        """Record that the files' directory has moved, without touching any file."""
        self.log.update_parent_dir(directory)
        self.lazy_offset_index.update_parent_dir(directory)
        self.lazy_time_index.update_parent_dir(directory)
        self.txn_index.update_parent_dir(directory)

    def delete_if_exists(self) -> None:
        """Close and delete all four files; up to 2.5 the indexes are first opened, and so created.

        Raises:
            KidxError, OSError: the first error; the other files are deleted nevertheless.
        """
        offset_index, time_index = self.lazy_offset_index, self.lazy_time_index
        loads = self._some_index_is_not_loaded and self.dialect.close_loads_indexes
        run_all(
            self.log.delete_if_exists,
            (lambda: offset_index.get().delete_if_exists()) if loads else offset_index.delete_if_exists,
            (lambda: time_index.get().delete_if_exists()) if loads else time_index.delete_if_exists,
            self.txn_index.delete_if_exists,
        )

    @property
    def deleted(self) -> bool:
        """True if none of the four files exists."""
        paths = (self.log.path, self.lazy_offset_index.path, self.lazy_time_index.path, self.txn_index.path)
        return not any(path.exists() for path in paths)

    def close_files(self) -> None:
        """Close indexes, log and transactions as the release does (SEG-24). Up to 4.0.0, errors are ignored.

        Raises:
            OSError: a file cannot be closed; it is raised after the other files have been closed.
            KidxError: an index cannot be closed; it is raised immediately, and the remaining files are open.
        """
        offset_index, time_index = self.lazy_offset_index, self.lazy_time_index
        if self._some_index_is_not_loaded and self.dialect.close_loads_indexes:
            closers: tuple[Callable[[], Any], ...] = (
                lambda: offset_index.get().close(),
                lambda: time_index.get().close(),
                self.log.close,
                self.txn_index.close,
            )
        else:
            closers = (offset_index.close, time_index.close, self.log.close, self.txn_index.close)
        failure: Exception | None = None
        for close in closers:
            try:
                close()
            except (KidxError, OSError) as error:
                if not self.dialect.close_reports_errors:
                    continue
                if isinstance(error, KidxError):
                    raise
                failure = failure or error
        if failure is not None:
            raise failure

    def close_handlers(self) -> None:
        """Close all files without changing them, as a broker does when a disk has failed. Nothing is raised.

        Up to 2.5 the indexes are first opened, and so created.
        """
        if self._some_index_is_not_loaded and self.dialect.close_loads_indexes:
            for index in (self.lazy_offset_index, self.lazy_time_index):
                with contextlib.suppress(KidxError, OSError):
                    index.get()
        self.release_handles()

    def release_handles(self) -> None:
        """Close all files as a killed process does (not in Kafka). Nothing is opened, written or raised."""
        for close in (
            self.lazy_offset_index.close_handler,
            self.lazy_time_index.close_handler,
            self.log.close_handlers,
            self.txn_index.close,
        ):
            with contextlib.suppress(KidxError, OSError):
                close()


def run_all(*steps: Callable[[], Any], stop_at: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
    """Run every step, then raise the first error; an error in ``stop_at`` is raised immediately."""
    failure: Exception | None = None
    for step in steps:
        try:
            step()
        except stop_at:
            raise
        except (KidxError, OSError) as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _replace_suffix(path: Path, old: str, new: str) -> Path:
    """Return ``path`` with another suffix.

    Raises:
        InvalidArgumentError: the name does not end with ``old``.
    """
    if not path.name.endswith(old):
        raise InvalidArgumentError(f"Expected string to end with '{old}' but string is '{path}'")
    return path.with_name(path.name[: len(path.name) - len(old)] + new)
