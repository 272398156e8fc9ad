"""Compression codecs of record batches, each framed as Kafka's Java libraries frame it."""

from __future__ import annotations

from kidx.records.codecs.codec import (
    MAX_BORROWED_BYTES,
    Codec,
    DecompressedStream,
    ReadMode,
    StreamEnd,
    compress,
    decompress,
    decompress_all,
)
from kidx.records.codecs.streams import ChunkReader

__all__ = [
    "MAX_BORROWED_BYTES",
    "ChunkReader",
    "Codec",
    "DecompressedStream",
    "ReadMode",
    "StreamEnd",
    "compress",
    "decompress",
    "decompress_all",
]
