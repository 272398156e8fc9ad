"""The references of a lockstep: one performs for all groups whose rules nothing has told apart in the example.

Releases differ in few things, and most examples come by few of them. So an example begins with one reference for all
groups. When it comes by a difference, the groups that are on the other side of it get a reference of their own, which
performs the example from its beginning (:mod:`conformance.implementations.kidx.shared_dialect`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from conformance.lockstep.level import Files, Group, Level, Seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation

_Groups = list[Group[Any, Any]]


class SharedReferences(Generic[Seen, Files]):
    """The references of all groups. Of groups that go together, that of the last one performs; the others are idle.

    Args:
        level: what they keep.
        groups: in the order of their dialects.

    Attributes:
        at: the reference that performs an operation right now; another thread may ask.
    """

    def __init__(self, level: Level[Seen, Files], groups: Sequence[Group[Seen, Files]]) -> None:
        self.at: Participant | None = None
        self._level = level
        self._groups = groups
        self._share = len(groups) > 1 and all(
            hasattr(group.reference.implementation, "perform_for") for group in groups
        )
        self._together: list[_Groups] = []

    @property
    def all(self) -> list[Participant]:
        """All there are, also the idle ones."""
        return [group.reference for group in self._groups]

    def begin(self) -> None:
        """An example begins, in which nothing has told the groups apart."""
        for group in self._groups:
            group.reference.active = False
        self._together = [list(self._groups)] if self._share else [[group] for group in self._groups]
        for groups in self._together:
            self._begin(groups)

    def end(self) -> None:
        """It ends."""
        for group in self._groups:
            if group.reference.active:
                group.reference.end()

    def perform(self, operation: Operation, operations: Sequence[Operation]) -> None:
        """Performs an operation for all groups, which get its observation and its files.

        Args:
            operation: the last one of the example.
            operations: of the example, up to this one.
        """
        try:
            if self._share:
                self._perform_together(operation, operations)
                return
            for group in self._groups:
                self.at = reference = group.reference
                group.observation = reference.perform(operation)
                group.files = self._level.files_after(reference, operation, group.files)
        finally:
            self.at = None

    def _perform_together(self, operation: Operation, operations: Sequence[Operation]) -> None:
        waiting, self._together = self._together, []
        seen: list[tuple[Seen, Files]] = []
        while waiting:
            groups = waiting.pop()
            last = groups[-1]
            self.at = last.reference
            observation = last.reference.perform(operation)
            if left := self._left(groups):
                waiting += self._made_up(left, operations[:-1])
            files = self._level.files_after(last.reference, operation, last.files)
            observation, files = _same(seen, observation, files)
            for group in groups:
                group.observation = last.reference.implementation.observation_of(group.dialect, observation)
                group.files = files
            self._together.append(groups)

    def spread(self) -> None:
        """The harness has changed the files of those that are not idle."""
        for groups in self._together:
            for group in groups:
                group.files = groups[-1].files

    def reread(self) -> None:
        """The files that are looked at are others than before."""
        for groups in self._together:
            groups[-1].files = groups[-1].reference.read()
        self.spread()

    def listings(self) -> list[list[str]]:
        """For each group, the names of all files."""
        found = {id(group): groups[-1].reference for groups in self._together for group in groups}
        listed = {id(reference): reference.listing() for reference in found.values()}
        return [listed[id(found[id(group)])] for group in self._groups]

    def _begin(self, groups: _Groups) -> None:
        reference = groups[-1].reference
        if self._share:
            reference.implementation.perform_for([group.dialect for group in groups])
        reference.begin()

    def _left(self, groups: _Groups) -> _Groups:
        """Takes those out that another reference has to perform for from now on, the last operation included."""
        dialects = groups[-1].reference.implementation.take_left()
        left = [group for group in groups if group.dialect in dialects]
        groups[:] = [group for group in groups if group not in left]
        return left

    def _made_up(self, groups: _Groups, operations: Sequence[Operation]) -> list[_Groups]:
        """A reference for these groups that has performed the example so far; more than one if it tells them apart."""
        self._begin(groups)
        others: list[_Groups] = []
        name = self._level.unnamed
        for operation in operations:
            if operation.name in self._level.naming:
                name = self._level.named(operation, name)
            if operation.name in self._level.damaging:
                self._level.damage_one(groups[-1].reference, operation, name)
                continue
            self.at = groups[-1].reference
            self.at.perform(operation)
            if left := self._left(groups):
                others += self._made_up(left, operations)
        return [groups, *others]


def _same(seen: list[tuple[Any, Any]], observation: Any, files: Any) -> tuple[Any, Any]:
    """The objects that another reference has given, where they are equal: those are compared in no time later on."""
    observation = next((one for one, _ in seen if one == observation), observation)
    files = next((others for _, others in seen if others == files), files)
    seen.append((observation, files))
    return observation, files
