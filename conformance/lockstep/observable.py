"""Interfaces of the objects that a watchdog polls, because they execute steps in this process."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations import Operation


class Executor(Protocol):
    """Executor of steps: a participant of a lockstep, or an implementation in a fuzzer."""

    @property
    def implementation(self) -> Any:
        """The implementation that executes the steps."""


class ObservableRun(Protocol):
    """Run that executes steps: a lockstep, or a fuzzer."""

    @property
    def executing(self) -> Executor | None:
        """The participant that is executing a step in Python, or None."""

    @property
    def statistics(self) -> Any:
        """The statistics with the number of examples and steps; read only together with ``executing``."""

    @property
    def participants(self) -> Sequence[Executor]:
        """All executors."""

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations of the example in progress."""

    def step_of(self, participant: Any) -> int:
        """Return the number of the step that a participant is executing; may be called from another thread."""


ACTIVE_RUNS: Final[weakref.WeakSet[ObservableRun]] = weakref.WeakSet()
"""All runs in this process."""
