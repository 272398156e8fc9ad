"""Interface of remote storage that the cache needs (``RemoteStorageManager.fetchIndex``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kidx.remote.names import RemoteSegment


class RemoteStorage(Protocol):
    """Source of the index files of remote segments."""

    def fetch_index(self, segment: RemoteSegment, kind: str) -> Iterable[bytes]:
        """Return the content of an index file, in pieces.

        Args:
            segment: the segment of the file.
            kind: one of :data:`kidx.remote.names.KINDS`.

        Raises:
            RemoteResourceNotFoundError: the file does not exist.
            RemoteStorageError: the file cannot be fetched.
        """
