"""Kafka's own ``LogSegment`` of one release: ``kafka.log`` up to 3.6, ``o.a.k.storage.internals.log`` since."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.implementations.jvm.classes import JvmClasses
from conformance.implementations.jvm.exceptions import KIND_OF, SILENT
from conformance.implementations.jvm.step_batch import Requests, performed
from conformance.operations.segment import SEGMENT_ERROR_KINDS, SEGMENT_OPS, SegmentObservation, SegmentState

SEGMENT_KIND_OF: Final = KIND_OF | {
    "kafka.common.LogSegmentOffsetOverflowException": "offset_overflow",  # up to 3.6
    "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException": "offset_overflow",
    "org.apache.kafka.common.errors.CorruptRecordException": "corrupt_record",
    "org.apache.kafka.common.InvalidRecordException": "invalid_record",
    "org.apache.kafka.common.errors.InvalidTxnStateException": "invalid_txn_state",
    "org.apache.kafka.common.errors.ProducerFencedException": "producer_fenced",
    "org.apache.kafka.common.errors.TransactionCoordinatorFencedException": "coordinator_fenced",
    "java.lang.NegativeArraySizeException": "io",  # a snappy block of a negative length, up to 3.4
    "org.xerial.snappy.SnappyError": "io",  # the same, since
    "java.nio.BufferUnderflowException": "buffer_underflow",  # its text is Java's own: none
    # Around an IOException, unless it is about the version of a transaction: a batch could not be read.
    "org.apache.kafka.common.KafkaException without a version": "io",
}
"""Error kinds of Kafka's exceptions; a class includes its subclasses."""

SEGMENT_SILENT: Final = SILENT | {"invalid_record", "buffer_underflow"}
"""Kinds whose text is not compared: Java has written it, or it differs between 3.x releases (invalid records)."""

_OPERATIONS: Final = performed(SEGMENT_OPS)
_MODIFIED: Final = re.compile(r"lastModifiedTime=(\d+)")


@contextlib.contextmanager
def source_file(directory: str, records: str) -> Iterator[str]:
    """Yield the path of a temporary file with batches to be copied, which is next to ``directory``, never in it."""
    path = Path(f"{directory}.source")
    path.write_bytes(bytes.fromhex(records))
    yield str(path)
    path.unlink()


def comparable(text: str, directory: str) -> str:
    """Return a text without the parts that no two implementations share: directories and modification times."""
    found = _MODIFIED.search(text)
    if found is not None:
        text = text.replace(found[1], "MODIFIED")
    return text.replace(f"{directory}/", "").replace(f"{directory}.source", "SOURCE")


class JvmSegment(JvmClasses[SegmentObservation]):
    """Segment of one release; the base class explains the attributes."""

    driver_name = "SegmentDriver"
    group = "segment"
    kind_of = SEGMENT_KIND_OF
    error_kinds = SEGMENT_ERROR_KINDS
    operations = _OPERATIONS
    state = SegmentState
    observation_type = SegmentObservation
    reply_bytes = 1 << 18
    silent = SEGMENT_SILENT
    encode_step = Requests(_OPERATIONS)

    def comparable(self, text: str) -> str:
        """Return a message without directories and modification times; see the base class."""
        return comparable(text, self.directory)
