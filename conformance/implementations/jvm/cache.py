"""Kafka's own ``RemoteIndexCache`` of one release, with a remote storage in memory (``StoredIndexes.java``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.requests import Requests, performed
from conformance.operations import Outcome
from conformance.operations.cache import CACHE_ERROR_KINDS, CACHE_OPS, DIRECTORY, CacheObservation, CacheState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CACHE_KIND_OF: Final = {
    "org.apache.kafka.storage.internals.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.common.KafkaException": "unsupported_version",
    "org.apache.kafka.common.KafkaException without a version": "kafka",
    "java.lang.NumberFormatException": "invalid_number",
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.lang.IllegalStateException": "illegal_state",
    "java.lang.NullPointerException": "closed",
    "java.io.IOException": "io",
}
"""Error kinds of exceptions; a class includes its subclasses."""

CACHE_SILENT: Final = frozenset({"kafka", "invalid_number", "invalid_argument", "out_of_bounds", "closed", "io"})
"""Kinds whose text is Java's or the operating system's, alone or within Kafka's: it is never compared."""

_OPERATIONS: Final = performed(CACHE_OPS)


class JvmCache(JvmClasses[CacheObservation]):
    """Cache of one release."""

    driver_name = "CacheDriver"
    group = "log"
    kind_of = CACHE_KIND_OF
    error_kinds = CACHE_ERROR_KINDS
    operations = _OPERATIONS
    reply_bytes = 1 << 16
    silent = CACHE_SILENT
    step_of = Requests(_OPERATIONS)
    lends = False
    _directory = ""

    def begin(self, directory: Path) -> None:
        """Begin an example; see the protocol."""
        self._directory = f"{directory}/{DIRECTORY}/"
        self.driver.begin(str(directory))

    @staticmethod
    def numbers_of_state(state: CacheState) -> Sequence[int]:
        """Return the numbers of a state; see the base class."""
        return state.to_numbers()

    def refusal(self, kind: str, text: str | None) -> Outcome:
        """Return the outcome of an exception; see the base class."""
        if kind in CACHE_SILENT or text is None:
            return Outcome(kind)
        return Outcome(kind, None, text.replace(self._directory, ""))

    def observed(self, outcome: Outcome, state: tuple[int, ...]) -> CacheObservation:
        """Return an observation; see the base class."""
        return CacheObservation(outcome, CacheState.of_numbers(state) if state else None)
