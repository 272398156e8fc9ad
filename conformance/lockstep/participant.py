"""One party of a lockstep: an implementation in a directory of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.operations import Operation


class Party(ABC):
    """An implementation, its directory, and the files that it works on."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        self.implementation = implementation
        self.perform: Callable[[Operation], Any] = implementation.perform
        self.directory = directory
        self.active = True

    def begin(self) -> None:
        """Starts an example in the empty directory."""
        self.implementation.begin(self.directory)
        self.active = True

    def end(self) -> None:
        """Ends it and removes the files."""
        self.implementation.end()
        self.clear()

    @abstractmethod
    def clear(self) -> None:
        """Removes everything in the directory."""

    @abstractmethod
    def read(self) -> Any:
        """What is in the files that are compared, right now."""

    @abstractmethod
    def listing(self) -> list[str]:
        """Names of all files in the directory."""
