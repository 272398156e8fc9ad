"""Every on-disk format as a table: offset, size, name, meaning, source. The code reads and writes with these tables.

All integers are big-endian and signed (AI-1). No index file has a header or a checksum: each is a dense array of
entries from byte 0. Ids such as AI-1 name clauses: the numbered requirements in ``conformance/clauses``.
"""

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
