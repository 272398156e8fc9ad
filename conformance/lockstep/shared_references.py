"""References of a lockstep; one reference executes for all groups that have behaved alike in the example so far.

Releases differ in few respects, and most examples reach few of these differences. So an example begins with one
reference for all groups. When an operation behaves differently in some of their releases, the other groups get their
own reference, which executes the example from its beginning (:mod:`conformance.implementations.kidx.shared_dialect`).

Sharing pays. With all releases of Kafka, an example of the log machine takes 2.7 seconds of processor time; without
sharing, and without the cache of ListOffsets, it takes 4.0. It still takes 3.5 if the machine queries an unchanged log
in one of four cases only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from conformance.lockstep.scope import Files, Group, ObservationT, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lockstep.participant import Participant
    from conformance.operations import Operation

_Groups = list[Group[Any, Any]]


class SharedReferences(Generic[ObservationT, Files]):
    """References of all groups. Of groups that share, only the last one's reference executes; the others are idle.

    Args:
        groups: The groups in the order of their dialects.

    Attributes:
        executing: The reference that is executing an operation; may be read from another thread.
    """

    def __init__(self, scope: Scope[ObservationT, Files], groups: Sequence[Group[ObservationT, Files]]) -> None:
        self.executing: Participant | None = None
        self._scope = scope
        self._groups = groups
        self._share = len(groups) > 1 and all(
            group.reference.implementation.perform_for is not None for group in groups
        )
        self._together: list[_Groups] = []  # lists of groups that share a reference at this step

    @property
    def all(self) -> list[Participant]:
        """All references, including idle ones."""
        return [group.reference for group in self._groups]

    def begin(self) -> None:
        """Begin an example, in which all groups share a reference."""
        for group in self._groups:
            group.reference.active = False
        self._together = [list(self._groups)] if self._share else [[group] for group in self._groups]
        for groups in self._together:
            self._begin(groups)

    def end(self) -> None:
        """End the example."""
        for group in self._groups:
            if group.reference.active:
                group.reference.end()

    def perform(self, operation: Operation, operations: Sequence[Operation]) -> None:
        """Execute an operation for all groups, and set their observations and files.

        Args:
            operation: The last operation of the example.
            operations: The operations of the example, up to this one.
        """
        try:
            if self._share:
                self._perform_together(operation, operations)
                return
            for group in self._groups:
                self.executing = reference = group.reference
                group.observation = reference.perform(operation)
                group.files = self._scope.files_after(reference, operation, group.files)
        finally:
            self.executing = None

    def _perform_together(self, operation: Operation, operations: Sequence[Operation]) -> None:
        waiting, self._together = self._together, []
        seen: list[tuple[ObservationT, Files]] = []
        while waiting:
            groups = waiting.pop()
            last = groups[-1]
            self.executing = last.reference
            observation = last.reference.perform(operation)
            if left := self._split_off(groups):
                waiting += self._rebuild_references(left, operations[:-1])
            files = self._scope.files_after(last.reference, operation, last.files)
            observation, files = _same(seen, observation, files)
            for group in groups:
                group.observation = last.reference.implementation.observation_of(group.dialect, observation)
                group.files = files
            self._together.append(groups)

    def propagate_files(self) -> None:
        """Copy the files of executing references to the groups with idle references."""
        for groups in self._together:
            for group in groups:
                group.files = groups[-1].files

    def reread(self) -> None:
        """Read the files again, after their name has changed."""
        for groups in self._together:
            groups[-1].files = groups[-1].reference.read()
        self.propagate_files()

    def listings(self) -> list[list[str]]:
        """Return the names of all files for each group."""
        found = {id(group): groups[-1].reference for groups in self._together for group in groups}
        listed = {id(reference): reference.listing() for reference in found.values()}
        return [listed[id(found[id(group)])] for group in self._groups]

    def _begin(self, groups: _Groups) -> None:
        reference = groups[-1].reference
        if self._share:
            reference.implementation.perform_for([group.dialect for group in groups])
        reference.begin()

    def _split_off(self, groups: _Groups) -> _Groups:
        """Remove and return the groups whose releases execute the last operation differently from the others."""
        dialects = groups[-1].reference.implementation.pop_split_off()
        left = [group for group in groups if group.dialect in dialects]
        groups[:] = [group for group in groups if group not in left]
        return left

    def _rebuild_references(self, groups: _Groups, operations: Sequence[Operation]) -> list[_Groups]:
        """Execute the example with a new reference for these groups; return the groups, split where they differ."""
        self._begin(groups)
        others: list[_Groups] = []
        name = self._scope.no_file_name
        for operation in operations:
            if operation.name in self._scope.file_selecting_operations:
                name = self._scope.named(operation, name)
            if operation.name in self._scope.corrupting_operations:
                self._scope.corrupt_one(groups[-1].reference, operation, name)
                continue
            self.executing = groups[-1].reference
            self.executing.perform(operation)
            if left := self._split_off(groups):
                others += self._rebuild_references(left, operations)
        return [groups, *others]


def _same(seen: list[tuple[Any, Any]], observation: Any, files: Any) -> tuple[Any, Any]:
    """Return equal objects of another reference instead, if any, because identical objects are fast to compare."""
    observation = next((one for one, _ in seen if one == observation), observation)
    files = next((others for _, others in seen if others == files), files)
    seen.append((observation, files))
    return observation, files
