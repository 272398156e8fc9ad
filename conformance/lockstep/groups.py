"""The parties of an index lockstep: implementations with their directories, grouped by the dialect they are held to."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.attribution import Situation
from conformance.implementations.kidx.index import ReferenceIndex
from conformance.implementations.model import Model
from conformance.lockstep.participant import Party
from conformance.lockstep.watched_file import WatchedFile
from conformance.operations import OK, Observation
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from pathlib import Path


class IndexParty(Party):
    """An implementation, its directory, and the file it works on.

    Attributes:
        follows: it performs what the references have performed, see :mod:`conformance.lockstep.batched_execution`;
            ``perform`` only gives the result.
        prefix: the directory as a string that ends with a slash.
    """

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.follows = hasattr(implementation, "followers")
        if self.follows:
            self.perform = implementation.observation
        self.prefix = f"{directory}/"
        self.file = WatchedFile()

    def clear(self) -> None:
        """Removes its files."""
        self.file.release()
        for left_over in self.listing():
            try:
                os.unlink(self.prefix + left_over)  # noqa: PTH108 -- every example of every party comes by here
            except IsADirectoryError:  # nothing of ours, so somebody's program has made it
                shutil.rmtree(self.prefix + left_over)

    def read(self) -> bytes | None:
        """What is in its file right now; None if there is none."""
        return self.file.read()

    def listing(self) -> list[str]:
        """The names of all files, sorted."""
        return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above


class Group:
    """The subjects of one dialect with the reference and the model they are held to.

    Attributes:
        beside: the subjects that perform a step right after the reference: all but the followers.
        situation: what is known of the index before a step.
        exercised: how many steps exercised a clause.
        observation: what came of the last step, and ``file``: what it has left on the disk, None for no file.
    """

    def __init__(self, release: str, subjects: list[IndexParty], directory: Path, *, model: bool) -> None:
        self.dialect = dialect_of(release)
        self.reference = IndexParty(ReferenceIndex(release), directory / f"kidx-{self.dialect.index_rules}")
        self.model = Model(release) if model else None
        self.subjects = subjects
        self.beside = [party for party in subjects if not party.follows]
        self.situation = Situation(release)
        self.exercised: Counter[str] = Counter()
        self.observation = Observation(OK, None)
        self.file: bytes | None = None
