"""Defects of the cache of remote index files: removals, limits and closing."""

from __future__ import annotations

from pathlib import Path

from conformance.implementations.mutants.cache_registry import defect
from kidx.remote import CacheEntry, CacheError, RemoteIndexCache


@defect("RC-10b")
class DeletesAtOnce(RemoteIndexCache):
    """The files of a removed entry are deleted immediately."""

    def _delete_later(self, entry: CacheEntry) -> None:
        entry.clean()


@defect("RC-10a", "4.0.2")
class DeletesLater(RemoteIndexCache):
    """The files of a removed entry of 4.0 are deleted later."""

    def _delete_later(self, entry: CacheEntry) -> None:
        self._removed.append(entry)


@defect("RC-10b")
class NeverDeletes(RemoteIndexCache):
    """The files of a removed entry are never deleted."""

    def delete_removed(self) -> None:
        self._removed.clear()


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


@defect("RC-12b")
class HasNoLimit(RemoteIndexCache):
    """The limit is ignored."""

    def resize(self, max_size: int) -> None:
        super().resize(max_size if max_size < 0 else 1 << 40)


@defect("RC-12b")
class CountsEntries(RemoteIndexCache):
    """The limit is one of entries."""

    def _weight(self, entry: CacheEntry) -> int:
        del entry
        return 1


@defect("RC-12c")
class CountsEmptyEntries(RemoteIndexCache):
    """An entry without a byte counts as one."""

    def _weight(self, entry: CacheEntry) -> int:
        return max(1, super()._weight(entry))


@defect("RC-13b")
class AnswersWhenClosed(RemoteIndexCache):
    """A closed cache opens entries."""

    def close(self) -> None:
        super().close()
        self.is_closed = False


@defect("RC-13b")
class DeletesWhenClosed(RemoteIndexCache):
    """Closing deletes the files of its entries."""

    def close(self) -> None:
        super().close()
        for path in map(Path, self.directory.glob("*index")):
            path.unlink()


@defect("RC-14")
class KeepsUnusedEntries(RemoteIndexCache):
    """An unused entry does not expire."""

    def _is_expired(self, segment_id: bytes) -> bool:
        del segment_id
        return False


@defect("RC-14")
class ExpiresTooLate(RemoteIndexCache):
    """An unused entry expires a millisecond too late."""

    def _is_expired(self, segment_id: bytes) -> bool:
        used = self._used.get(segment_id)
        return super()._is_expired(segment_id) and used is not None and self._clock() - used > self.ttl_ms
