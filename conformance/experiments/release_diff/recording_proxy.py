"""Proxy for an implementation: it records observations, and may report another release than the implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.errors import ToolError
from conformance.operations.state_diff import with_fields_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.implementations.protocol import Implementation
    from conformance.operations import Observation, Operation


_FORWARDED: Final = frozenset({"step_in_progress", "stack", "compress", "decompress"})
"""Optional methods of implementations beyond the protocol."""


class RecordingProxy:
    """Proxy that forwards every operation, and remembers the last observation.

    Args:
        implementation: The implementation that executes the operations.
        release: The release by whose rules the lockstep checks the implementation; None for the implementation's own
            release. With another release, the lockstep does not compare error texts.
        listener: A callback that receives every operation and its observation.

    Attributes:
        performed: The number of operations since the example began.
        last: The observation of the last operation; None before the first.
        control: Another implementation, which executes every operation before this one; or None.
        unobserved: Fields of the state that are not compared: the proxy returns the fields of ``control`` instead.
        speaks_kafka: True if the lockstep compares error texts.
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
        self.control: RecordingProxy | None = None
        self._directory: Path | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FORWARDED:
            return getattr(self.implementation, name)
        raise AttributeError(name)

    @property
    def directory(self) -> Path:
        """Working directory.

        Raises:
            ToolError: No example has begun.
        """
        if self._directory is None:
            raise ToolError(f"{self.name} has not begun an example")
        return self._directory

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self._directory = directory
        self.performed = 0
        self.last = None
        self.implementation.begin(directory)

    def supports(self, operation: str) -> bool:
        """Return True if the implementation supports an operation; see the protocol."""
        return self.implementation.supports(operation)

    def perform(self, operation: Operation) -> Observation:
        """Execute an operation; see the protocol."""
        self.last = self.implementation.perform(operation)
        self.performed += 1
        self.listener(operation, self.last)
        if self.unobserved and self.control is not None and self.control.performed == self.performed:
            like = None if self.control.last is None else self.control.last.state
            return self.last._replace(state=with_fields_of(self.last.state, like, self.unobserved))
        return self.last

    def end(self) -> None:
        """End the example; see the protocol."""
        self.implementation.end()
