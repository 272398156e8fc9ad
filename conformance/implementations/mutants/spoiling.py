"""Changing a file behind an index's back, which some defects need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class HasPath(Protocol):
    """An index."""

    @property
    def path(self) -> Path:
        """Its file."""


def spoil(index: HasPath, at: int, change: Callable[[bytes], bytes]) -> None:
    """Replaces the four bytes from ``at`` on in the index's file by what ``change`` makes of them."""
    with index.path.open("r+b") as file:
        file.seek(at)
        data = file.read(4)
        file.seek(at)
        file.write(change(data))
