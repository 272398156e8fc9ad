"""Kafka's record batches of every format: reading, validation and writing (clauses RB and FR).

``iter_batches`` iterates over a segment file; a batch reads its header once and its records when it is iterated::

    for batch in file_batches("00000000000000000000.log"):
        batch.ensure_valid()
        for record in batch:
            print(record.offset, record.timestamp, record.key, record.value)

Corrupt bytes raise the subclass of :class:`kidx.errors.KidxError` that represents Kafka's exception, and no other
exception. If releases differ, these classes behave like 3.6 and later.
"""

from __future__ import annotations

from kidx.records.base import RecordBatch
from kidx.records.batch import DefaultRecordBatch
from kidx.records.builder import build_batch, empty_batch, end_transaction_marker, write_batch, write_message
from kidx.records.codecs import Codec
from kidx.records.errors import (
    CorruptRecordError,
    InvalidRecordError,
    LargeBatchError,
    RecordError,
    RecordSizeError,
    RecordStreamError,
    StreamUnderflowError,
    TruncatedFileError,
    TruncatedHeaderError,
    TruncatedRecordError,
    TruncatedStreamError,
    UnsupportedCodecError,
)
from kidx.records.file_bytes import Buffer
from kidx.records.legacy import LegacyRecord, LegacyRecordBatch
from kidx.records.offset_timestamps import OffsetTimestamp
from kidx.records.record import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    ControlRecordType,
    EndTransactionMarker,
    Header,
    Record,
    SimpleRecord,
    TimestampType,
)
from kidx.records.stream import file_batches, iter_batches, iter_memory_batches

__all__ = [
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "Buffer",
    "Codec",
    "ControlRecordType",
    "CorruptRecordError",
    "DefaultRecordBatch",
    "EndTransactionMarker",
    "Header",
    "InvalidRecordError",
    "LargeBatchError",
    "LegacyRecord",
    "LegacyRecordBatch",
    "OffsetTimestamp",
    "Record",
    "RecordBatch",
    "RecordError",
    "RecordSizeError",
    "RecordStreamError",
    "SimpleRecord",
    "StreamUnderflowError",
    "TimestampType",
    "TruncatedFileError",
    "TruncatedHeaderError",
    "TruncatedRecordError",
    "TruncatedStreamError",
    "UnsupportedCodecError",
    "build_batch",
    "empty_batch",
    "end_transaction_marker",
    "file_batches",
    "iter_batches",
    "iter_memory_batches",
    "write_batch",
    "write_message",
]
