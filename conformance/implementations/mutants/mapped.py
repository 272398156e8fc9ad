"""Defects of the mapped file of both indexes: sizes, closing, renaming. Each is planted in one of the two.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from conformance.implementations.mutants.planting import overwrite_bytes
from conformance.implementations.mutants.registry import START, TRIMMING, Row, defect, plant
from kidx import OffsetIndex, TimeIndex
from kidx.errors import InvalidArgumentError
from kidx.java_values import round_down

if TYPE_CHECKING:
    from kidx.index.mapped_buffer import MappedBuffer

# fmt: off
plant(
    OffsetIndex,
    # -- opening --
    Row("AI-3a", "preallocates-unrounded",
        "A new file gets exactly the maximum size, not rounded down to whole entries.",
        "_preallocated_size", "round_down(self.max_index_size, self.entry_size)", "self.max_index_size"),
    Row("AI-3b", "refuses-a-single-entry", "A new file must hold more than one entry (``<=`` for ``<``).",
        "_preallocated_size", "self.max_index_size < self.entry_size", "self.max_index_size <= self.entry_size"),
    Row("AI-3c", "removes-a-refused-file", "A new file that cannot hold an entry is removed again.",
        "_preallocated_size", START, "if self.max_index_size < self.entry_size: os.unlink(self._file)"),
    Row("AI-5", "grows-when-opened", "An existing file is extended to the maximum size when it is opened.",
        "_create_and_map", START,
        "if self.writable and os.path.exists(self._file) and os.path.getsize(self._file) < self.max_index_size: "
        "os.truncate(self._file, round_down(self.max_index_size, self.entry_size))"),
    # -- resizing --
    Row("AI-10", "rounds-up", "A new size is rounded up to whole entries.",
        "resize", "round_down(new_size, self.entry_size)", "round_down(-(-new_size // 8) * 8, self.entry_size)"),
    Row("AI-10", "counts-the-file-as-entries", "After a resize all slots of the file count as entries.",
        "resize", "return True",
        "self.entries = self.max_entries; buffer.seek(self.entries * self.entry_size); return True"),
    Row("AI-10", "starts-over-after-a-resize", "After a resize, the next entry overwrites the first one.",
        "resize", "return True", "buffer.seek(0); return True"),
    Row("AI-10", "always-resizes", "A resize to the current length returns True.",
        "resize", "return False", "return True"),
    Row("AI-10", "stays-read-only", "A resize maps a file read-only if it was opened read-only.",
        "resize", "return True", "buffer.writable = self.writable; return True"),
    Row("AI-11a", "forgets-entries-cut-off", "A resize below the entries reduces the number of entries.",
        "resize", "error.kafka_message",
        "setattr(self, 'entries', min(self.entries, self.max_entries)) or error.kafka_message"),
    Row("AI-15a", "reset-forgets-the-size", "A reset empties the index and does not change the length of the file.",
        "reset", "self.resize(self.max_index_size)", "pass"),
    Row("AI-14a", "truncates-the-file", "Removing all entries also truncates the file.",
        "truncate", "self._truncate_to_entries(0)", "self._truncate_to_entries(0); self.trim_to_valid_size()"),
    Row("AI-16a", "trims-one-entry-too-few", "Trimming leaves one free slot after the entries.",
        "trim_to_valid_size", "self.entries * self.entry_size",
        "(self.entries + (self.length >= (self.entries + 1) * self.entry_size)) * self.entry_size"),
    Row("AI-16b", "trims-in-silence", "Trimming a closed index has no effect, as in later releases.",
        "trim_to_valid_size", "self._mmap is None and self.dialect.unmapped_trim_is_noop", "self._mmap is None",
        release="3.9.1"),
    # -- closing and moving --
    Row("AI-42a", "forgets-to-trim", "Closing keeps the preallocated tail, as in later releases.",
        "close", "self.dialect.close_trims", "False", release=TRIMMING),
    Row("AI-42b", "leaves-a-lock-file", "Closing leaves another file next to the index.",
        "close", "self.close_handler()", "self.close_handler(); self.path.with_suffix('.lock').touch()"),
    Row("AI-20a", "refuses-a-second-close", "A second close raises an error.",
        "close", START, "self._mapped()"),
    Row("AI-19e", "forgets-itself-when-closed", "A closed index reports no entries.",
        "close", "self.close_handler()", "self.close_handler(); self.entries = 0"),
    Row("AI-20b", "forgets-to-delete", "Deleting unmaps the file, but does not delete it.",
        "delete_if_exists", "unlink(self._file)", "os.path.exists(self._file)"),
    Row("AI-20b", "always-says-it-deleted", "Deleting reports that a file existed even if it did not.",
        "delete_if_exists", "return unlink(self._file)", "unlink(self._file); return True"),
    Row("OI-11", "refuses-an-empty-file",
        "The sanity check rejects a length of zero, as the text of its error suggests.",
        "sanity_check", START,
        "if self.length == 0: raise CorruptIndexError('empty', 'found 0 bytes which is neither positive nor a "
        "multiple')"),
)

plant(
    TimeIndex,
    Row("AI-3a", "rounds-to-another-entry-size",
        "A new time index is rounded down to whole entries of an offset index.",
        "_preallocated_size", "round_down(self.max_index_size, self.entry_size)",
        "max(round_down(round_down(self.max_index_size, 12) + 11, 8), 12)"),
    Row("AI-5", "cuts-the-partial-entry",
        "A partial entry at the end of an existing file is cut off when it is opened.",
        "_create_and_map", START,
        "if os.path.exists(self._file): os.truncate(self._file, round_down(os.path.getsize(self._file), "
        "self.entry_size))"),
    Row("AI-16a", "trims-whole-entries-only", "Trimming does nothing if it would remove only a partial entry.",
        "trim_to_valid_size", START, "if self.length // self.entry_size == self.entries: return"),
    Row("AI-42b", "trims-when-closing", "Closing trims the file, as up to 4.3.",
        "close", "self.dialect.close_trims", "self._mmap is not None"),
    Row("AI-19b", "flushes-in-silence", "Flushing a closed index has no effect, as in later releases.",
        "flush", "self._mmap is None and self.dialect.unmapped_flush_is_noop", "self._mmap is None", release=TRIMMING),
    Row("AI-21a", "ignores-a-failed-rename", "A rename that fails is not reported.",
        "rename_to", "os.replace(self._file, target)",
        "with contextlib.suppress(OSError): os.replace(self._file, target)"),
    Row("AI-21a", "forgets-its-new-name", "After a rename the index still uses its old name.",
        "rename_to", "self._moved(target)", "pass"),
)
# fmt: on


# -- opening -----------------------------------------------------------------------------------------------------------


@defect("AI-5")
class SkipsTheZeroTail(OffsetIndex):
    """Zeros at the end of an existing file do not count as entries."""

    def _create_and_map(self) -> MappedBuffer:
        buffer = super()._create_and_map()
        while buffer.position >= 8 and not any(buffer.data[buffer.position - 8 : buffer.position]):
            buffer.seek(buffer.position - 8)
        return buffer


# -- resizing ----------------------------------------------------------------------------------------------------------


@defect("AI-10")
class ForgetsTheNewCapacity(TimeIndex):
    """A resize does not change the capacity."""

    def resize(self, new_size: int) -> bool:
        fit = self.max_entries
        resized = super().resize(new_size)
        self.max_entries = fit
        return resized


@defect("AI-11a")
class RefusesToCutEntries(TimeIndex):
    """A size below the entries is rejected before the file is changed."""

    def resize(self, new_size: int) -> bool:
        size = round_down(new_size, self.entry_size)
        if self._mmap is not None and 0 <= size < self._mmap.position:
            raise InvalidArgumentError(
                f"a resize to {size} bytes would remove entries of {self._mmap.position} bytes",
                f"newPosition > limit: ({self._mmap.position} > {size})",
            )
        return super().resize(new_size)


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


@defect("AI-15b")
class ResetClears(TimeIndex):
    """A reset also clears the bytes of the file."""

    def reset(self) -> None:
        self.truncate()
        buffer = self._mapped()
        if buffer.writable and buffer.limit:
            buffer.data[0 : buffer.limit] = bytes(buffer.limit)
        self.resize(self.max_index_size)


@defect("AI-14b")
class ClearsOnTruncation(OffsetIndex):
    """Removing all entries clears the first of them."""

    def truncate(self) -> None:
        entries = self.entries
        super().truncate()
        if entries:
            overwrite_bytes(self, 0, lambda data: bytes(len(data)))


# -- closing and moving ------------------------------------------------------------------------------------------------


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
    """After a failed rename the index keeps its old name."""

    def rename_to(self, path: str | os.PathLike[str]) -> None:
        old = self._file
        try:
            super().rename_to(path)
        except OSError:
            self._moved(old)
            raise
