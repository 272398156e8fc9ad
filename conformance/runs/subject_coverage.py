"""Coverage per subject: a clause counts only for implementations that executed the step.

A lockstep counts the clauses that its *reference* exercised. A subject may have been absent. It drops out of an example
at the first operation that it does not have or has no memory for, and at a tolerated divergence. It drops out of the
run at a divergence that is not tolerated.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.operations.outcomes import OUT_OF_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.lockstep import Lockstep
    from conformance.operations import Operation


class SubjectCoverage:
    """Wrapper of an implementation that counts the clauses that were exercised without it.

    The count is conservative. If the subject drops out of an example because of a missing operation, of memory or of a
    divergence, the example does not count for it, because it is unknown which participants executed the last step.

    Args:
        implementation: The subject; attributes that this class lacks are delegated to it.
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
        """The requested operations that it does not have."""
        excused: Counter[str] | None = getattr(implementation, "excused", None)
        self.excused = Counter() if excused is None else excused
        """The number of steps with a tolerated difference, by the description of the tolerance."""

    @property
    def implementation(self) -> Implementation:
        """The subject itself."""
        return self._implementation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._implementation, name)

    def watch(self, lockstep: Lockstep) -> None:
        """Count the steps of this lockstep from now on."""
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
        """Return the observation of an operation that the implementation has executed in a batch."""
        return self._noted(operation, self._implementation.observation(operation))  # type: ignore[attr-defined]

    def _noted(self, operation: Operation, observation: Any) -> Any:
        """Return the observation after checking whether the operation was executed at all."""
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
        """Drop out of the example after a tolerated divergence, in a step that is no evidence for its ``clauses``."""
        self._absent_since = self._counted()
        self._absent_since.subtract(clauses)

    def exclude_step(self, clauses: Iterable[str]) -> None:
        """Continue after a divergence: the step is no evidence for its ``clauses``."""
        self._missed.update(clauses)

    def exercised(self) -> Counter[str]:
        """Return the number of steps that exercised each clause while the subject took part."""
        return self._counted() - self._missed

    def _counted(self) -> Counter[str]:
        """Return the counts of the lockstep so far for its release."""
        lockstep = self._lockstep
        return Counter() if lockstep is None else Counter(lockstep.statistics.exercised(self._implementation.release))
