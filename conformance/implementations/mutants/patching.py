"""Changes of an index file that bypass the index, which some defects need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class HasPath(Protocol):
    """Index with the path of its file."""

    @property
    def path(self) -> Path:
        """Path of the file."""


def overwrite_bytes(index: HasPath, at: int, change: Callable[[bytes], bytes]) -> None:
    """Replace four bytes of the index's file, from position ``at`` on, by the result of ``change``."""
    with index.path.open("r+b") as file:
        file.seek(at)
        data = file.read(4)
        file.seek(at)
        file.write(change(data))
