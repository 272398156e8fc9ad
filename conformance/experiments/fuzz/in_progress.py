"""Fuzzing case that Kafka's classes are executing, as an object that the watchdog for hangs polls.

A case is the content of a file, and the operations that open and query this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.experiments.fuzz.expected import SETUP
from conformance.lockstep.observable import ACTIVE_RUNS

if TYPE_CHECKING:
    from conformance.implementations.jvm.cases import JvmCases
    from conformance.operations import Operation


class _Member:
    """Kafka's classes of the release that executes cases."""

    def __init__(self, cases: JvmCases) -> None:
        self.cases = cases
        self.implementation: Any = cases.member


class CasesInProgress:
    """Execution in progress, an :class:`conformance.lockstep.observable.ObservableRun`."""

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
            cases: The cases of the release.
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
