"""Fuzzing corpus: contents that are mutated further, in this run and the next, each in a file named by its hash.

Fuzzing case that Kafka's classes are executing, as an object that the watchdog for hangs polls.

A case is the content of a file, and the operations that open and query this file.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import ToolError
from conformance.lockstep.watchdog import ACTIVE_RUNS
from conformance.studies.fuzz.executor import SETUP
from kidx.files import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.implementations.jvm.cases import JvmCases
    from conformance.operations import Operation


class Corpus:
    """Contents of one format, and the directory that stores them.

    Args:
        directory: The directory; created if it is missing.
        seeds: Valid files, which are always part of the corpus.

    Attributes:
        contents: The seeds, then the contents of earlier runs by size, then the contents that this run adds.

    Raises:
        ToolError: The directory cannot be used.
    """

    def __init__(self, directory: Path, seeds: list[bytes]) -> None:
        self.directory = directory
        self.contents = list(seeds)
        self._known = {_name(content) for content in seeds}
        self._loaded: set[str] = set()  # names of the contents of earlier runs
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
            raise ToolError(f"cannot use the corpus {directory}: {error.strerror or error}") from error

    def add(self, content: bytes) -> bool:
        """Add a content; return False if the corpus has it already.

        Raises:
            ToolError: The file cannot be written.
        """
        name = _name(content)
        if name in self._known:
            return False
        try:
            with replacing(self.directory / name) as partial:
                partial.write_bytes(content)
        except OSError as error:
            raise ToolError(f"cannot write the corpus {self.directory}: {error.strerror or error}") from error
        self._known.add(name)
        self.contents.append(content)
        return True

    def drop(self, content: bytes) -> None:
        """Remove a content if an earlier run added it.

        Raises:
            ToolError: The file cannot be removed.
        """
        if not self._loaded or (name := _name(content)) not in self._loaded:
            return
        try:
            (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise ToolError(f"cannot write the corpus {self.directory}: {error.strerror or error}") from error
        self._loaded.remove(name)
        self._known.remove(name)
        self.contents.remove(content)


def _name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]


class _Member:
    """Kafka's classes of the release that executes cases."""

    def __init__(self, cases: JvmCases) -> None:
        self.cases = cases
        self.implementation: Any = cases.member


class CasesInProgress:
    """Execution in progress, an :class:`conformance.lockstep.watchdog.ObservableRun`."""

    executing = None  # Java executes the steps, not Python
    statistics = None

    def __init__(self) -> None:
        self.participants: Sequence[_Member] = ()
        self._script: Callable[[int], Sequence[Operation]]
        ACTIVE_RUNS.add(self)

    @contextmanager
    def executed_by(self, cases: JvmCases, script: Callable[[int], Sequence[Operation]]) -> Iterator[None]:
        """Mark cases as being executed by a release for the duration of the block.

        Args:
            script: A function that returns the operations of the case with a number.
        """
        self._script = script
        self.participants = (_Member(cases),)
        try:
            yield
        finally:
            self.participants = ()

    @property
    def operations(self) -> Sequence[Operation]:
        """Operations of the case that is being executed."""
        return self._script(self.participants[0].cases.performing())

    def step_of(self, participant: _Member) -> int:
        """Return the number of the operation that is being executed."""
        return SETUP + participant.cases.begun() - 1
