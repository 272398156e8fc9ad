"""Kafka's own ``RemoteIndexCache`` of one release, with remote storage in memory (``StoredIndexes.java``).

Fluss's ``RemoteLogIndexCache`` is a fork of it. It has no transaction index, and its maximum size cannot be changed. An
id in the name of a file is a UUID in hexadecimal digits; Kafka writes the same sixteen bytes in base64.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from conformance.errors import NotDrivenError
from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.step_batch import Requests, performed
from conformance.implementations.subject.build import classes_of
from conformance.operations import Operation, Outcome
from conformance.operations.cache import CACHE_ERROR_KINDS, CACHE_OPS, DIRECTORY, CacheObservation, CacheState
from conformance.subjects import load_subject
from kidx.dialect import dialect_of
from kidx.errors import KidxError
from kidx.remote import id_from_text, text_of_id

if TYPE_CHECKING:
    from conformance.kafka.jar_fetch import Progress

_OF_JAVA: Final = {
    "java.lang.NumberFormatException": "invalid_number",
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.lang.IllegalStateException": "illegal_state",
    "java.lang.NullPointerException": "closed",
    "java.io.IOException": "io",
}
"""Error kinds of Java's own exceptions."""
CACHE_KIND_OF: Final = {
    "org.apache.kafka.storage.internals.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.common.KafkaException": "unsupported_version",
    "org.apache.kafka.common.KafkaException without a version": "kafka",
    **_OF_JAVA,
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
    observation_type = CacheObservation
    reply_bytes = 1 << 16
    silent = CACHE_SILENT
    encode_step = Requests(_OPERATIONS)
    shares_codecs = False

    def comparable(self, text: str) -> str:
        """Return a message without the directory of the cache; see the base class."""
        return text.replace(f"{self.directory}/{DIRECTORY}/", "")


_KIND_OF: Final = {
    "org.apache.fluss.server.exception.CorruptIndexException": "corrupt",
    "org.apache.fluss.exception.FlussRuntimeException": "kafka",
    **_OF_JAVA,
}
"""Error kinds of exceptions; a class includes its subclasses."""

_OF_FLUSS: Final = performed({name: op for name, op in CACHE_OPS.items() if name not in {"aborted_in", "resize_cache"}})


class FlussCache(JvmCache):
    """Cache of Fluss, which is compared with one release of Kafka."""

    driver_name = "FlussCacheDriver"
    kind_of = _KIND_OF
    operations = _OF_FLUSS
    encode_step = Requests(_OF_FLUSS)
    speaks_kafka = False
    batch_group = None  # type: ignore[assignment]  # it has a separate reference

    def perform(self, operation: Operation) -> CacheObservation:
        """Execute an operation; see the protocol."""
        if not self.supports(operation.name):
            return CacheObservation(Outcome("unsupported"), None)
        return super().perform(operation)

    @staticmethod
    def own_name(name: str) -> str | None:
        """Return the name of Fluss for a file of Kafka's cache; None for an id with padding, which has no counterpart.

        An id is translated where Kafka reads one, between the first underscore and the first full stop. Upper-case
        digits are the counterpart of a base64 text that is not the usual one of its id.
        """
        begin, end = name.find("_") + 1, name.find(".")
        text = name[begin : max(begin, end)]
        if "=" in text:
            return None
        try:
            number = id_from_text(text)
        except KidxError:
            return name
        own = str(uuid.UUID(bytes=number))
        return name[:begin] + (own if text_of_id(number) == text else own.upper()) + name[end:]


def fork_of(name: str, release: str, progress: Progress | None) -> FlussCache:
    """Return the cache of a third-party implementation, which is a fork of Kafka's cache.

    Raises:
        NotDrivenError: The implementation has no cache, or is not comparable with the cache of the release.
        ToolError: The implementation cannot be built.
    """
    subject = load_subject(name)
    if dialect_of(release).cache_limit == "entries":
        raise NotDrivenError(f"{subject.title} limits the cache in bytes, as Kafka from 3.7 on does")
    return FlussCache(release, progress, classes_of(subject, release))
