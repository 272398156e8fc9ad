"""Defects of the cache of remote index files: names, starts, fetches, lookups, removals, limits, closing.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx.discovery import DELETED
from kidx.errors import CorruptIndexError, KidxError
from kidx.remote import CacheEntry, CacheError, RemoteIndexCache, RemoteSegment
from kidx.remote.entry import KINDS, TEMPORARY

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


class _StartsEmptyAfterErrors(RemoteIndexCache):
    """Base of a cache that starts empty instead of raising errors of some kinds."""

    kinds: tuple[str, ...]

    def load(self) -> dict[bytes, CacheEntry]:
        try:
            return super().load()
        except KidxError as error:
            if error.kind in self.kinds:
                return {}
            raise


@defect("RC-2")
class PassesOverForeignNames(_StartsEmptyAfterErrors):
    """A start ignores names that are no cached files'."""

    kinds = ("out_of_bounds", "invalid_argument")


@defect("RC-2")
class ReadsNoOffsets(_StartsEmptyAfterErrors):
    """A start takes a name that begins with no number for one of offset 0."""

    kinds = ("invalid_number",)


@defect("RC-5")
class StartsWithDamagedFiles(_StartsEmptyAfterErrors):
    """A start skips corrupt files."""

    kinds = (CorruptIndexError.kind,)


@defect("RC-3")
class BeginsEmpty(RemoteIndexCache):
    """A start keeps no entry."""

    def load(self) -> dict[bytes, CacheEntry]:
        for entry in super().load().values():
            entry.close()
        return {}


class _KeepsFiles(RemoteIndexCache):
    """Base of a cache whose start deletes no file that ends like this."""

    suffix: str

    def load(self) -> dict[bytes, CacheEntry]:
        files = {path: path.read_bytes() for path in self.directory.glob(f"*{self.suffix}")}
        loaded = super().load()
        for path, content in files.items():
            if not path.exists():
                path.write_bytes(content)
        return loaded


@defect("RC-3")
class KeepsIncompleteSegments(_KeepsFiles):
    """A start leaves the files of incomplete segments."""

    suffix = "index"


@defect("RC-4b")
class KeepsTemporaryFiles(_KeepsFiles):
    """A start leaves .tmp files."""

    suffix = TEMPORARY


@defect("RC-4b")
class KeepsDeletedFiles(_KeepsFiles):
    """A start leaves .deleted files."""

    suffix = DELETED


# -- fetches ----------------------------------------------------------------------------------------------------


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
    # -- starts and fetches --
    Row("RC-4a", "cleans-up-too-early", "A start of 4.0 deletes leftovers as 4.1 does.",
        "load.load._delete_leftovers.is_leftover", "name in (DELETED, TEMPORARY)",
        "name.endswith((DELETED, TEMPORARY))", release="4.0.2"),
    Row("RC-1", "pads-offsets", "The start offset in a name has twenty digits.",
        "open_or_fetch", "self.directory / segment.file_name(kind)",
        "self.directory / f'{segment.start_offset:020d}_{segment.file_name(kind).partition(\"_\")[2]}'"),
    Row("RC-6", "needs-transactions", "A segment without a transaction index cannot be cached.",
        "_fetch", "kind == '.txnindex' and isinstance(error, RemoteResourceNotFoundError)", "False"),
    Row("RC-6", "fetches-times-first", "The time index is fetched before the offset index.",
        "create", START,
        "if not (self.directory / segment.file_name(KINDS[1])).exists(): "
        "close_unchanged(self.open_or_fetch(segment, KINDS[1]))"),
    Row("RC-7", "removes-broken-streams", "A stream that breaks leaves no .tmp file.",
        "open_or_fetch", "_replace(temporary, pieces)",
        "try: _replace(temporary, pieces)\nexcept OSError: temporary.unlink(missing_ok=True); raise"),
    # -- removals and closing --
    Row("RC-11", "forgets-what-it-cannot-remove", "An entry whose files cannot be renamed is taken out.",
        "remove", "entry.mark()", "try: entry.mark()\nexcept OSError: self._forget(segment_id); raise"),
    Row("RC-13b", "deletes-when-closed", "Closing deletes the files of its entries.",
        "close", "for entry in self.entries.values(): entry.close()",
        "for entry in self.entries.values(): entry.close()\nfor path in self.directory.glob('*index'): path.unlink()"),
)
# fmt: on


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
