"""Interfaces of everything that executes steps in this process and that a watchdog polls."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations import Operation


class Executor(Protocol):
    """Executor of steps: a participant of a lockstep, or a release with the cases of a fuzzer."""

    @property
    def implementation(self) -> Any:
        """The implementation that executes the steps."""


class ObservableRun(Protocol):
    """A lockstep, or a runner of cases without one."""

    @property
    def executing(self) -> Executor | None:
        """The participant that is executing a step in Python."""

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
"""All such runs in this process."""
