"""Base class of `.index` and `.timeindex`: a mapped file of fixed-size entries (clauses AI).

It follows ``AbstractIndex.java`` / ``AbstractIndex.scala`` step by step if the order of steps is observable: an
operation that fails half way leaves exactly the state that Kafka leaves.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from kidx.dialect import Dialect, dialect_of
from kidx.errors import (
    ClosedError,
    IllegalStateError,
    IndexOffsetOverflowError,
    InvalidArgumentError,
    KidxError,
    OutOfBoundsError,
)
from kidx.files import open_regular, unlink
from kidx.index.mapped_buffer import MappedBuffer
from kidx.index.search import Keys, ProbeCallback, Search, warm_search
from kidx.java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, round_down, to_int, to_long

if TYPE_CHECKING:
    from kidx.layout import Layout

Entry = TypeVar("Entry")


class AbstractIndex(ABC, Generic[Entry]):
    """File of fixed-size entries that grows by appending into a preallocated mapping.

    Args:
        path: the index file; a missing file is created (AI-3), an existing file is taken to be full of entries (AI-5).
        base_offset: offset of the segment's first record; entries store offsets relative to it (AI-8).
        max_index_size: bytes to preallocate for a new file, rounded down to whole entries.
        writable: True to map the file read-write; False needs no permission to write an existing file.
        dialect: a release such as ``"3.9.2"``, or a :class:`~kidx.dialect.Dialect`; the newest release by default.

    Raises:
        InvalidArgumentError: a new file cannot hold one entry; the empty file remains, as in Kafka.
        OSError: the file cannot be created, opened or mapped.
    """

    layout: ClassVar[Layout]  # fields of an entry
    creation: ClassVar[int] = os.O_CREAT | os.O_EXCL | os.O_RDWR  # open(2) flags for a file that does not exist

    def __init__(
        self,
        path: str | os.PathLike[str],
        base_offset: int,
        max_index_size: int = -1,
        writable: bool = True,
        *,
        dialect: str | Dialect | None = None,
    ) -> None:
        self._file = os.fspath(path)
        self._absolute: str | None = None
        self.base_offset = base_offset
        self.max_index_size = max_index_size
        self.writable = writable
        self.dialect = dialect_of(dialect)
        self.entry_size = self.layout.size  # bytes
        self._offset_codec = self.layout.codec("relative_offset")
        self._offset_shift = self.layout.field("relative_offset").offset
        # base + relative can only wrap around for a base within 2**31 of either end of a Java long.
        self._wraps = not LONG_MIN - INT_MIN <= base_offset <= LONG_MAX - INT_MAX
        self._mmap: MappedBuffer | None = self._create_and_map()
        self.max_entries = self._mmap.limit // self.entry_size  # number of entries for which the file has space
        self.entries = self._mmap.position // self.entry_size
        self._refresh_last()

    def _create_and_map(self) -> MappedBuffer:
        try:
            descriptor = os.open(self._file, os.O_RDWR) if self.writable else open_regular(self._file)
            newly_created = False
        except FileNotFoundError:
            descriptor = os.open(self._file, self.creation, 0o666)
            newly_created = True
        try:
            if newly_created:
                os.ftruncate(descriptor, self._preallocated_size())
            self.length = os.fstat(descriptor).st_size
            buffer = MappedBuffer(descriptor, self.length, writable=self.writable, name=self._file)
        finally:
            os.close(descriptor)
        buffer.seek(0 if newly_created else round_down(buffer.limit, self.entry_size))
        return buffer

    def _preallocated_size(self) -> int:
        """Return the size in bytes of a new file.

        Raises:
            InvalidArgumentError: not one entry fits (AI-3).
            OSError: the file cannot be resized because it is opened read-only (AI-4).
        """
        if self.max_index_size < self.entry_size:
            raise InvalidArgumentError(
                f"{self._file}: a new index of {self.max_index_size} bytes cannot hold one entry of {self.entry_size}",
                f"Invalid max index size: {self.max_index_size}",
            )
        if not self.writable:
            raise OSError(errno.EINVAL, "a new index cannot be preallocated read-only", self._file)
        return round_down(self.max_index_size, self.entry_size)

    @property
    def path(self) -> Path:
        """Path of the file as the index tracks it; a move by another process is not noticed (AI-21)."""
        return Path(self._file)

    @property
    def _absolute_path(self) -> str:
        """Absolute path of the file, as Kafka's messages print it."""
        if self._absolute is None:
            self._absolute = str(self.path.absolute())
        return self._absolute

    # -- methods of the subclasses -------------------------------------------------------------------------------------

    @abstractmethod
    def _parse(self, buffer: MappedBuffer, slot: int) -> Entry:
        """Return the entry in a slot, with its absolute offset."""

    @abstractmethod
    def _refresh_last(self) -> None:
        """Read the last entry, which every index caches, from the file again."""

    @abstractmethod
    def sanity_check(self) -> None:
        """Raise an error if the file cannot be a valid index.

        Raises:
            CorruptIndexError: a check failed; OI-11 and TI-11 list the checks.
        """

    # -- size ------------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """True if no further entry can be appended (AI-6)."""
        return self.entries >= self.max_entries

    @property
    def size_in_bytes(self) -> int:
        """Bytes that the entries occupy, without the preallocated tail."""
        return self.entries * self.entry_size

    @property
    def stored(self) -> bytes | None:
        """The bytes of the entries as currently mapped, or None while the file is unmapped."""
        return None if self._mmap is None else bytes(self._mmap.data[: self.size_in_bytes])

    def __len__(self) -> int:
        return self.entries

    def __iter__(self) -> Iterator[Entry]:
        for slot in range(self.entries):
            yield self._parse(self._mapped(), slot)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # An index closed or deleted inside the block needs no close, which would raise up to 3.9.1 (AI-16).
        if self._mmap is not None:
            self.close()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({str(self.path)!r}, base_offset={self.base_offset}, entries={self.entries},"
            f" max_entries={self.max_entries}, dialect={self.dialect.release!r})"
        )

    # -- offsets ---------------------------------------------------------------------------------------------------

    def can_append_offset(self, offset: int) -> bool:
        """Return True if ``offset`` is within ``base .. base + 2**31 - 1`` (AI-8)."""
        return 0 <= to_long(offset - self.base_offset) <= INT_MAX

    def relative_offset(self, offset: int) -> int:
        """Return ``offset`` relative to the base, as the index stores it.

        Raises:
            IndexOffsetOverflowError: ``offset`` is not within ``base .. base + 2**31 - 1`` (AI-8).
        """
        relative = offset - self.base_offset
        if not 0 <= relative <= INT_MAX:
            relative = to_long(relative)
        if 0 <= relative <= INT_MAX:
            return relative
        raise IndexOffsetOverflowError(
            f"{self._file}: offset {offset} is not within {self.base_offset}..{self.base_offset + INT_MAX}",
            f"Integer overflow for offset: {offset} ({self._absolute_path})",
        )

    def _absolute_offset(self, relative: int) -> int:
        return to_long(self.base_offset + relative) if self._wraps else self.base_offset + relative

    # -- entries ---------------------------------------------------------------------------------------------------

    def _mapped(self) -> MappedBuffer:
        if self._mmap is None:
            raise ClosedError(f"{self._file} is closed", None)
        return self._mmap

    @abstractmethod
    def _no_entry_text(self, n: int) -> str:
        """Return Kafka's message for a slot past the end, without the full stop that Scala classes add (OI-8, TI-8)."""

    def entry(self, n: int) -> Entry:
        """Return the entry in slot ``n``.

        Raises:
            InvalidArgumentError: ``n`` ≥ the number of entries.
            OutOfBoundsError: ``n`` is negative (OI-8, TI-8).
            ClosedError: the index is closed.
        """
        if n >= self.entries:
            raise InvalidArgumentError(
                f"{self._file} has {self.entries} entries; there is no entry {n}",
                self._no_entry_text(n) + ("." if self.dialect.scala_texts else ""),
            )
        # Kafka does not reject a negative n: n * entry_size wraps around and may end up inside the file (OI-8).
        return self._parse(self._mapped(), n)

    @property
    def _requirement(self) -> str:
        return "requirement failed: " if self.dialect.scala_texts else ""

    def _position_mismatch(self, position: int) -> InvalidArgumentError | IllegalStateError:
        """Return Kafka's error for a position in the file that is not the end of the entries (OI-6, TI-21)."""
        message = f"{self._file}: {self.entries} entries, but the file position is {position}"
        text = f"{self.entries} entries but file position in index is {position}"
        if self.dialect.position_mismatch_is_state:
            return IllegalStateError(message, text)
        return InvalidArgumentError(message, f"{self._requirement}{text}.")

    def _byte_position(self, slot: int) -> int:
        return to_int(slot * self.entry_size)

    def truncate_to(self, offset: int) -> None:
        """Remove every entry whose offset is ≥ ``offset`` (OI-10, TI-9). The file keeps its length (AI-14).

        Raises:
            ClosedError: the index is closed.
            OutOfBoundsError: the file has been truncated below its entries (AI-11).
        """
        buffer = self._mapped()
        slot, _ = self._bounds(self._offset_codec, self._offset_shift, offset, offsets=True)
        self._truncate_to_entries(self._entries_below(buffer, slot, offset))

    def _truncate_to_entries(self, entries: int) -> None:
        self.entries = entries
        self._mapped().seek(entries * self.entry_size)
        self._refresh_last()

    def _entries_below(self, buffer: MappedBuffer, slot: int, offset: int) -> int:
        """Return the number of entries below ``offset``; ``slot`` has the last entry ≤ ``offset`` (OI-10, TI-9)."""
        if slot < 0:
            return 0
        stored = buffer.get(self._offset_codec, self._byte_position(slot) + self._offset_shift)
        return slot if stored == to_long(offset - self.base_offset) else slot + 1

    def truncate(self) -> None:
        """Remove all entries. The file keeps its length and its bytes (AI-14)."""
        self._truncate_to_entries(0)

    def reset(self) -> None:
        """Remove all entries and resize the file to ``max_index_size`` (AI-15)."""
        self.truncate()
        self.resize(self.max_index_size)

    # -- search ----------------------------------------------------------------------------------------------------

    def _keys(self, codec: struct.Struct, shift: int, *, offsets: bool) -> Keys:
        read = codec.unpack_from
        if offsets and self._wraps:
            base = self.base_offset

            def read_wrapped(data: object, position: int) -> tuple[int]:
                return (to_long(base + codec.unpack_from(data, position)[0]),)  # type: ignore[arg-type]

            return Keys(read_wrapped, self._mapped().data, self.entry_size, shift)
        return Keys(read, self._mapped().data, self.entry_size, shift)

    def _bounds(
        self,
        codec: struct.Struct,
        shift: int,
        target: int,
        *,
        offsets: bool,
        probe: ProbeCallback | None = None,
        search: Search = warm_search,
    ) -> tuple[int, int]:
        """Return both bounds of ``target`` in one column; ``offsets`` is True if the column holds relative offsets."""
        keys = self._keys(codec, shift, offsets=offsets)
        if probe is not None:
            keys = keys.with_probe(self.entries, probe)
        # Comparing relative offsets saves an addition per comparison.
        wanted = target - self.base_offset if offsets and not self._wraps else target
        try:
            return search(keys, self.entries, wanted)
        except struct.error:
            raise OutOfBoundsError(
                f"{self._file} has {self.entries} entries in memory but {self.length} bytes", None
            ) from None

    # -- the file --------------------------------------------------------------------------------------------------

    def resize(self, new_size: int) -> bool:
        """Resize the file to ``new_size`` bytes, rounded down to whole entries, and map it again (AI-10).

        Returns:
            False if the file has that length already.

        Raises:
            InvalidArgumentError: the entries no longer fit; the file has been truncated nevertheless (AI-11).
            ClosedError: the index is closed; a missing file has been created empty.
            OSError: the file cannot be opened or resized; the index is then closed if the dialect unmaps first.
        """
        size = round_down(new_size, self.entry_size)
        if size == self.length:
            return False
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            position = self._mapped().position
            try:
                os.ftruncate(descriptor, size)
                buffer = MappedBuffer(descriptor, size, writable=True, name=self._file)
            except (KidxError, OSError, ValueError, OverflowError):
                if self.dialect.resize_unmaps_first:
                    self.close_handler()
                raise
        finally:
            os.close(descriptor)
        self.close_handler()
        self._mmap = buffer
        self.length = size
        self.max_entries = size // self.entry_size
        try:
            buffer.seek(position)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{self._file}: {self.entries} entries take {position} bytes and do not fit in {size}",
                error.kafka_message,
            ) from None
        return True

    def trim_to_valid_size(self) -> None:
        """Truncate the preallocated tail, so that the file holds only its entries (AI-16).

        Raises:
            ClosedError: the file is unmapped (up to 3.9.1 and in 4.0.0; in other releases the call has no effect).
        """
        if self._mmap is None and self.dialect.unmapped_trim_is_noop:
            return
        self.resize(self.entries * self.entry_size)

    def flush(self) -> None:
        """Write changed pages to the file; from 4.4.0 on, also sync the file, and so a changed length (AI-23).

        Raises:
            ClosedError: the file is unmapped (up to 4.3.1; in later releases the call has no effect).
            OSError: the file cannot be written.
        """
        if self._mmap is None and self.dialect.unmapped_flush_is_noop:
            return
        self._mapped().flush()
        if self.dialect.flush_syncs_file:
            self._sync_file()

    def _sync_file(self) -> None:
        # After a failed move, _file names a file that does not exist (AI-21).
        with contextlib.suppress(FileNotFoundError), Path(self._file).open("rb") as file:
            os.fsync(file)

    def close_handler(self) -> None:
        """Unmap the file without trimming it; a second call has no effect (AI-18)."""
        if self._mmap is not None:
            self._mmap.close()
            self._mmap = None

    def close(self) -> None:
        """Trim the file (up to 4.3.1) and unmap it; a second call has no effect (AI-20)."""
        if self.dialect.close_trims:
            self.trim_to_valid_size()
        self.close_handler()

    def delete_if_exists(self) -> bool:
        """Unmap and delete the file. Return True if it existed."""
        self.close_handler()
        return unlink(self._file)

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        """Move the file. The index uses ``path`` from then on, even if the move fails (AI-21).

        Raises:
            OSError: the move failed.
        """
        target = os.fspath(path)
        try:
            os.replace(self._file, target)  # noqa: PTH105 -- a Path per call is measurable in a million steps
        finally:
            self._moved(target)

    def update_parent_dir(self, directory: str | os.PathLike[str]) -> None:
        """Record that the file's directory has moved, without touching any file (AI-22)."""
        self._moved(os.fspath(Path(directory) / self.path.name))

    def _moved(self, file: str) -> None:
        self._file = file
        self._absolute = None
        if self._mmap is not None:
            self._mmap.name = file
