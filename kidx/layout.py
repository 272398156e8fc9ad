"""Every on-disk format as a table: offset, size, name, meaning, source. The code reads and writes with these tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from struct import Struct
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an entry: its position in the entry and its size, both in bytes, its name, and its meaning."""

    offset: int
    size: int
    name: str
    meaning: str

    @property
    def code(self) -> str:
        """``struct`` code of a signed big-endian integer of this size."""
        return {1: "b", 2: "h", 4: "i", 8: "q"}[self.size]


@dataclass(frozen=True)
class Layout:
    """Entry of a fixed size.

    Attributes:
        name: file suffix or structure that it describes.
        fields: fields in file order, without holes.
        source: Kafka's source file that defines it.
    """

    name: str
    fields: tuple[Field, ...]
    source: str

    def __post_init__(self) -> None:
        end = 0
        for field in self.fields:
            if field.offset != end:
                raise ValueError(f"{self.name}: field {field.name} starts at {field.offset}, not at {end}")
            end += field.size

    @cached_property
    def struct(self) -> Struct:
        """Compiled codec of one entry."""
        return Struct(">" + "".join(field.code for field in self.fields))

    @cached_property
    def size(self) -> int:
        """Number of bytes of one entry."""
        return self.struct.size

    def field(self, name: str) -> Field:
        """Return the field called ``name``.

        Raises:
            KeyError: no field has this name.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{self.name} has no field {name!r}")

    def set(self, data: bytearray, name: str, value: int, at: int = 0) -> None:
        """Write the low bits of a value into the field called ``name`` of the entry at a position."""
        field = self.field(name)
        start = at + field.offset
        data[start : start + field.size] = (value & ((1 << 8 * field.size) - 1)).to_bytes(field.size, "big")

    def codec(self, name: str) -> Struct:
        """Return a codec for one field alone, to be used at ``field(name).offset`` within an entry."""
        return Struct(">" + self.field(name).code)


# fmt: off
OFFSET_INDEX: Final = Layout(".index", (
    Field(0, 4, "relative_offset", "offset - base_offset of the last record of the batch (OI-1, SEG-5); "
                                   "up to 3.9.0 and in 4.0.0, of the append (SEG-3)"),
    Field(4, 4, "position",        "byte position in the .log file where that batch, or append, starts"),
), "OffsetIndex.java")

TIME_INDEX: Final = Layout(".timeindex", (
    Field(0, 8, "timestamp",       "largest timestamp up to the offset, milliseconds since the epoch (TI-1)"),
    Field(8, 4, "relative_offset", "offset - base_offset"),
), "TimeIndex.java")

ABORTED_TXN: Final = Layout(".txnindex", (
    Field( 0, 2, "version",            "0 in every release (TX-1)"),
    Field( 2, 8, "producer_id",        "the producer that aborted"),
    Field(10, 8, "first_offset",       "first offset of the transaction"),
    Field(18, 8, "last_offset",        "offset of its abort marker"),
    Field(26, 8, "last_stable_offset", "last stable offset when the marker was written (TX-15)"),
), "AbortedTxn.java; 4.4: AbortedTxn.json")
# fmt: on

WARM_SECTION_BYTES: Final = 8192
"""Bytes at the end of an index that are searched first (AI-30): 1,024 ``.index``, 682 ``.timeindex`` entries."""

PAGE_BYTES: Final = 4096
"""The page that the operating system reads when a comparison touches a cold part of the file."""


# fmt: off
PREFIX: Final = Layout("batch prefix", (
    Field( 0, 8, "offset",                 "v2: offset of the first record; v0, v1: of the message or last inner one"),
    Field( 8, 4, "length",                 "bytes that follow this field"),
    Field(12, 4, "epoch_or_crc",           "v2: epoch of the leader that wrote the batch; v0, v1: checksum"),
    Field(16, 1, "magic",                  "0, 1 or 2: which format follows"),
), "Records.java")

RECORD_BATCH: Final = Layout("record batch v2", (
    Field( 0, 8, "base_offset",            "offset of the first record ever in the batch; compaction keeps it (RB-2)"),
    Field( 8, 4, "length",                 "bytes that follow this field; the whole batch is 12 more"),
    Field(12, 4, "partition_leader_epoch", "set by the leader, -1 if unknown; not covered by the checksum"),
    Field(16, 1, "magic",                  "2"),
    Field(17, 4, "crc",                    "CRC-32C of everything from attributes to the end, unsigned"),
    Field(21, 2, "attributes",             "codec, timestamp type, flags: the ATTRIBUTE_ constants"),
    Field(23, 4, "last_offset_delta",      "offset of the last record ever in the batch, less base_offset"),
    Field(27, 8, "base_timestamp",         "base of the record timestamp deltas; with the horizon flag, the horizon"),
    Field(35, 8, "max_timestamp",          "largest record timestamp; with LogAppendTime, all have it (RB-3)"),
    Field(43, 8, "producer_id",            "-1 if the producer is not idempotent"),
    Field(51, 2, "producer_epoch",         "-1 if the producer is not idempotent"),
    Field(53, 4, "base_sequence",          "sequence number of the first record, -1 if not idempotent"),
    Field(57, 4, "record_count",           "number of records present; 0 in a batch that compaction emptied"),
), "DefaultRecordBatch.java (RB-1)")

MESSAGE_V0: Final = Layout("message v0", (
    Field( 0, 8, "offset",                 "absolute, inside a compressed message too"),
    Field( 8, 4, "length",                 "bytes that follow this field"),
    Field(12, 4, "crc",                    "CRC-32 of everything from magic to the end, unsigned"),
    Field(16, 1, "magic",                  "0"),
    Field(17, 1, "attributes",             "codec"),
), "LegacyRecord.java; then int32 size (-1: null) and bytes of the key, the same of the value")

MESSAGE_V1: Final = Layout("message v1", (
    Field( 0, 8, "offset",                 "absolute; in a compressed message, relative to the first inner message"),
    Field( 8, 4, "length",                 "bytes that follow this field"),
    Field(12, 4, "crc",                    "CRC-32 of everything from magic to the end, unsigned"),
    Field(16, 1, "magic",                  "1"),
    Field(17, 1, "attributes",             "codec, timestamp type"),
    Field(18, 8, "timestamp",              "in a wrapper: the largest inner timestamp, or the append time of all"),
), "LegacyRecord.java; then key and value as in v0")

# Flags in RECORD_BATCH.attributes and (the first two) in MESSAGE_V1.attributes.
ATTRIBUTE_CODEC:           Final = 0x07  # bits 0-2: none, gzip, snappy, lz4, zstd
ATTRIBUTE_LOG_APPEND_TIME: Final = 0x08  # bit 3: the broker set the timestamps, not the producer
ATTRIBUTE_TRANSACTIONAL:   Final = 0x10  # bit 4
ATTRIBUTE_CONTROL:         Final = 0x20  # bit 5: a marker for Kafka itself, never delivered to a consumer
ATTRIBUTE_DELETE_HORIZON:  Final = 0x40  # bit 6, from 3.1.0: base_timestamp is the delete horizon of tombstones
# fmt: on

LOG_OVERHEAD: Final = PREFIX.field("epoch_or_crc").offset
"""Number of bytes up to the end of ``length``, which ``length`` does not count: 12."""

RECORD_BATCH_OVERHEAD: Final = RECORD_BATCH.size
"""Size in bytes of a v2 batch without records: 61."""

CHECKSUMMED_FROM: Final = RECORD_BATCH.field("attributes").offset
"""Position at which the CRC-32C of a v2 batch starts: 21."""

SIZE_FIELD: Final = 4
"""Size in bytes of the size field before a key or value of v0 and v1."""

# RECORD_OVERHEAD of LegacyRecord.java counts from the checksum on, with both size fields.
MESSAGE_OVERHEAD_V0: Final = MESSAGE_V0.size - LOG_OVERHEAD + 2 * SIZE_FIELD
"""Size in bytes of a v0 message without key and value: 14, the smallest valid ``length`` in any format (RB-4)."""
