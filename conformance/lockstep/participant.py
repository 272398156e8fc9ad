"""Participant of a lockstep: an implementation in its own directory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.lockstep.file_reader import remove
from conformance.operations.log_capabilities import needs_missing_capability

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.operations import Operation


class Credit:
    """Evidence for one participant: its part of the counts of all steps of its group.

    If an implementation drops out of an example because of a missing operation, of memory or of a divergence that
    counts, none of the example's steps counts as evidence for it.

    Attributes:
        counts: The counts of all steps; subjects with the same reference share this counter.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()  # the part of `counts` that is no evidence for this implementation
        self._at_begin: Counter[str] = Counter()  # `counts` when the example began
        self._absent_since: Counter[str] | None = None  # `counts` when the implementation dropped out; None if not

    def begin(self) -> None:
        """Begin an example."""
        self._at_begin, self._absent_since = Counter(self.counts), None

    def end(self, *, failed: bool) -> None:
        """End an example; ``failed`` is true if a divergence that counts has ended it."""
        absent = self._at_begin if failed else self._absent_since
        if absent is not None:
            self._missed += self.counts - absent
        self._absent_since = None

    def leave(self, names: Iterable[str] = ()) -> None:
        """Count no later step of the example, and ``names`` of the last step not either."""
        self._absent_since = Counter(self.counts)
        self._absent_since.subtract(names)

    def exclude(self, names: Iterable[str]) -> None:
        """Do not count the last step for these names."""
        self._missed.update(names)

    def drop_out(self) -> None:
        """Count no step of the example."""
        self._absent_since = self._at_begin

    @property
    def evidence(self) -> Counter[str]:
        """The counts without steps that are no evidence for the participant."""
        return self.counts - self._missed


class Participant(ABC):
    """Implementation in a lockstep, with its directory, and the clauses and operations that it was compared in.

    Attributes:
        perform: A function that executes an operation; for a batched participant, it returns the result of the last
            executed operation.
        prefix: The directory as a string that ends with a slash.
        active: True if the implementation takes part in the rest of the example.
        batched: True if the implementation executes many steps at a time, after the references; see
            :mod:`conformance.lockstep.batched_execution`.
        clauses: The steps that exercised each clause, as evidence.
        operations: The steps of each operation that were compared, as evidence.
        unsupported: The requested operations that the implementation does not have.
        own_clauses: The clauses that the participant's own reference exercised in the last step; None if it needs no
            separate reference.
        history: The clauses below MUST by which parts of the state came about, see :meth:`Scope.rests_on`.
        crashed: The kinds of steps after which the implementation has crashed; it does not get such a step again if
            the step has no effect. None to execute every step.
        survived: The classes of arguments with which each operation has succeeded since the first crash.
        skipped: The numbers of the steps of the example that the implementation did not get for this reason.
    """

    def __init__(self, implementation: Any, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.implementation = implementation
        self.directory = directory
        self.prefix = f"{directory}/"
        self.active = True
        self.batched = implementation.batch_group is not None
        self.perform: Callable[[Operation], Any] = (
            implementation.observation if self.batched else implementation.perform
        )
        self.clauses, self.operations = Credit(), Credit()
        self.unsupported: set[str] = set()
        self.own_clauses: tuple[str, ...] | None = None
        self.history: dict[Any, frozenset[str]] = {}
        self.crashed: set[Any] | None = None
        self.survived: set[Any] = set()
        self.skipped: set[int] = set()

    def begin(self) -> None:
        """Begin an example in the empty directory."""
        self.clauses.begin()
        self.operations.begin()
        self.skipped.clear()
        self.implementation.begin(self.directory)
        self.active = True
        self.history.clear()

    def end(self, *, failed: bool = False) -> None:
        """End the example and remove the files.

        Args:
            failed: True if a divergence that counts has ended the example.
        """
        self.clauses.end(failed=failed)
        self.operations.end(failed=failed)
        self.implementation.end()
        self.clear()

    # -- credit ------------------------------------------------------------------------------------------------

    @property
    def credited(self) -> Counter[str]:
        """The number of steps that exercised each clause, without steps that are no evidence for this participant."""
        return self.clauses.evidence

    @property
    def executed(self) -> Counter[str]:
        """The number of steps of each operation that were compared, without steps that are no evidence."""
        return self.operations.evidence

    def leave(self, clauses: Iterable[str] = ()) -> None:
        """Drop out of the example; earlier steps count, but the last step does not.

        Args:
            clauses: The clauses that the last step exercised.
        """
        self.clauses.leave(clauses)
        self.operations.leave()

    def exclude_step(self, clauses: Iterable[str]) -> None:
        """Do not count the last step as evidence for these clauses."""
        self.clauses.exclude(clauses)

    def drop_out(self, operation: str = "") -> None:
        """Drop out of the example, because memory is exhausted or an operation is missing; no step of it counts.

        Args:
            operation: The missing operation; empty if memory is exhausted.
        """
        self.active = False
        self.clauses.drop_out()
        self.operations.drop_out()
        if operation:
            self.unsupported.add(operation)

    def foreign_clauses(self, clauses: tuple[str, ...]) -> Sequence[str]:
        """Return the clauses that only the reference exercised in a step, and not this participant.

        Args:
            clauses: The clauses that the reference exercised.
        """
        own = self.own_clauses
        return () if own is None else [clause for clause in clauses if clause not in own]

    # -- files and results -------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Remove all files from the directory."""
        try:
            for left_over in os.listdir(self.prefix):  # noqa: PTH208 -- called for every example of every participant
                os.unlink(self.prefix + left_over)  # noqa: PTH108 -- as above
        except OSError:  # the implementation has made a directory, or has removed its own
            remove(str(self.directory))
            self.directory.mkdir(parents=True, exist_ok=True)

    def watch(self, name: Any) -> None:
        """Read the files of a name, as returned by :meth:`Scope.named`, from now on."""
        del name

    @abstractmethod
    def read(self) -> Any:
        """Return the current contents of the files that are compared."""

    def normalize(self, operation: Operation, expected: Any, actual: Any, reference: Participant) -> tuple[Any, Any]:
        """Return the expected and the actual result with all tolerated differences removed.

        Args:
            expected: The reference's observation and files.
            actual: This participant's observation and files.
            reference: The reference, after the step.
        """
        del operation, reference
        return expected, actual

    def implicated_clauses(self, clauses: tuple[str, ...]) -> tuple[str, ...]:
        """Return the clauses that a divergence may implicate; clauses that need a missing capability are removed.

        Args:
            clauses: The clauses that the step exercises.
        """
        if self.own_clauses is not None:
            clauses = self.own_clauses
        capabilities = self.implementation.capabilities
        if capabilities is None:
            return clauses
        return tuple(clause for clause in clauses if not needs_missing_capability(clause, capabilities))

    def failure_between_examples(self) -> str | None:
        """Return the last error in closing files since the last call of this method, or None."""
        failures: list[str] | None = self.implementation.failures_between_examples
        if not failures:
            return None
        text = failures[-1]
        failures.clear()
        return text

    def is_promised(self) -> bool:
        """Return True if a broker can have executed the last step with the files of this participant."""
        return True

    def comparable_listing(self, expected: list[str]) -> list[str]:
        """Return the names of files, which are compared with the names in ``expected``; see :meth:`listing`."""
        del expected
        return self.listing()

    def listing(self) -> list[str]:
        """Return the names of all files in the directory, sorted."""
        try:
            return sorted(os.listdir(self.prefix))  # noqa: PTH208 -- as above
        except OSError:  # the implementation has removed its directory
            return []
