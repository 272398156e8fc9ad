"""Base class of kidx as an implementation, in the dialect of one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from conformance.implementations.protocol import OptionalMembers
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.operations.op import Op


class Reference(OptionalMembers):
    """Reference: kidx as an implementation (see :mod:`conformance.implementations.protocol`).

    Classes of kidx are attributes of a subclass, so that a mutant can replace one with a defective class.
    """

    speaks_kafka = True
    operations: ClassVar[Mapping[str, Op]]
    """Supported operations."""

    def __init__(self, release: str) -> None:
        self.name = f"kidx {release}"
        self.release = release
        self.dialect = dialect_of(release)
        self._directory: Path

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self.end()
        self._directory = directory

    def end(self) -> None:
        """End the example; see the protocol."""
        raise NotImplementedError

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; see the protocol."""
        return operation in self.operations
