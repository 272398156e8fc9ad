"""What performs steps in this process, for a watchdog to look at."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.operations import Operation


class Performer(Protocol):
    """One of those that perform: a participant of a lockstep, or a release with the cases of a fuzzer."""

    @property
    def implementation(self) -> Any:
        """Whose steps they are."""


class Watched(Protocol):
    """A lockstep, or what performs cases without one."""

    @property
    def at(self) -> Performer | None:
        """The participant that performs a step in Python right now."""

    @property
    def statistics(self) -> Any:
        """How many examples and steps there have been; asked for with ``at`` only."""

    @property
    def participants(self) -> Sequence[Performer]:
        """All that perform."""

    @property
    def operations(self) -> Sequence[Operation]:
        """Those of the example in progress."""

    def step_of(self, participant: Any) -> int:
        """The number of the step that a participant performs right now; another thread may ask."""


WATCHED: Final[weakref.WeakSet[Watched]] = weakref.WeakSet()
"""All there are in this process."""
