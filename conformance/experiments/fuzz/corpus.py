"""What is kept between runs: contents worth mutating further, one file each, named after what is in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from conformance.errors import ToolError
from kidx.files import replacing


class Corpus:
    """The contents of one format, in a directory that survives the run.

    Args:
        directory: made if it is missing.
        seeds: valid files, always part of it.

    Attributes:
        contents: the seeds, then what earlier runs have left, the small ones first; grows with what is added.

    Raises:
        ToolError: the directory cannot be used.
    """

    def __init__(self, directory: Path, seeds: list[bytes]) -> None:
        self.directory = directory
        self.contents = list(seeds)
        self._known = {_name(content) for content in seeds}
        self._loaded: set[str] = set()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in sorted(
                filter(Path.is_file, directory.iterdir()), key=lambda path: (path.stat().st_size, path.name)
            ):
                if path.name not in self._known and not path.name.endswith(".partial"):
                    self.contents.append(path.read_bytes())
                    self._known.add(path.name)
                    self._loaded.add(path.name)
        except OSError as error:
            raise ToolError(f"the corpus {directory} cannot be used: {error.strerror or error}") from error

    def add(self, content: bytes) -> bool:
        """Keeps a content; False if it is there already.

        Raises:
            ToolError: it cannot be written.
        """
        name = _name(content)
        if name in self._known:
            return False
        try:
            with replacing(self.directory / name) as partial:
                partial.write_bytes(content)
        except OSError as error:
            raise ToolError(f"the corpus {self.directory} cannot be written: {error.strerror or error}") from error
        self._known.add(name)
        self.contents.append(content)
        return True

    def drop(self, content: bytes) -> None:
        """Removes a content that an earlier run has left and that shows nothing new any more; others stay.

        Raises:
            ToolError: it cannot be removed.
        """
        if not self._loaded or (name := _name(content)) not in self._loaded:
            return
        try:
            (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise ToolError(f"the corpus {self.directory} cannot be written: {error.strerror or error}") from error
        self._loaded.remove(name)
        self._known.remove(name)
        self.contents.remove(content)


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
