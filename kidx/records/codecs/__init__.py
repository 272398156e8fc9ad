"""The compression codecs of record batches, each framed as Kafka's Java libraries frame it."""

from __future__ import annotations

from kidx.records.codecs.codec import (
    MOST_LENT,
    Codec,
    Decompressed,
    Ending,
    Reading,
    compress,
    decompress,
    decompressed,
)
from kidx.records.codecs.source import Source

__all__ = [
    "MOST_LENT",
    "Codec",
    "Decompressed",
    "Ending",
    "Reading",
    "Source",
    "compress",
    "decompress",
    "decompressed",
]
