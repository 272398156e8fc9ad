"""Kafka's own ``RemoteIndexCache`` of one release, with remote storage in memory (``StoredIndexes.java``)."""

from __future__ import annotations

from typing import Final

from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.step_batch import Requests, performed
from conformance.operations.cache import CACHE_ERROR_KINDS, CACHE_OPS, DIRECTORY, CacheObservation, CacheState

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
"""Kinds whose text comes, wholly or in part, from Java or the operating system; it is never compared."""

_OPERATIONS: Final = performed(CACHE_OPS)


class JvmCache(JvmClasses[CacheObservation]):
    """Cache of one release; the base class explains the attributes."""

    driver_name = "CacheDriver"
    group = "log"
    kind_of = CACHE_KIND_OF
    error_kinds = CACHE_ERROR_KINDS
    operations = _OPERATIONS
    state = CacheState
    observed = CacheObservation
    reply_bytes = 1 << 16
    silent = CACHE_SILENT
    step_of = Requests(_OPERATIONS)
    shares_codecs = False

    def comparable(self, text: str) -> str:
        """Return a message without the directory of the cache; see the base class."""
        return text.replace(f"{self.directory}/{DIRECTORY}/", "")
