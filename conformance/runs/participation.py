"""Which steps an implementation has performed: a clause counts only for implementations that performed the step.

A lockstep counts the clauses that its *reference* exercised. A subject may have been absent: it leaves an example with
the first operation that it does not have, or has no memory for, or with a divergence that is excused, and the run with
one that is not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.implementations.replies import OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.lockstep import Lockstep
    from conformance.operations import Operation


class Participation:
    """An implementation behind its own interface, and a count of the clauses that were exercised without it.

    The count errs on the side of absence: of an example that the subject leaves for want of an operation or of memory,
    and of one that ends with a divergence, nothing is credited to it, because it is unknown which participants
    performed the last step.

    Args:
        implementation: the subject; what this class does not have is asked of it.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._implementation = implementation
        self._perform = implementation.perform
        self._lockstep: Lockstep | None = None
        self._at_begin: Counter[str] = Counter()
        self._failure: object = None
        self._absent_since: Counter[str] | None = None
        self._missed: Counter[str] = Counter()
        self.lacking: set[str] = set()
        """Operations it has been asked for and does not have."""
        excused: Counter[str] | None = getattr(implementation, "excused", None)
        self.excused = Counter() if excused is None else excused
        """Steps that differed in a way that is excused for want of a capability, by the words of the excuse."""

    @property
    def implementation(self) -> Implementation:
        """The subject itself."""
        return self._implementation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._implementation, name)

    def watch(self, lockstep: Lockstep) -> None:
        """Takes attendance in this lockstep from now on."""
        self._lockstep = lockstep

    # -- as an implementation ----------------------------------------------------------------------------------

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        if self._lockstep is not None:
            self._at_begin = self._counted()
            self._failure = self._lockstep.failure
        self._absent_since = None
        self._implementation.begin(directory)

    def perform(self, operation: Operation) -> Any:
        """See the protocol."""
        return self._noted(operation, self._perform(operation))

    def observation(self, operation: Operation) -> Any:
        """The observation of an operation that the implementation has performed together with others."""
        return self._noted(operation, self._implementation.observation(operation))  # type: ignore[attr-defined]

    def _noted(self, operation: Operation, observation: Any) -> Any:
        """The observation, once it is known whether the operation was performed at all."""
        error = observation.outcome.error
        if error in ("unsupported", OUT_OF_MEMORY):
            self._absent_since = self._at_begin
            if error == "unsupported":
                self.lacking.add(operation.name)
        return observation

    def end(self) -> None:
        """See the protocol."""
        if self._lockstep is not None:
            if self._lockstep.failure is not self._failure:
                self._absent_since = self._at_begin
            if self._absent_since is not None:
                self._missed += self._counted() - self._absent_since
            self._absent_since = None
            self._failure = self._lockstep.failure
        self._implementation.end()

    # -- attendance --------------------------------------------------------------------------------------------

    def excuse(self, clauses: Iterable[str]) -> None:
        """An excused divergence lets it leave the example, in a step that is no evidence for its ``clauses``."""
        self._absent_since = self._counted()
        self._absent_since.subtract(clauses)

    def discredit(self, clauses: Iterable[str]) -> None:
        """A divergence after which it goes on with the example: the step is no evidence for its ``clauses``."""
        self._missed.update(clauses)

    def exercised(self) -> Counter[str]:
        """How many steps exercised each clause while it took part."""
        return self._counted() - self._missed

    def _counted(self) -> Counter[str]:
        """What the lockstep has counted so far for its release."""
        lockstep = self._lockstep
        return Counter() if lockstep is None else Counter(lockstep.statistics.exercised(self._implementation.release))
