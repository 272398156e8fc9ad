"""One remote segment. Its files are copied to this machine when it is searched, unless they are local already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kidx.discovery import Segment
from kidx.index.entries import TimestampOffset
from kidx.lookup.file_segment import FileSegment
from kidx.records import NO_TIMESTAMP
from kidx.remote import RemoteStorageError
from kidx.remote.stored import LOG

if TYPE_CHECKING:
    from kidx.dialect import Dialect
    from kidx.remote.stored import StoredSegment
    from kidx.segment.segment import SegmentReader


class RemoteFileSegment(FileSegment):
    """Remote segment as a broker reads it: a missing or corrupt index is an error, and nothing is rebuilt.

    Args:
        stored: the files of the segment.
        dialect: rules of a release.
        scratch: directory for copies of files that are not on this machine.
    """

    tier = "remote"

    def __init__(self, stored: StoredSegment, dialect: Dialect, scratch: Path) -> None:
        self.stored = stored
        log = Path(stored.path(LOG))
        if not stored.store.has_files:
            log = scratch / log.name
        existing = frozenset(f".{suffix}" for suffix in stored.suffixes)
        super().__init__(
            Segment(log, stored.base_offset, existing=existing, is_last=False, clean=True), dialect, scratch
        )

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """Largest timestamp in milliseconds; its offset is not read."""
        dated = self.stored.files.get("timeindex")
        timestamp = self.largest_timestamp if dated is not None and dated.size else NO_TIMESTAMP
        return TimestampOffset(timestamp, self.base_offset)

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp of the time index, or else the modification time of the remote log, in milliseconds."""
        return self.stored.largest_timestamp

    @property
    def log_size(self) -> int:
        """Size of the log in bytes."""
        return self.stored.size

    def _open(self) -> SegmentReader:
        if missing := self.stored.missing:
            name = self.stored.name(missing[0])
            raise RemoteStorageError(f"{name} is missing in remote storage: a broker answers with an error", None)
        if not self.stored.store.has_files:
            for entry in self.stored.files.values():
                self.stored.store.fetch(entry.path, self.files.log.with_name(entry.name))
        return super()._open()

    def _recovered(self, reason: str) -> NoReturn:
        raise RemoteStorageError(f"{self.stored.name(LOG)}: {reason.partition(',')[0]}", None)
