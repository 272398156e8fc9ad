"""Defects of the cache of remote index files: removals, limits and closing.

A row is a mutant: violated clause, name, defect, function (the names that lead to it from the class), fragment of its
source (``START``: its beginning), and replacement. A class with ``@defect`` is a mutant, too.
"""

from __future__ import annotations

from pathlib import Path

from conformance.implementations.mutants.registry import START, Row, defect, plant
from kidx.remote import CacheError, RemoteIndexCache

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
