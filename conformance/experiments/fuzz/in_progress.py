"""The case that Kafka's classes perform in a crossing, as a watchdog asks a lockstep for its step."""

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
    """A release that performs cases."""

    def __init__(self, cases: JvmCases) -> None:
        self.cases = cases
        self.implementation: Any = cases.member


class CasesInProgress:
    """What is being performed right now (see :class:`conformance.lockstep.observable.ObservableRun`)."""

    executing = None
    statistics = None

    def __init__(self) -> None:
        self.participants: Sequence[_Member] = ()
        self._script: Callable[[int], Sequence[Operation]]
        ACTIVE_RUNS.add(self)

    @contextmanager
    def performed_by(self, cases: JvmCases, script: Callable[[int], Sequence[Operation]]) -> Iterator[None]:
        """In the block, a release performs cases.

        Args:
            cases: of the release.
            script: the operations of the case with a number.
        """
        self._script = script
        self.participants = (_Member(cases),)
        try:
            yield
        finally:
            self.participants = ()

    @property
    def operations(self) -> Sequence[Operation]:
        """The script of the case that is being performed."""
        return self._script(self.participants[0].cases.performing())

    def step_of(self, participant: _Member) -> int:
        """The number of the operation of it that is being performed."""
        return SETUP + participant.cases.begun() - 1
