"""The files on disk, as far as the model knows them."""

from __future__ import annotations

from conformance.implementations.model.prediction import UNKNOWN, Unknown

Content = bytearray | None | Unknown
"""The bytes of a file, None where there is none, UNKNOWN where even that is open."""


class Directory:
    """One directory of plain file names, empty at first.

    The buffers are the ones the open index writes to, the way a mapped file is the file itself.
    """

    def __init__(self) -> None:
        self._files: dict[str, Content] = {}
        self._others: Content = None

    def read(self, name: str) -> Content:
        """What is on disk under a name."""
        return self._files.get(name, self._others)

    def put(self, name: str, content: Content) -> None:
        """From now on, this is on disk under a name."""
        self._files[name] = content

    def move(self, old: str, new: str) -> None:
        """Renames a file, over whatever had the new name."""
        content = self.read(old)
        self._files[old] = None
        self._files[new] = content

    def doubt(self) -> None:
        """Anything may have happened to any file."""
        self._files.clear()
        self._others = UNKNOWN
