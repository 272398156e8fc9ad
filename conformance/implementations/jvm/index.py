"""Kafka's own ``OffsetIndex``, ``TimeIndex`` and ``TransactionIndex`` of one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.exceptions import KIND_OF, SILENT, probe_build
from conformance.implementations.jvm.step_batch import Language, Requests, numbered, performed
from conformance.operations import ERROR_KINDS, KINDS, Observation, State
from conformance.operations.index import INDEX_OPS

if TYPE_CHECKING:
    from conformance.kafka.builds import Build
    from conformance.kafka.jar_fetch import Progress

OPERATIONS: Final = performed(INDEX_OPS)
"""The operations that Java executes; the harness executes the others itself."""
CODES: Final = numbered(OPERATIONS)
"""The number of each operation in a batch of steps."""


class JvmIndex(JvmClasses[Observation]):
    """Index classes of one release; the base class explains the attributes."""

    driver_name = "IndexDriver"
    group = "index"
    kind_of = KIND_OF
    error_kinds = ERROR_KINDS
    operations = OPERATIONS
    state = State
    observation_type = Observation
    reply_bytes = 1 << 20
    silent = SILENT
    encode_step = Requests(OPERATIONS)
    shares_codecs = False

    def __init__(
        self, release: str, progress: Progress | None = None, build: Build | None = None, loader: Any = None
    ) -> None:
        super().__init__(release, progress, build, loader)
        self.takes_negative_sizes = build is None or build.is_kafka

    def prepare(self) -> None:
        """Do nothing, because a build may lack some kinds of index; :meth:`require` finds the classes of one kind."""

    def require(self, kind: str) -> None:
        """Find the classes of a kind of index.

        Raises:
            NotDrivenError: A build lacks a class of the kind.
            ToolError: A class of a build cannot be loaded.
        """
        if self.build is not None:
            probe_build(self.build, lambda: self.driver.prepare(KINDS.index(kind)))

    def supports(self, operation: str) -> bool:
        """Return True if an operation is supported; see the protocol."""
        return operation in INDEX_OPS


INDEX_LANGUAGE: Final = Language(JvmIndex.encode_step, JvmIndex.encode_reply)
"""Encoder of the steps and replies of an index."""
