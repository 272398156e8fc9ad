"""Lockstep over segments: every party performs the same operation, and its four files are compared after each.

The same idea as :mod:`conformance.lockstep`, with other things to look at: a *subject* must have the reference's
outcome, what it remembers, and the bytes of its ``.log``, ``.index``, ``.timeindex`` and ``.txnindex``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from conformance.attribution.segment import SegmentSituation, follow_segment, segment_clauses_of
from conformance.implementations.kidx.segment import ReferenceSegment
from conformance.lockstep.files import FilesGroup, FilesLockstep
from conformance.lockstep.generator_coverage import state_of_segment
from conformance.lockstep.participant import Party
from conformance.lockstep.watched_file import WatchedFile, damage
from conformance.operations import OK, Operation
from conformance.operations.segment import SUFFIXES, SegmentObservation
from kidx.dialect import dialect_of
from kidx.segment import file_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Files = tuple[bytes | None, ...]
"""The contents in the order of :data:`SUFFIXES`; None for a file that does not exist."""


class SegmentParty(Party):
    """An implementation, its directory, and the four files it works on."""

    def __init__(self, implementation: Any, directory: Path) -> None:
        super().__init__(implementation, directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.prefix = f"{directory}/"
        self.files = tuple(WatchedFile() for _ in SUFFIXES)

    def clear(self) -> None:
        """Removes its files."""
        for file in self.files:
            file.release()
        for left_over in self.listing():
            os.unlink(self.prefix + left_over)  # noqa: PTH108 -- every example of every party comes by here

    def watch(self, base_offset: int, suffix: str) -> None:
        """Looks at the files of a segment from now on."""
        for file, kind in zip(self.files, SUFFIXES, strict=True):
            file.watch(self.prefix + file_name(base_offset, kind) + suffix)

    def read(self) -> Files:
        """What is in the four files right now."""
        return tuple(file.read() for file in self.files)

    def listing(self) -> list[str]:
        """Names of all files in its directory."""
        return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above


class SegmentGroup(FilesGroup[SegmentParty]):
    """The subjects whose dialects behave alike, with the reference that they are held to."""

    nothing = SegmentObservation(OK, None)
    no_files: ClassVar[Files] = (None,) * len(SUFFIXES)

    def __init__(self, release: str, reference: SegmentParty, subjects: list[SegmentParty]) -> None:
        super().__init__(release, reference, subjects)
        self.situation = SegmentSituation(release)

    def begin(self) -> None:
        """Starts an example."""
        super().begin()
        self.situation = SegmentSituation(self.situation.release)


class SegmentLockstep(FilesLockstep[SegmentParty, SegmentGroup]):
    """A set of parties that perform operations on segments together; the arguments are those of the base class."""

    damaging = "damage_segment_file"
    aspects = ("outcome", "text", "state", "bytes")

    _base_offset = 0
    _suffix = ""

    state_word = staticmethod(state_of_segment)

    @staticmethod
    def rules(release: str) -> str:
        """See the base class."""
        return dialect_of(release).segment_rules

    key = rules

    def party(self, implementation: Any, directory: Path) -> SegmentParty:
        """See the base class."""
        return SegmentParty(implementation, directory)

    def group(self, release: str, subjects: list[SegmentParty], directory: Path) -> SegmentGroup:
        """See the base class."""
        return SegmentGroup(release, SegmentParty(ReferenceSegment(release), directory), subjects)

    def prepare(self, operation: Operation) -> None:
        """An opening and a renaming say which files are looked at from then on."""
        if operation.name == "open_segment":
            self._watch(operation.args[0], operation.args[7])
        elif operation.name == "rename_segment":
            old, new = operation.args
            self._watch(self._base_offset, self._suffix.removesuffix(old) + new)

    def _watch(self, base_offset: int, suffix: str) -> None:
        self._base_offset, self._suffix = base_offset, suffix
        for party in self._parties:
            party.watch(base_offset, suffix)

    def damage(self, group: SegmentGroup, arguments: Sequence[Any]) -> None:
        """See the base class."""
        kind, how, numbers = arguments
        for party in group.parties():
            damage(party.directory / (file_name(self._base_offset, kind) + self._suffix), how, tuple(numbers))
        group.situation.damaged.add(kind)

    def clauses_of(
        self, group: SegmentGroup, operation: Operation, observation: SegmentObservation, files: Files
    ) -> tuple[str, ...]:
        """See the base class."""
        clauses = segment_clauses_of(operation, group.situation, observation, group.files, files)
        follow_segment(group.situation, operation, observation)
        return clauses
