"""An implementation that is listened to, and may report another release than its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.operations.state_diff import with_fields_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.operations import Observation, Operation


_PASSED_ON: Final = frozenset({"step_in_progress", "stack", "compress", "decompress"})
"""What some implementations have besides the protocol."""


class Watched:
    """Passes everything on, and remembers what was answered.

    Args:
        implementation: what performs the operations.
        release: the release it reports, whose dialect it must follow; its own by default. Texts of one that reports
            another's are not compared by the lockstep.
        listener: called with every operation and its observation.

    Attributes:
        performed: operations since the example began.
        last: the observation of the last of them.
        unobserved: fields of the state that are passed on as ``beside`` has them in the same step.
        beside: the implementation that performs every operation before this one.
    """

    def __init__(
        self,
        implementation: Implementation,
        release: str | None = None,
        listener: Callable[[Operation, Observation], None] = lambda *_: None,
    ) -> None:
        self.implementation = implementation
        self.release = implementation.release if release is None else release
        self.name = implementation.name if release is None else f"{implementation.name} in place of {release}"
        self.speaks_kafka = release is None
        self.listener = listener
        self.performed = 0
        self.last: Observation | None = None
        self.unobserved: set[str] = set()
        self.beside: Watched | None = None
        self._directory: Path | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _PASSED_ON:
            return getattr(self.implementation, name)
        raise AttributeError(name)

    @property
    def directory(self) -> Path:
        """Where it works.

        Raises:
            ToolError: no example has begun.
        """
        if self._directory is None:
            raise ToolError(f"{self.name} has not begun")
        return self._directory

    def begin(self, directory: Path) -> None:
        """See the protocol."""
        self._directory = directory
        self.performed = 0
        self.last = None
        self.implementation.begin(directory)

    def supports(self, operation: str) -> bool:
        """See the protocol."""
        return self.implementation.supports(operation)

    def perform(self, operation: Operation) -> Observation:
        """See the protocol."""
        self.last = self.implementation.perform(operation)
        self.performed += 1
        self.listener(operation, self.last)
        if self.unobserved and self.beside is not None and self.beside.performed == self.performed:
            like = None if self.beside.last is None else self.beside.last.state
            return self.last._replace(state=with_fields_of(self.last.state, like, self.unobserved))
        return self.last

    def end(self) -> None:
        """See the protocol."""
        self.implementation.end()
