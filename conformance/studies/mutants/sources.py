"""Installed sources: verdicts on mutants depend on them, so they must not change while mutants run.

Workers that begin later import them again. With another table of operations, for example, a recorded number would
mean another operation, and every mutant would differ from its recording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from conformance.errors import ToolError

_PACKAGES: Final = ("conformance", "kidx")
_NO_INFLUENCE: Final = {"reasons.toml"}
"""Names of files that verdicts do not depend on: reasons are written after them."""


class Sources:
    """Sources as they are now; recordings, replays and verdicts of other sources must not be mixed with theirs.

    Args:
        directories: the packages.

    Attributes:
        digest: digest of the names and contents of all files.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._state = self._read_state()
        contents = hashlib.sha256()
        with self.held():
            for at, name, path in self._files():
                data = path.read_bytes()
                contents.update(f"{at}\0{name}\0{len(data)}\0".encode() + data)
        self.digest = contents.hexdigest()

    def check(self) -> None:
        """Require that no source has changed.

        A source that was written and restored has changed, too: a worker may have imported it in between.

        Raises:
            ToolError: they have changed.
        """
        now = self._read_state()
        if now != self._state:
            changed = min(now.items() ^ self._state.items())[0]
            raise ToolError(
                f"{changed} has changed while mutants ran, so that their verdicts would mean nothing; run it again"
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Check at the end of a block; an error in it may be due to the change.

        Raises:
            ToolError: they have changed.
        """
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def _files(self) -> list[tuple[int, str, Path]]:
        return sorted(
            (at, path.relative_to(directory).as_posix(), path)
            for at, directory in enumerate(self._directories)
            for path in directory.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.name not in _NO_INFLUENCE
        )

    def _read_state(self) -> dict[str, tuple[int, int, int]]:
        """Return what shows that a file was written or replaced, by path."""
        found = {}
        try:
            for _, _, path in self._files():
                status = path.stat()
                found[str(path)] = status.st_ino, status.st_size, status.st_mtime_ns
        except FileNotFoundError as error:
            found[str(error.filename)] = -1, -1, -1  # it is being replaced
        return found


def installed() -> Sources:
    """Return the sources of the harness and of the reference."""
    return Sources([Path(str(find_spec(name).origin)).parent for name in _PACKAGES])  # type: ignore[union-attr]
