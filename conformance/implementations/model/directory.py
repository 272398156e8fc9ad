"""Files on disk, as far as the model knows them."""

from __future__ import annotations

from conformance.implementations.model.prediction import UNKNOWN, Unknown

Content = bytearray | None | Unknown
"""Bytes of a file, None if the file does not exist, or UNKNOWN."""


class Directory:
    """Directory of files, which is empty at first and has no subdirectories.

    The buffers are shared with the open index, because a mapped file is the file itself.
    """

    def __init__(self) -> None:
        self._files: dict[str, Content] = {}
        self._others: Content = None

    def read(self, name: str) -> Content:
        """Return the content of a file."""
        return self._files.get(name, self._others)

    def put(self, name: str, content: Content) -> None:
        """Set the content of a file."""
        self._files[name] = content

    def move(self, old: str, new: str) -> None:
        """Rename a file, replacing any file with the new name."""
        content = self.read(old)
        self._files[old] = None
        self._files[new] = content

    def invalidate(self) -> None:
        """Mark all files as unknown."""
        self._files.clear()
        self._others = UNKNOWN
