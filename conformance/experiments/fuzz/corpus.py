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
        contents: grows with every content that is added.

    Raises:
        ToolError: the directory cannot be used.
    """

    def __init__(self, directory: Path, seeds: list[bytes]) -> None:
        self.directory = directory
        self.contents = list(seeds)
        self._known = {_name(content) for content in seeds}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for path in sorted(directory.iterdir()):
                if path.is_file() and path.name not in self._known and not path.name.endswith(".partial"):
                    self.contents.append(path.read_bytes())
                    self._known.add(path.name)
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


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
