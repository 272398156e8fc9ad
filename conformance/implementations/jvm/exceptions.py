"""Table of the error kinds of Kafka's exceptions, as in the line protocol.

An entry for a class includes its subclasses; the entry of the closest superclass is used.
"""

from __future__ import annotations

from typing import Final

from conformance.errors import ToolError
from conformance.operations import Outcome
from conformance.operations.outcomes import FAILURE, OUT_OF_MEMORY

KIND_OF: Final = {
    "org.apache.kafka.common.errors.InvalidOffsetException": "invalid_offset",
    "kafka.common.IndexOffsetOverflowException": "offset_overflow",  # up to 3.4
    "org.apache.kafka.storage.internals.log.IndexOffsetOverflowException": "offset_overflow",
    "kafka.log.CorruptIndexException": "corrupt",  # up to 3.4
    "org.apache.kafka.storage.internals.log.CorruptIndexException": "corrupt",
    "org.apache.kafka.common.KafkaException": "unsupported_version",  # the only one that an index throws itself (TX-7)
    "org.apache.fluss.exception.InvalidOffsetException": "invalid_offset",
    "org.apache.fluss.exception.IndexOffsetOverflowException": "offset_overflow",
    "org.apache.fluss.server.exception.CorruptIndexException": "corrupt",
    "java.lang.IllegalArgumentException": "invalid_argument",
    "java.lang.IllegalStateException": "illegal_state",
    "java.nio.ReadOnlyBufferException": "read_only",
    "java.lang.NullPointerException": "closed",  # an unmapped buffer (AI-19)
    "java.nio.BufferOverflowException": "buffer_overflow",
    "java.lang.IndexOutOfBoundsException": "out_of_bounds",
    "java.io.IOException": "io",
}
"""The error kind of each class of exceptions, for the operations on an index."""

_NO_CLASS: Final = "java.lang.NoClassDefFoundError:"

SILENT: Final = frozenset({"read_only", "closed", "buffer_overflow", "out_of_bounds", "io"})
"""Kinds whose text comes from Java or the operating system, not from Kafka; it is never compared."""


def unmapped_exception(name: str, text: object) -> Outcome:
    """Return the outcome of an exception without an error kind: a failure, which differs from every result.

    A build may throw any exception. A locked release that throws one shows that this table lacks an entry.

    Args:
        name: The name of the implementation.
        text: Class and message of the exception.

    Raises:
        ToolError: A class is missing.
    """
    if str(text).startswith("java.lang.OutOfMemoryError"):
        return Outcome(OUT_OF_MEMORY)
    if str(text).startswith(_NO_CLASS):
        missing = str(text).splitlines()[0].removeprefix(_NO_CLASS).replace("/", ".")
        raise ToolError(f"the class path of {name} is not complete; add the jar that contains{missing}")
    return Outcome(FAILURE, None, str(text))
