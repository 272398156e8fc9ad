"""Defects of the cache of remote index files: names, starts, fetches, lookups, removals, limits, closing.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx.discovery import DELETED
from kidx.errors import CorruptIndexError, KidxError
from kidx.remote import CacheEntry, CacheError, RemoteIndexCache, RemoteSegment
from kidx.remote.entry import KINDS, TEMPORARY, close_unchanged

if TYPE_CHECKING:
    from kidx.remote.entry import Index

# fmt: off
plant(
    RemoteIndexCache,
    # -- fetches --
    Row("RC-6", "believes-damaged-files", "A corrupt file in the directory is an error, and is not fetched again.",
        "open_or_fetch", START,
        "if (path := self.directory / segment.file_name(kind)).exists(): return open_index(path, kind, "
        "segment.start_offset, self.dialect)"),
    Row("RC-6", "always-fetches", "Files in the directory are fetched again.",
        "open_or_fetch", START, "(self.directory / segment.file_name(kind)).unlink(missing_ok=True)"),
    Row("RC-15", "knows-start-offsets", "An entry with another start offset does not belong to the segment.",
        "_entry", START,
        "if (known := self.entries.get(segment.id)) and known.offset_index.base_offset != segment.start_offset: "
        "self._evict(segment.id)"),
    # -- lookups --
    Row("RC-8", "looks-before-the-offset", "A lookup returns the entry below the offset, not at it.",
        "lookup_offset", START, "offset -= 1"),
    Row("RC-8", "forgets-the-starting-offset", "A lookup of a timestamp ignores the starting offset.",
        "lookup_timestamp", START, "starting_offset = 0"),
    Row("RC-8", "looks-behind-the-timestamp", "A lookup of a timestamp takes the entry of the next millisecond.",
        "lookup_timestamp", START, "timestamp += 1"),
    Row("RC-9b", "refuses-marked-entries", "A removed entry rejects lookups from its removal on.",
        "entry_type.lookup_offset", START, "self.is_cleaned = self.is_cleaned or self.is_marked"),
    Row("RC-9a", "answers-from-removed-entries", "An entry of 4.0 answers after its removal.",
        "entry_type._check_present", START, "return", release="4.0.2"),
)
# fmt: on


# -- starts -----------------------------------------------------------------------------------------------------


@defect("RC-2")
class PassesOverForeignNames(RemoteIndexCache):
    """A start ignores names that are no cached files'."""

    def load(self) -> dict[bytes, CacheEntry]:
        try:
            return super().load()
        except KidxError as error:
            if error.kind in ("out_of_bounds", "invalid_argument"):
                return {}
            raise


@defect("RC-2")
class ReadsNoOffsets(RemoteIndexCache):
    """A start takes a name that begins with no number for one of offset 0."""

    def load(self) -> dict[bytes, CacheEntry]:
        try:
            return super().load()
        except KidxError as error:
            if error.kind == "invalid_number":
                return {}
            raise


@defect("RC-5")
class StartsWithDamagedFiles(RemoteIndexCache):
    """A start skips corrupt files."""

    def load(self) -> dict[bytes, CacheEntry]:
        try:
            return super().load()
        except CorruptIndexError:
            return {}


@defect("RC-3")
class BeginsEmpty(RemoteIndexCache):
    """A start keeps no entry."""

    def load(self) -> dict[bytes, CacheEntry]:
        for entry in super().load().values():
            entry.close()
        return {}


@defect("RC-3")
class KeepsIncompleteSegments(RemoteIndexCache):
    """A start leaves the files of incomplete segments."""

    def load(self) -> dict[bytes, CacheEntry]:
        files = {path: path.read_bytes() for path in self.directory.glob("*index")}
        loaded = super().load()
        for path, content in files.items():
            if not path.exists():
                path.write_bytes(content)
        return loaded


@defect("RC-4b")
class KeepsTemporaryFiles(RemoteIndexCache):
    """A start leaves .tmp files."""

    def load(self) -> dict[bytes, CacheEntry]:
        left = list(self.directory.glob(f"*{TEMPORARY}"))
        loaded = super().load()
        for path in left:
            path.touch()
        return loaded


@defect("RC-4b")
class KeepsDeletedFiles(RemoteIndexCache):
    """A start leaves .deleted files."""

    def load(self) -> dict[bytes, CacheEntry]:
        left = {path: path.read_bytes() for path in self.directory.glob(f"*{DELETED}")}
        loaded = super().load()
        for path, content in left.items():
            path.write_bytes(content)
        return loaded


@defect("RC-4a", release="4.0.2")
class CleansUpTooEarly(RemoteIndexCache):
    """A start of 4.0 deletes leftovers as 4.1 does."""

    def load(self) -> dict[bytes, CacheEntry]:
        for path in (*self.directory.glob(f"*{TEMPORARY}"), *self.directory.glob(f"*{DELETED}")):
            path.unlink()
        return super().load()


# -- fetches ----------------------------------------------------------------------------------------------------


@defect("RC-1")
class PadsOffsets(RemoteIndexCache):
    """The start offset in a name has twenty digits."""

    def create(self, segment: RemoteSegment) -> CacheEntry:
        entry = super().create(segment)
        for index in (entry.offset_index, entry.time_index, entry.transactions):
            name = index.path.name
            index.rename_to(index.path.with_name(f"{segment.start_offset:020d}_{name.partition('_')[2]}"))
        return entry


@defect("RC-6")
class NeedsTransactions(RemoteIndexCache):
    """A segment without a transaction index cannot be cached."""

    def open_or_fetch(self, segment: RemoteSegment, kind: str) -> Index:
        try:
            self.storage.fetch_index(segment, kind)
        except KidxError as error:
            raise CacheError("missing", None) from error
        return super().open_or_fetch(segment, kind)


@defect("RC-6")
class FetchesTimesFirst(RemoteIndexCache):
    """The time index is fetched before the offset index."""

    def create(self, segment: RemoteSegment) -> CacheEntry:
        path = self.directory / segment.file_name(KINDS[1])
        if not path.exists():
            close_unchanged(self.open_or_fetch(segment, KINDS[1]))
        return super().create(segment)


@defect("RC-7")
class LeavesNothingOfAFailedFetch(RemoteIndexCache):
    """A fetch that fails removes the file that it has fetched."""

    def create(self, segment: RemoteSegment) -> CacheEntry:
        try:
            return super().create(segment)
        except (KidxError, OSError):
            for kind in KINDS:
                (self.directory / segment.file_name(kind)).unlink(missing_ok=True)
            raise


@defect("RC-7")
class RemovesBrokenStreams(RemoteIndexCache):
    """A stream that breaks leaves no .tmp file."""

    def open_or_fetch(self, segment: RemoteSegment, kind: str) -> Index:
        try:
            return super().open_or_fetch(segment, kind)
        except OSError:
            (self.directory / f"{segment.file_name(kind)}{TEMPORARY}").unlink(missing_ok=True)
            raise


# fmt: off
plant(
    RemoteIndexCache,
    Row("RC-10b", "deletes-at-once", "The files of a removed entry are deleted immediately.",
        "_delete_later", START, "entry.clean(); return"),
    Row("RC-10a", "deletes-later", "The files of a removed entry of 4.0 are deleted later.",
        "_delete_later", START, "self._removed.append(entry); return", release="4.0.2"),
    Row("RC-10b", "never-deletes", "The files of a removed entry are never deleted.",
        "delete_removed", START, "self._removed.clear(); return"),
    Row("RC-12b", "has-no-limit", "The limit is ignored.",
        "resize", START, "max_size = max_size if max_size < 0 else 1 << 40"),
    Row("RC-12b", "counts-entries", "The limit is one of entries.",
        "_weight", START, "return 1"),
    Row("RC-12c", "counts-empty-entries", "An entry without a byte counts as one.",
        "_weight", "entry.size", "max(1, entry.size)"),
    Row("RC-13b", "answers-when-closed", "A closed cache opens entries.",
        "close", "self.is_closed = True", "pass"),
    Row("RC-14", "keeps-unused-entries", "An unused entry does not expire.",
        "_is_expired", START, "return False"),
    Row("RC-14", "expires-too-late", "An unused entry expires a millisecond too late.",
        "_is_expired", "self._clock() - used >= self.ttl_ms", "self._clock() - used > self.ttl_ms"),
)
# fmt: on


@defect("RC-11")
class ForgetsWhatItCannotRemove(RemoteIndexCache):
    """An entry whose files cannot be renamed is taken out."""

    def remove(self, *segment_ids: bytes) -> None:
        for segment_id in segment_ids:
            try:
                super().remove(segment_id)
            except CacheError:
                self._forget(segment_id)
                raise


@defect("RC-11")
class GoesOnRemoving(RemoteIndexCache):
    """A removal that fails does not end the removal of the other segments."""

    def remove(self, *segment_ids: bytes) -> None:
        failed: CacheError | None = None
        for segment_id in segment_ids:
            try:
                super().remove(segment_id)
            except CacheError as error:
                failed = error
        if failed is not None:
            raise failed


@defect("RC-13b")
class DeletesWhenClosed(RemoteIndexCache):
    """Closing deletes the files of its entries."""

    def close(self) -> None:
        super().close()
        for path in map(Path, self.directory.glob("*index")):
            path.unlink()
