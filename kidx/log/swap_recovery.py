"""Recovery of the files that an interrupted cleaner left (``LogLoader``; CL-17, CL-18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kidx.discovery import INDEX_SUFFIXES, LOG, SEGMENT_SUFFIXES
from kidx.log.segments import CLEANED, DELETED, SWAP, Segments
from kidx.segment.files import file_name

if TYPE_CHECKING:
    from kidx.segment import LogSegment


class SwapFiles:
    """Temporary files that an interrupted cleaner left in a log directory.

    Args:
        directory: directory of the log.
        are_trusted: function that returns True if loading accepts swapped segments unchanged (CL-18); only called if
            such files exist.
        open_swapped: function that opens the swapped segment with a base offset.
    """

    def __init__(
        self, directory: Path, are_trusted: Callable[[], bool], open_swapped: Callable[[int], LogSegment]
    ) -> None:
        self._directory = directory
        self._are_trusted = are_trusted
        self._open = open_swapped
        self._logs: list[int] = []

    def resolve(self) -> None:
        """Delete obsolete temporary files, and rename .swap files to their final names if the release trusts them.

        Raises:
            KidxError, OSError: a swapped segment cannot be read, or a file cannot be deleted.
        """
        for file in self._files(DELETED):
            file.unlink()
        cleaned, swapped = self._files(CLEANED), self._files(SWAP)
        smallest = min(map(_offset_of, cleaned), default=None)
        for file in cleaned:
            file.unlink()
        if not swapped:
            return
        valid = [file for file in swapped if smallest is None or _offset_of(file) < smallest]
        self._logs = sorted(_offset_of(file) for file in valid if _is_log(file))
        if self._are_trusted():
            for file in swapped:
                if file not in valid:
                    file.unlink()
            self._rename()
            return
        for file in swapped:
            self._delete(file, INDEX_SUFFIXES, "")
        for file in swapped:
            if _is_log(file) and file not in valid:
                self._delete(file, SEGMENT_SUFFIXES, SWAP)

    def _files(self, suffix: str) -> list[Path]:
        return [file for file in self._directory.iterdir() if file.name.endswith(suffix)]

    def _delete(self, file: Path, kinds: Iterable[str], suffix: str) -> None:
        """Delete files of the same segment, if they exist."""
        for kind in kinds:
            (self._directory / (file_name(_offset_of(file), kind) + suffix)).unlink(missing_ok=True)

    def _rename(self) -> None:
        """Delete the files and snapshots at offsets that the swapped segments cover; rename the swapped files.

        Reading the end offset of a segment creates a missing offset index, which is renamed, too.
        """
        ends = []
        for base in self._logs:
            segment = self._open(base)
            ends.append(segment.read_next_offset())
            segment.release_handles()
        for file in self._directory.iterdir():
            name = file.name.partition(".")[0]
            covered = bool(ends) and name.isdecimal() and self._logs[0] <= int(name) < max(ends)
            if covered and not file.name.endswith(SWAP):
                file.unlink()
        for file in self._files(SWAP):
            file.replace(file.with_name(file.name.removesuffix(SWAP)))

    def recover(self, segments: Segments, recover: Callable[[LogSegment], object]) -> None:
        """Recover each swapped segment if the release does not trust them, and replace the segments that it covers.

        Args:
            segments: the loaded segments.
            recover: function that recovers one segment.

        Raises:
            KidxError, OSError: a segment cannot be recovered, or a file cannot be renamed.
        """
        if not self._logs or self._are_trusted():
            return
        for base in self._logs:
            swapped = self._open(base)
            recover(swapped)
            covered = segments.values_between(base, swapped.read_next_offset())
            old = [segment for segment in covered if segment.read_next_offset() > base]
            segments.add(swapped)
            for segment in old:
                segments.detach_replaced(segment, swapped)
            swapped.change_file_suffixes(SWAP, "")


def _is_log(file: Path) -> bool:
    return file.name.endswith(LOG + SWAP)


def _offset_of(file: Path) -> int:
    return int(file.name.partition(".")[0])
