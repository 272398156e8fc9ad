"""Defects of the mapped file of both indexes: sizes, closing, renaming. Each is planted in one of the two."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.implementations.mutants.patching import spoil
from conformance.implementations.mutants.registry import TRIMMING, defect
from kidx import OffsetIndex, TimeIndex
from kidx.errors import CorruptIndexError, InvalidArgumentError
from kidx.java_numbers import round_down

if TYPE_CHECKING:
    from kidx.index.mapped_buffer import MappedBuffer

# -- opening -----------------------------------------------------------------------------------------------------------


@defect("AI-3a")
class PreallocatesUnrounded(OffsetIndex):
    """A new file gets exactly the maximum size, not rounded down to whole entries."""

    def _preallocated_size(self) -> int:
        super()._preallocated_size()
        return self.max_index_size


@defect("AI-3a")
class RoundsToAnotherEntrySize(TimeIndex):
    """A new time index is rounded down to whole entries of an offset index."""

    def _preallocated_size(self) -> int:
        return max(round_down(super()._preallocated_size() + 11, 8), 12)


@defect("AI-3b")
class RefusesASingleEntry(OffsetIndex):
    """A new file must hold more than one entry (``<=`` for ``<``)."""

    def _preallocated_size(self) -> int:
        if self.max_index_size == self.entry_size:
            raise InvalidArgumentError("too small", f"Invalid max index size: {self.max_index_size}")
        return super()._preallocated_size()


@defect("AI-3c")
class RemovesARefusedFile(OffsetIndex):
    """A new file that cannot hold an entry is removed again."""

    def _preallocated_size(self) -> int:
        try:
            return super()._preallocated_size()
        except InvalidArgumentError:
            os.unlink(self._file)  # noqa: PTH108 -- as in the class
            raise


@defect("AI-5")
class SkipsTheZeroTail(OffsetIndex):
    """Zeros at the end of an existing file do not count as entries."""

    def _create_and_map(self) -> MappedBuffer:
        buffer = super()._create_and_map()
        while buffer.position >= 8 and not any(buffer.data[buffer.position - 8 : buffer.position]):
            buffer.seek(buffer.position - 8)
        return buffer


@defect("AI-5")
class CutsThePartialEntry(TimeIndex):
    """A partial entry at the end of an existing file is cut off when it is opened."""

    def _create_and_map(self) -> MappedBuffer:
        path = Path(self._file)
        if path.exists() and path.stat().st_size % self.entry_size:
            os.truncate(path, round_down(path.stat().st_size, self.entry_size))
        return super()._create_and_map()


@defect("AI-5")
class GrowsWhenOpened(OffsetIndex):
    """An existing file is made as long as the maximum size when it is opened."""

    def _create_and_map(self) -> MappedBuffer:
        path = Path(self._file)
        if path.exists() and self.writable and path.stat().st_size < self.max_index_size:
            os.truncate(path, round_down(self.max_index_size, self.entry_size))
        return super()._create_and_map()


# -- resizing ----------------------------------------------------------------------------------------------------------


@defect("AI-10")
class RoundsUp(OffsetIndex):
    """A new size is rounded up to whole entries."""

    def resize(self, new_size: int) -> bool:
        return super().resize(-(-new_size // 8) * 8)


@defect("AI-10")
class CountsTheFileAsEntries(OffsetIndex):
    """After a resize all slots of the file count as entries."""

    def resize(self, new_size: int) -> bool:
        resized = super().resize(new_size)
        if resized:
            self.entries = self.max_entries
            self._mapped().seek(self.entries * self.entry_size)
        return resized


@defect("AI-10")
class ForgetsTheNewCapacity(TimeIndex):
    """A resize does not change the capacity."""

    def resize(self, new_size: int) -> bool:
        fit = self.max_entries
        resized = super().resize(new_size)
        self.max_entries = fit
        return resized


@defect("AI-10")
class StartsOverAfterAResize(OffsetIndex):
    """A resize forgets where the next entry goes: it overwrites the first."""

    def resize(self, new_size: int) -> bool:
        resized = super().resize(new_size)
        if resized:
            self._mapped().seek(0)
        return resized


@defect("AI-10")
class AlwaysResizes(OffsetIndex):
    """A resize to the length that the file has already claims to have changed it."""

    def resize(self, new_size: int) -> bool:
        super().resize(new_size)
        return True


@defect("AI-10")
class StaysReadOnly(OffsetIndex):
    """A resize maps a file read-only again that was opened read-only."""

    def resize(self, new_size: int) -> bool:
        resized = super().resize(new_size)
        if resized:
            self._mapped().writable = self.writable
        return resized


@defect("AI-11a")
class RefusesToCutEntries(TimeIndex):
    """A size below the entries is rejected before the file is changed."""

    def resize(self, new_size: int) -> bool:
        size = round_down(new_size, self.entry_size)
        if self._mmap is not None and 0 <= size < self._mmap.position:
            raise InvalidArgumentError("too small", f"newPosition > limit: ({self._mmap.position} > {size})")
        return super().resize(new_size)


@defect("AI-11a")
class ForgetsEntriesCutOff(OffsetIndex):
    """A size below the entries drops them from the count."""

    def resize(self, new_size: int) -> bool:
        try:
            return super().resize(new_size)
        except InvalidArgumentError:
            self.entries = min(self.entries, self.max_entries)
            raise


@defect("AI-13b")
class ClearsTheTailWhenGrowing(OffsetIndex):
    """A resize clears the bytes of removed entries."""

    def resize(self, new_size: int) -> bool:
        resized = super().resize(new_size)
        buffer = self._mapped()
        used = self.entries * self.entry_size
        if resized and used < buffer.limit:
            buffer.data[used : buffer.limit] = bytes(buffer.limit - used)
        return resized


@defect("AI-15a")
class ResetForgetsTheSize(OffsetIndex):
    """A reset empties the index and does not change the length of the file."""

    def reset(self) -> None:
        self.truncate()


@defect("AI-15b")
class ResetClears(TimeIndex):
    """A reset also clears the bytes of the file."""

    def reset(self) -> None:
        self.truncate()
        buffer = self._mapped()
        if buffer.writable and buffer.limit:
            buffer.data[0 : buffer.limit] = bytes(buffer.limit)
        self.resize(self.max_index_size)


@defect("AI-14a")
class TruncatesTheFile(OffsetIndex):
    """Removing all entries also cuts the file."""

    def truncate(self) -> None:
        super().truncate()
        self.trim_to_valid_size()


@defect("AI-14b")
class ClearsOnTruncation(OffsetIndex):
    """Removing all entries clears the first of them."""

    def truncate(self) -> None:
        entries = self.entries
        super().truncate()
        if entries:
            spoil(self, 0, lambda data: bytes(len(data)))


@defect("AI-16a")
class TrimsOneEntryTooFew(OffsetIndex):
    """Trimming leaves one free slot after the entries."""

    def trim_to_valid_size(self) -> None:
        if self._mmap is not None and self.length >= (self.entries + 1) * self.entry_size:
            self.resize((self.entries + 1) * self.entry_size)
        else:
            super().trim_to_valid_size()


@defect("AI-16a")
class TrimsWholeEntriesOnly(TimeIndex):
    """Trimming does nothing if it would remove only a partial entry."""

    def trim_to_valid_size(self) -> None:
        if self.length // self.entry_size != self.entries:
            super().trim_to_valid_size()


@defect("AI-16b", release="3.9.1")
class TrimsInSilence(OffsetIndex):
    """Trimming a closed index does nothing, a few releases too early."""

    def trim_to_valid_size(self) -> None:
        if self._mmap is not None:
            super().trim_to_valid_size()


# -- closing and moving ------------------------------------------------------------------------------------------------


@defect("AI-42a", release=TRIMMING)
class ForgetsToTrim(OffsetIndex):
    """Closing leaves the preallocated tail, a few releases too early."""

    def close(self) -> None:
        self.close_handler()


@defect("AI-42b")
class TrimsWhenClosing(TimeIndex):
    """Closing trims, which 4.4 has given up."""

    def close(self) -> None:
        if self._mmap is not None:
            self.trim_to_valid_size()
        self.close_handler()


@defect("AI-42b")
class LeavesALockFile(OffsetIndex):
    """Closing leaves another file next to the index."""

    def close(self) -> None:
        super().close()
        self.path.with_suffix(".lock").touch()


@defect("AI-20a")
class RefusesASecondClose(OffsetIndex):
    """Closing once more fails."""

    def close(self) -> None:
        self._mapped()
        super().close()


@defect("AI-19b", release=TRIMMING)
class FlushesInSilence(TimeIndex):
    """Flushing a closed index does nothing, a few releases too early."""

    def flush(self) -> None:
        if self._mmap is not None:
            super().flush()


@defect("AI-19e")
class ForgetsItselfWhenClosed(OffsetIndex):
    """A closed index has no entries any more."""

    def close(self) -> None:
        super().close()
        self.entries = 0


@defect("AI-20b")
class ForgetsToDelete(OffsetIndex):
    """Deleting unmaps the file and leaves it."""

    def delete_if_exists(self) -> bool:
        there = self.path.exists()
        self.close_handler()
        return there


@defect("AI-20b")
class AlwaysSaysItDeleted(OffsetIndex):
    """Deleting reports that a file existed even if it did not."""

    def delete_if_exists(self) -> bool:
        super().delete_if_exists()
        return True


@defect("AI-21a")
class CopiesInsteadOfMoving(OffsetIndex):
    """A rename leaves a file under the old name."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        old = self.path
        super().rename_to(path)
        if self.path.exists() and not old.exists():
            shutil.copy(self.path, old)


@defect("AI-21b")
class KeepsItsNameAfterAFailure(OffsetIndex):
    """After a rename that failed the index still has its old name."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        old = self._file
        try:
            super().rename_to(path)
        except OSError:
            self._moved(old)
            raise


@defect("AI-21a")
class ForgetsItsNewName(TimeIndex):
    """After a rename the index continues under its old name, and deletes a new file there."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        old = self._file
        super().rename_to(path)
        self._moved(old)


@defect("AI-21a")
class IgnoresAFailedRename(TimeIndex):
    """A rename that fails is not reported."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        with contextlib.suppress(OSError):
            super().rename_to(path)


@defect("OI-11")
class RefusesAnEmptyFile(OffsetIndex):
    """The sanity check takes a length of zero for no multiple of an entry, as its text could be read."""

    def sanity_check(self) -> None:
        if self.length == 0:
            raise CorruptIndexError("empty", "found 0 bytes which is neither positive nor a multiple")
        super().sanity_check()
